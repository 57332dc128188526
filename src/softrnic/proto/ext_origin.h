/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ext_origin.h -- the ORIGIN (doc/wire.md s6): the initiator's second message to a peer that takes
 * part in the barrier. It names the connection, and the former connections whose bytes must not be
 * placed any more.
 *
 * An id names a process of initiators to one process of targets. A serial number names one of the
 * connections between the two processes.
 */
#ifndef PROTO_EXT_ORIGIN_H
#define PROTO_EXT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXT_ID_LEN           16
#define EXT_ORIGIN_RANGES    61 /* number of ranges that fit into one message */
#define EXT_ORIGIN_RANGE_LEN 16
/* the sender awaits an answer, and sends another ORIGIN after the answer */
#define EXT_ORIGIN_ASKS       0x1u
#define EXT_ORIGIN_COUNT(arg) ((arg) >> 8 & 0xffu)

/* Status of the answer. A value outside of this list also means failure. The answer's `detail` is
 * the number of former connections that remain, or 0 with BUSY. */
enum ext_origin_status {
	EXT_ORIGIN_CUT = 0, /* no bytes of the former connections are placed any more */
	/* a former connection still places bytes, and the time limit has passed */
	EXT_ORIGIN_STUCK = 1,
	EXT_ORIGIN_BUSY = 2, /* the responder already processes too many ORIGINs */
};

struct ext_range_of_serials {
	uint64_t first, last; /* range of serial numbers, both ends included */
};

struct ext_origin {
	bool asks;         /* without this flag the message has neither an owner nor ranges */
	uint32_t limit_ms; /* time limit for the answer */
	uint64_t serial;   /* serial number of this connection, from 1 on */
	uint8_t id[EXT_ID_LEN];
	bool has_owner;
	uint8_t owner[EXT_ID_LEN]; /* all zeros: no owner */
	unsigned n;
	struct ext_range_of_serials ranges[EXT_ORIGIN_RANGES];
};

/* Encode the whole message after the DDP header. Returns the length written or -ENOSPC. */
int ext_origin_encode(void *buf, size_t size, const struct ext_origin *origin);
/* Decode a whole message. Returns 0, or -EBADMSG with a text in *why. */
int ext_origin_decode(const void *buf, size_t len, struct ext_origin *origin, const char **why);
/* Does the message name the connection with this serial number and its own id? */
bool ext_origin_names(const struct ext_origin *origin, uint64_t serial);

#endif
