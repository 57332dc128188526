/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ext_origin.h -- the ORIGIN (doc/wire.md s6): the initiator's second message to a peer that takes
 * part. It names the connection, and the former ones that must not place a byte any more.
 *
 * An id names a process of initiators towards one process of targets, and a serial number one of
 * the connections between them.
 */
#ifndef PROTO_EXT_ORIGIN_H
#define PROTO_EXT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXT_ID_LEN            16
#define EXT_ORIGIN_RANGES     61 /* ranges for which one message has room */
#define EXT_ORIGIN_RANGE_LEN  16
#define EXT_ORIGIN_ASKS       0x1u /* the sender waits for the answer, and sends another ORIGIN */
#define EXT_ORIGIN_COUNT(arg) ((arg) >> 8 & 0xffu)

/* Status of the answer; others than these are failures as well. Detail: connections that are left,
 * of BUSY 0. */
enum ext_origin_status {
	EXT_ORIGIN_CUT = 0,   /* nothing of the former connections is placed any more */
	EXT_ORIGIN_STUCK = 1, /* one of them still places bytes, and the time limit is over */
	EXT_ORIGIN_BUSY = 2,  /* too many such questions are being worked on */
};

struct ext_range_of_serials {
	uint64_t first, last; /* range of serial numbers; both ends belong to it */
};

struct ext_origin {
	bool asks;         /* without this flag there are neither owner nor ranges */
	uint32_t limit_ms; /* the answer is due by then */
	uint64_t serial;   /* serial number of this connection, from 1 on */
	uint8_t id[EXT_ID_LEN];
	bool has_owner;
	uint8_t owner[EXT_ID_LEN]; /* zeros: none */
	unsigned n;
	struct ext_range_of_serials ranges[EXT_ORIGIN_RANGES];
};

/* The whole message behind the DDP header. Length written or -ENOSPC. */
int ext_origin_encode(void *buf, size_t size, const struct ext_origin *origin);
/* A whole message. 0, or -EBADMSG with a text in *why. */
int ext_origin_decode(const void *buf, size_t len, struct ext_origin *origin, const char **why);
/* Does the message name the connection of the same id with this serial number? */
bool ext_origin_names(const struct ext_origin *origin, uint64_t serial);

#endif
