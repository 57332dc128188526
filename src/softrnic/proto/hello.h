/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.h -- the HELLO (doc/wire.md s6): the first message of each direction between consenting
 * peers, in which each end states what it executes and takes.
 */
#ifndef PROTO_HELLO_H
#define PROTO_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define HELLO_MAJOR     2 /* of the extensions; the consent patterns name it, too */
#define HELLO_MINOR     0
#define HELLO_LEN       40   /* of the HELLO that this version sends */
#define HELLO_ULPDU_MIN 2048 /* the least that a HELLO may state; any extension message fits */

/* Types of the items. Unknown ones are skipped. 0x10 to 0x1f are reserved for another link. */
enum hello_item {
	HELLO_VERSION = 1,   /* major (16), minor (16); must be there */
	HELLO_KINDS = 2,     /* set of 64-bit words; absent: none */
	HELLO_LIMIT = 3,     /* ms (32); absent: not told */
	HELLO_MAX_ULPDU = 4, /* bytes (32); absent: the most there is */
};

struct hello {
	uint16_t major, minor;
	uint64_t kinds;     /* EXT_BIT() of each kind that the sender executes */
	uint32_t limit_ms;  /* a silence that long ends the connection; 0: not told */
	uint32_t max_ulpdu; /* the largest that the sender takes */
};

/* The whole message behind the DDP header. Length written or -ENOSPC. */
int hello_encode(void *buf, size_t size, const struct hello *hello);
/* A whole message. 0, or -EBADMSG, and *why in words; then the peer is not understood. */
int hello_decode(const void *buf, size_t len, struct hello *hello, const char **why);

#endif
