/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.h -- the processes that connect to the UNIX socket: libraries and tools. Only the loop's
 * thread calls these functions. */
#ifndef MIRRORD_CLIENTS_H
#define MIRRORD_CLIENTS_H

#include "mirrord/impl.h"

/* local.c: the UNIX socket. */
int local_open(struct daemon *d, struct error *err);
void local_close(struct daemon *d);
struct client *local_find(struct daemon *d, uint64_t serial);
/*
 * Send a packet. A client that does not read, or that does not support the record's format, is
 * closed in the loop's next pass. fds has at most two descriptors, and may be NULL.
 */
void local_send(struct client *client, struct packet *p, const int *fds, unsigned fd_count);
void local_send_done(struct client *client, uint32_t id, enum packet_status status,
		     const char *text);
void local_send_text(struct client *client, const char *text, size_t len);

/* Close the client's connection in the loop's next pass. */
void local_drop(struct client *client);

/* library.c: handles packets of a library. Returns 0, or -errno if the client is not allowed to
 * send this packet now. */
int library_on_packet(struct client *client, const struct packet *p);

/* map.c: the process that maps a set. */
void map_on_request(struct client *client, const struct packet *p);
void map_on_unmap(struct client *client, const struct packet *p);
/* Call this after the set's state has changed: checks again whether the waiting requests can be
 * granted. */
void map_retry(struct set *s);
/*
 * Returns true if the process may take over from a primary that has ended. `client` waits to map
 * the set, or maps the set. The configuration, the process's own request or the order can permit
 * this.
 */
bool map_may_follow(const struct set *s, const struct client *client, enum promotion_kind order);
/* The reason why a waiting process does not map the set yet. */
struct map_reason {
	enum packet_status status;
	char text[PACKET_TEXT];
};
struct map_reason map_why_waits(const struct set *s, const struct client *client,
				enum promotion_kind order);
/* If the client is the set's holder, continue without its connection; if the client has not got the
 * answer to its MAP, release the set. Call this when the client's connection is lost. The process
 * may still run. */
void map_on_lost(struct client *client);

#endif
