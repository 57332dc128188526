/* SPDX-License-Identifier: BSD-3-Clause */
/* packets.h -- the TCP packets of a pcapng file without link layer, each checked on its own. */
#ifndef TESTLIB_PACKETS_H
#define TESTLIB_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
	uint64_t time_ns;
	uint32_t captured, original; /* bytes */
	unsigned direction;          /* 1: inbound, 2: outbound */
	char comment[80];
	bool v6;
	uint8_t src[16], dst[16]; /* an IPv4 address is in the first four bytes */
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint8_t flags;
	const uint8_t *data; /* within packets.file; NULL for a packet that was cut off */
	size_t len;
};

struct packets {
	uint8_t *file;
	size_t size;
	struct packet *all;
	unsigned n, sections;
};

/* 0, -errno, or -EPROTO if a block, a length or a checksum is wrong. */
int packets_load(struct packets *p, const char *path);
void packets_fini(struct packets *p);

#endif
