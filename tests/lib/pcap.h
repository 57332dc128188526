/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap.h -- get the TCP byte streams of a capture (classic pcap, Ethernet, IPv4). Segments are
 * ordered by sequence number. If a stream has a hole, only the bytes before the hole are kept. */
#ifndef TESTLIB_PCAP_H
#define TESTLIB_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_CONNS_MAX 64

struct pcap_endpoint {
	uint32_t addr;
	uint16_t port;
};

struct pcap_stream {
	struct pcap_endpoint from;
	bool fin; /* the sender closed the stream */
	uint8_t *data;
	size_t len;
	/* These members are private to pcap.c. */
	uint32_t isn;
	bool *seen;
	size_t size;
};

/* stream[0] has the bytes of the side that sent the first SYN. */
struct pcap_conn {
	struct pcap_stream stream[2];
};

struct pcap {
	struct pcap_conn conn[PCAP_CONNS_MAX];
	unsigned n;
};

/* Returns 0 or -errno (-EPROTO: the file is not such a capture). */
int pcap_load(struct pcap *pcap, const char *path);
void pcap_fini(struct pcap *pcap);
/* Returns the connection to this port, or NULL. */
const struct pcap_conn *pcap_find(const struct pcap *pcap, uint16_t port);

#endif
