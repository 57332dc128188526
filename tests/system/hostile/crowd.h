/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.h -- one thread that plays hundreds of hostile peers at the same time. Each peer has a
 * role: it repeatedly breaks the rules in one way. */
#ifndef HOSTILE_CROWD_H
#define HOSTILE_CROWD_H

#include "system/lib/rawpeer.h"

#define CROWD_SIZE 300

/*
 * The roles, as X(name, options, traits). SLOW: sends a byte at a time. NO_READ: reads nothing
 * after the reply. FLOOD: repeats its violation until the connection is closed. RESET: closes by a
 * reset.
 */
#define CROWD_ROLES(X)                                                                             \
	X(garbage, RAW_PLAIN, 0)                                                                   \
	X(wrong_crc, RAW_CRC, 0)                                                                   \
	X(slow_handshake, RAW_PLAIN, CROWD_SLOW | CROWD_NO_REPLY)                                  \
	X(half_handshake, RAW_PLAIN, CROWD_NO_REPLY)                                               \
	X(no_handshake, RAW_PLAIN, CROWD_NO_REPLY)                                                 \
	X(slow_write, RAW_PLAIN, CROWD_SLOW)                                                       \
	X(half_write, RAW_CRC, CROWD_RESET)                                                        \
	X(oversized_message, RAW_PLAIN, 0)                                                         \
	X(wrong_msn, RAW_PLAIN, 0)                                                                 \
	X(wrong_mo, RAW_PLAIN, 0)                                                                  \
	X(wrong_queue, RAW_PLAIN, 0)                                                               \
	X(wrong_stag, RAW_PLAIN, 0)                                                                \
	X(wrong_to, RAW_PLAIN, 0)                                                                  \
	X(too_many_reads, RAW_PLAIN, CROWD_FLOOD | CROWD_NO_READ)                                  \
	X(write_flood, RAW_PLAIN, CROWD_FLOOD)                                                     \
	X(message_flood, RAW_PLAIN, CROWD_FLOOD | CROWD_NO_READ)                                   \
	X(flush_flood, RAW_EXTENSIONS, CROWD_FLOOD | CROWD_NO_READ)                                \
	X(reset, RAW_PLAIN, CROWD_RESET)

enum crowd_traits {
	CROWD_SLOW = 1,
	CROWD_NO_READ = 2,
	CROWD_FLOOD = 4,
	CROWD_RESET = 8,
	CROWD_NO_REPLY = 16, /* the peer never gets a reply */
};

struct crowd_count {
	const char *name;
	bool is_short;             /* the violation ends the connection */
	unsigned long connections; /* connections that were made */
	unsigned long violations;  /* violations that were sent completely */
	unsigned long ended;       /* connections that the target closed */
};

/* Start the crowd against the target's port. `known` is a connection that has received the
 * descriptors of the target's regions. The crowd uses the upper half of the first region. */
void crowd_start(const char *port, const struct raw *known);
/*
 * Wait until the target has closed one connection of each short role, then close all connections.
 * Returns the counts of the *n roles.
 */
const struct crowd_count *crowd_stop(int *n);

#endif
