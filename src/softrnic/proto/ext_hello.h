/* SPDX-License-Identifier: BSD-3-Clause */
/* ext_hello.h -- the HELLO (doc/wire.md s6): the first message of each direction between consenting
 * peers. Each end states the messages that it executes and accepts. */
#ifndef PROTO_EXT_HELLO_H
#define PROTO_EXT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/proto/ext_origin.h"

/* major version of the extensions; the consent patterns contain this number as well */
#define EXT_HELLO_MAJOR 2
#define EXT_HELLO_MINOR 2
#define EXT_HELLO_LEN   40 /* length of a HELLO with its fixed items only */
#define EXT_HELLO_MAX   76 /* length of a HELLO with an instance, rings and acknowledgements */
/* smallest limit that a HELLO may state; every extension message fits into this length */
#define EXT_HELLO_ULPDU_MIN 2048

#define EXT_ACKS_VERSION 1

/* Types of the items in a HELLO. An end skips items of unknown types. The types 0x11 to 0x1f are
 * reserved for further kinds of link. */
enum ext_hello_item {
	/* major version (16 bits), minor version (16 bits); this item is required */
	EXT_HELLO_VERSION = 1,
	EXT_HELLO_KINDS = 2, /* set of kinds in 64-bit words; an absent item means no kinds */
	/* milliseconds (32 bits); an absent item means that no limit is stated */
	EXT_HELLO_LIMIT = 3,
	/* bytes (32 bits); an absent item means the greatest possible value */
	EXT_HELLO_MAX_ULPDU = 4,
	/* 16 bytes; if the item is absent, the sender sends no ORIGIN and expects none */
	EXT_HELLO_INSTANCE = 5,
	/* version (32 bits) of the rings that the sender supports; absent: no rings */
	EXT_HELLO_RINGS = 0x10,
	EXT_HELLO_ACKS =
		/*
		 * version (32 bits) of the Acks that the sender sends and requests; absent: no Acks
		 */
	0x20,
};

struct ext_hello {
	uint16_t major, minor;
	uint64_t kinds; /* EXT_BIT() of each kind that the sender executes */
	/* the sender ends the connection after a silence of this length; 0: not stated */
	uint32_t limit_ms;
	uint32_t max_ulpdu; /* the largest ULPDU that the sender accepts */
	uint32_t rings;     /* version of the offered rings in shared memory; 0: none */
	uint32_t acks;      /* EXT_ACKS_VERSION: the sender sends and requests Acks; 0: neither */
	/* The sender takes part in the barrier of ext_origin.h. A responder names its process; an
	 * initiator sends zeros, because its ORIGIN names its process. */
	bool has_instance;
	uint8_t instance[EXT_ID_LEN];
};

/* Encode the whole message after the DDP header. Returns the length written or -ENOSPC. */
int ext_hello_encode(void *buf, size_t size, const struct ext_hello *hello);
/* Decode a whole message. Returns 0, or -EBADMSG with a text in *why. */
int ext_hello_decode(const void *buf, size_t len, struct ext_hello *hello, const char **why);

#endif
