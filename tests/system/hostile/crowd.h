/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowd.h -- hundreds of peers at once that do what a peer must not do, each in its own way,
 * again and again, driven by one thread.
 */
#ifndef HOSTILE_CROWD_H
#define HOSTILE_CROWD_H

#include "system/lib/rawpeer.h"

#define CROWD_SIZE 300

/*
 * What its members do, as X(name, wishes, nature). A SLOW one sends a byte at a time, a DEAF one
 * reads nothing, a FLOODing one does it until it is stopped, a RUDE one ends with a reset.
 */
#define CROWD_ROLES(X)                                                                             \
	X(garbage, RAW_PLAIN, 0)                                                                   \
	X(wrong_crc, RAW_CRC, 0)                                                                   \
	X(slow_handshake, RAW_PLAIN, CROWD_SLOW | CROWD_SHY)                                       \
	X(half_handshake, RAW_PLAIN, CROWD_SHY)                                                    \
	X(no_handshake, RAW_PLAIN, CROWD_SHY)                                                      \
	X(slow_write, RAW_PLAIN, CROWD_SLOW)                                                       \
	X(half_write, RAW_CRC, CROWD_RUDE)                                                         \
	X(oversized_message, RAW_PLAIN, 0)                                                         \
	X(wrong_msn, RAW_PLAIN, 0)                                                                 \
	X(wrong_mo, RAW_PLAIN, 0)                                                                  \
	X(wrong_queue, RAW_PLAIN, 0)                                                               \
	X(wrong_stag, RAW_PLAIN, 0)                                                                \
	X(wrong_to, RAW_PLAIN, 0)                                                                  \
	X(too_many_reads, RAW_PLAIN, CROWD_FLOOD | CROWD_DEAF)                                     \
	X(write_flood, RAW_PLAIN, CROWD_FLOOD)                                                     \
	X(message_flood, RAW_PLAIN, CROWD_FLOOD | CROWD_DEAF)                                      \
	X(flush_flood, RAW_EXTENSIONS, CROWD_FLOOD | CROWD_DEAF)                                   \
	X(reset, RAW_PLAIN, CROWD_RUDE)

enum crowd_nature {
	CROWD_SLOW = 1,
	CROWD_DEAF = 2,
	CROWD_FLOOD = 4,
	CROWD_RUDE = 8,
	CROWD_SHY = 16, /* never gets as far as a reply */
};

struct crowd_count {
	const char *name;
	bool is_short;       /* its deed is the end of its connection */
	unsigned long lives; /* connections */
	unsigned long deeds; /* how often it did it, to the last byte */
	unsigned long ended; /* connections that the target ended */
};

/* Start: the target's port, and a connection that has its regions; of the first one they take the
 * upper half as theirs. */
void crowd_start(const char *port, const struct raw *known);
/* All of them hang up, once the target had time to end one of each short role. How each role did;
 * *n roles. */
const struct crowd_count *crowd_stop(int *n);

#endif
