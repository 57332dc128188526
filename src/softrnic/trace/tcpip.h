/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcpip.h -- IPv4 or IPv6 and TCP headers in front of bytes, with right checksums (RFC 791, RFC
 * 8200, RFC 9293). Pure.
 */
#ifndef TRACE_TCPIP_H
#define TRACE_TCPIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCPIP_HEADERS_MAX (40 + 28) /* IPv6, and TCP with options */
/* So that every packet's length fits the 16 bits that IP has for it. */
#define TCPIP_PAYLOAD_MAX (0xffffu - TCPIP_HEADERS_MAX)

enum tcp_flags { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

struct tcpip_end {
	uint8_t addr[16]; /* of IPv4 the first four */
	uint16_t port;    /* host order */
};

struct tcpip_segment {
	bool v6;
	const struct tcpip_end *from, *to;
	uint32_t seq, ack;
	uint8_t flags; /* enum tcp_flags */
};

/* With TCP_SYN there are options: this MSS, and the largest window scale. */
size_t tcpip_headers_len(const struct tcpip_segment *seg);
/* As many bytes at `headers`; len is at most TCPIP_PAYLOAD_MAX. */
void tcpip_encode(uint8_t *headers, const struct tcpip_segment *seg, const void *payload,
		  size_t len);

#endif
