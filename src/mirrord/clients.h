/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.h -- processes at the UNIX socket: libraries and tools. The loop's thread only. */
#ifndef MIRRORD_CLIENTS_H
#define MIRRORD_CLIENTS_H

#include "mirrord/impl.h"

/* local.c: the UNIX socket. */
int local_open(struct daemon *d, struct error *err);
void local_close(struct daemon *d);
struct client *local_find(struct daemon *d, uint64_t serial);
/* Send; a client that does not read is closed, not before the loop's next turn, and so is one that
 * does not understand the format of the record. At most two descriptors, fds may be NULL. */
void local_send(struct client *client, struct packet *p, const int *fds, unsigned fd_count);
void local_send_done(struct client *client, uint32_t id, enum packet_status status,
		     const char *text);
void local_send_text(struct client *client, const char *text, size_t len);

/* End its connection at the loop's next turn. */
void local_drop(struct client *client);

/* library.c: packets of a library. 0, or -errno: it may not send that now. */
int library_on_packet(struct client *client, const struct packet *p);

/* map.c: who maps a set. */
void map_on_request(struct client *client, const struct packet *p);
void map_on_unmap(struct client *client, const struct packet *p);
/* Something has changed: look after whoever waits. */
void map_retry(struct set *s);
/* Of a process that waits, and one that maps the set: with the daemon's configuration, or by its
 * own word, or by that order, may it follow a primary that has ended? */
bool map_may_follow(const struct set *s, const struct client *client, enum promotion_kind order);
/* Why a process that waits does not map yet. */
struct map_reason {
	enum packet_status status;
	char text[PACKET_TEXT];
};
struct map_reason map_why_waits(const struct set *s, const struct client *client,
				enum promotion_kind order);
/* The connection is gone; the process may go on. */
void map_on_lost(struct client *client);

#endif
