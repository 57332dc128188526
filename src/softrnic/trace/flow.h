/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.h -- makes the packets of a TCP connection for a capture file, with IP and TCP headers.
 * Pure.
 *
 * The kernel's own segments and sequence numbers can only be read with a privilege. A flow
 * generates packets that carry the same bytes, so that a reader can reassemble the stream:
 *
 *   flow_open    SYN, SYN|ACK, ACK: the handshake, from the end that connected
 *   flow_data    PSH|ACK and the payload; sequence numbers without a gap. The other end
 *                adds an ACK if it has sent nothing since the last ACK_AFTER bytes (flow.c)
 *   flow_fin     FIN|ACK, one for each end; the other end acknowledges the second one
 *   flow_reset   RST|ACK; nothing follows it
 *
 * The functions tcpip_...() make the headers: IPv4 (RFC 791) or IPv6 (RFC 8200), then TCP (RFC
 * 9293), with correct checksums. A SYN carries two options: the MSS TCPIP_PAYLOAD_MAX, and the
 * largest window scale. The window is always open.
 */
#ifndef TRACE_FLOW_H
#define TRACE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCPIP_HEADERS_MAX (40 + 28) /* IPv6, and TCP with options */
/* Limit of a packet's payload. IP's length field has 16 bits. */
#define TCPIP_PAYLOAD_MAX (0xffffu - TCPIP_HEADERS_MAX)

enum tcp_flags { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

struct tcpip_end {
	uint8_t addr[16]; /* IPv4 uses the first four bytes */
	uint16_t port;    /* host order */
};

struct tcpip_segment {
	bool v6;
	const struct tcpip_end *from, *to;
	uint32_t seq, ack;
	uint8_t flags; /* enum tcp_flags */
};

size_t tcpip_headers_len(const struct tcpip_segment *seg);
/* Writes tcpip_headers_len() bytes; len, the payload's length, is at most TCPIP_PAYLOAD_MAX. */
void tcpip_encode(uint8_t *headers, const struct tcpip_segment *seg, const void *payload,
		  size_t len);

/* A datagram (RFC 768) with the header fields of the real packet. */
struct udpip_packet {
	bool v6;
	struct tcpip_end from, to;
	uint8_t traffic_class, hop_limit;
};

#define UDPIP_HEADERS_MAX (40 + 8)

size_t udpip_headers_len(const struct udpip_packet *p);
/* Writes udpip_headers_len() bytes; len, the payload's length, is at most TCPIP_PAYLOAD_MAX. */
void udpip_encode(uint8_t *headers, const struct udpip_packet *p, const void *payload, size_t len);

enum flow_side { FLOW_US, FLOW_PEER };

struct flow {
	bool v6;
	struct tcpip_end end[2]; /* by enum flow_side */
	uint32_t next[2];        /* sequence numbers */
	uint32_t unacked[2];     /* bytes since the other side's last packet */
	bool fin[2];
	bool over; /* true after a reset: no packet follows */
};

/*
 * Called once for each generated packet, whose payload has `len` bytes (0: no payload). `to` leads
 * to the payload, and to memory for the headers directly in front of it.
 */
typedef void flow_emit_fn(void *to, const struct tcpip_segment *seg, enum flow_side from,
			  size_t len);

/* Sequence numbers start at a value from the clock (RFC 9293 s3.4.1), so that a later connection
 * between the same ports starts at other numbers. */
void flow_init(struct flow *f, uint64_t now_ns);
void flow_open(struct flow *f, enum flow_side initiator, flow_emit_fn *emit, void *to);
void flow_data(struct flow *f, enum flow_side from, size_t len, flow_emit_fn *emit, void *to);
/* The caller calls flow_fin() once for each end. Later data of this end are ignored. */
void flow_fin(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to);
void flow_reset(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to);

#endif
