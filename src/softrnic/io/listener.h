/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h -- a listening link and its handshakes. When the request of a handshake is complete,
 * the owner gets the connection. */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include <stdbool.h>

struct conn;
struct link;
struct listener;

/* Called when a request is complete, with the locks of the connection and of the listener. Returns
 * true if the owner has taken over the connection, with one reference. Returns false if the request
 * must be rejected. */
typedef bool listener_request_fn(void *owner, struct conn *c);

/*
 * Listen on the bound link. If the call succeeds, the listener owns the link. Returns 0 or -errno.
 */
int listener_open(struct link *link, listener_request_fn *request, void *owner,
		  struct listener **out);
/* Do the same for queue pairs that connect by a meeting (conn_plain.h). */
int listener_open_meeting(struct link *link, listener_request_fn *request, void *owner,
			  struct listener **out);
/* Close the listener. After the call the owner's function is not running, and is not called any
 * more. */
void listener_close(struct listener *l);

#endif
