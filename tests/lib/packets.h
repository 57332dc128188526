/* SPDX-License-Identifier: BSD-3-Clause */
/* packets.h -- read the TCP packets of a pcapng file without a link layer, and check each
 * packet. */
#ifndef TESTLIB_PACKETS_H
#define TESTLIB_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
	uint64_t time_ns;
	uint32_t captured, original; /* numbers of bytes */
	unsigned direction;          /* 1: inbound, 2: outbound */
	char comment[80];
	bool v6;
	uint8_t src[16], dst[16]; /* for IPv4 only the first four bytes are used */
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint8_t flags;
	const uint8_t *data; /* points into packets.file; NULL for a packet that was cut off */
	size_t len;
};

struct packets {
	uint8_t *file;
	size_t size;
	struct packet *all;
	unsigned n, sections;
};

/* Returns 0 or -errno: -EPROTO if a block, a length or a checksum is wrong. */
int packets_load(struct packets *p, const char *path);
void packets_fini(struct packets *p);

#endif
