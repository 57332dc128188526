/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.h -- the library's end of the socket to this host's rpmirrord (wire/packet.h).
 *
 * Only one thread at a time may use a connection. Sending never waits: if the socket is full, the
 * rest of the bytes is kept.
 */
#ifndef MIRROR_DAEMON_H
#define MIRROR_DAEMON_H

#include "base/list.h"
#include "base/ownfd.h"
#include "mirror/wire/packet.h"

struct daemon {
	int fd;           /* descriptor of the socket; -1: none */
	struct ownfd own; /* identity of the socket that fd had when it was opened */
	uint32_t last_id;
	unsigned version; /* version of the daemon's answers; 0: not known yet */
	struct list unsent;
	uint8_t *buf;          /* PACKET_MAX bytes */
	struct packet *packet; /* the packet that was received last */
	/* descriptors that came with the packet, which the receiver takes; -1: none */
	int files[PACKET_FILES];
	bool lacks_files; /* more descriptors came than this process may open */
	bool is_absent;   /* there is no daemon, or the connection is closed */
	bool is_closed;   /* the connection ended immediately (map.c) */
};

/* Connect to the socket that RPMIRROR_SOCKET names, or to the usual one. Returns 0 or an
 * RPMIRROR_E_*. */
int daemon_open(struct daemon *d);
void daemon_close(struct daemon *d);

/* Queue a packet, with an id if it has none. Returns false if memory is missing, or the connection
 * is closed. */
bool daemon_send(struct daemon *d, struct packet *p);
/* Returns true if packets wait for POLLOUT. */
bool daemon_has_unsent(const struct daemon *d);
bool daemon_send_unsent(struct daemon *d);

enum daemon_got { DAEMON_GOT_PACKET, DAEMON_GOT_NONE, DAEMON_GOT_END };
/* Receive the next packet into d->packet. END: the daemon is gone, or uses another protocol. */
enum daemon_got daemon_receive(struct daemon *d);
/* Like daemon_receive(), but wait at most timeout_ms; -1: no limit. NONE: the time limit has
 * passed. */
enum daemon_got daemon_wait(struct daemon *d, int timeout_ms);

#endif
