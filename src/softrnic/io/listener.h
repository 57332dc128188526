/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h -- a listening link and its handshakes. A handshake with a complete request becomes a
 * connection of the owner. */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include <stdbool.h>

struct conn;
struct link;
struct listener;

/* A request is complete. Called with the locks of the connection and of the listener. True: the
 * owner has taken over the connection, with one reference; false: the request is rejected. */
typedef bool listener_request_fn(void *owner, struct conn *c);

/* Listen on the bound link, which the listener owns on success. Returns 0 or -errno. */
int listener_open(struct link *link, listener_request_fn *request, void *owner,
		  struct listener **out);
/* As listener_open(), for queue pairs that meet their peers by themselves (conn_plain.h). */
int listener_open_meeting(struct link *link, listener_request_fn *request, void *owner,
			  struct listener **out);
/* Afterwards no call of the owner's function is in progress, and none follows. */
void listener_close(struct listener *l);

#endif
