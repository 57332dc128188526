/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.h -- the library's end of the socket to this host's rpmirrord (wire/packet.h).
 *
 * Used by one thread at a time. Sending never waits: what the socket does not take is kept.
 */
#ifndef MIRROR_DAEMON_H
#define MIRROR_DAEMON_H

#include "base/list.h"
#include "base/ownfd.h"
#include "mirror/wire/packet.h"

struct daemon {
	int fd;           /* -1: none */
	struct ownfd own; /* identity of fd's socket */
	uint32_t last_id;
	unsigned version; /* version of the daemon's answers; 0: unknown yet */
	struct list unsent;
	uint8_t *buf;            /* PACKET_MAX */
	struct packet *packet;   /* the last one received */
	int files[PACKET_FILES]; /* descriptors that came with it, for the receiver; -1: none */
	bool lacks_files;        /* more descriptors came than this process has room for */
	bool is_absent;          /* there is no daemon, or its connection has ended */
	bool is_closed;          /* the connection ended at once (map.c) */
};

/* Connect to the socket that RPMIRROR_SOCKET names, or to the usual one. 0 or an RPMIRROR_E_*. */
int daemon_open(struct daemon *d);
void daemon_close(struct daemon *d);

/* Queue a packet, with an id if it has none. False: no memory, or the connection has ended. */
bool daemon_send(struct daemon *d, struct packet *p);
/* Are packets left that wait for POLLOUT? */
bool daemon_has_unsent(const struct daemon *d);
bool daemon_send_unsent(struct daemon *d);

enum daemon_got { DAEMON_GOT_PACKET, DAEMON_GOT_NONE, DAEMON_GOT_END };
/* The next packet, in d->packet. END: the daemon is gone, or uses another protocol. */
enum daemon_got daemon_receive(struct daemon *d);
/* The same after a wait of at most timeout_ms; -1: without a limit. NONE: the time is over. */
enum daemon_got daemon_wait(struct daemon *d, int timeout_ms);

#endif
