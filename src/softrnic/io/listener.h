/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener.h -- a listening link and the handshakes on it. A handshake whose request is complete
 * becomes a connection of the owner's.
 */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include <stdbool.h>

struct conn;
struct link;
struct listener;

/*
 * A request is complete. With the connection's lock, and the listener's. True: the owner has taken
 * the connection, and one reference to it; false: the request is rejected.
 */
typedef bool listener_request_fn(void *owner, struct conn *c);

/* Listen on the bound link, which is the listener's if all goes well. 0 or -errno. */
int listener_open(struct link *link, listener_request_fn *request, void *owner,
		  struct listener **out);
/* The same for queue pairs that meet their peers by themselves (conn_plain.h). */
int listener_open_meeting(struct link *link, listener_request_fn *request, void *owner,
			  struct listener **out);
/* No call of the owner's function is under way afterwards, and none follows. */
void listener_close(struct listener *l);

#endif
