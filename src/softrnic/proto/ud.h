/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.h -- datagrams between queue pairs (doc/wire.md s16). This file defines the header before the
 * payload of a UDP packet, and the GRH, which takes 40 bytes before the payload in the receiver's
 * memory.
 *
 * An address is a GID in the form of RoCE v2: an IPv6 address, or an IPv4 address mapped to IPv6.
 */
#ifndef PROTO_UD_H
#define PROTO_UD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UD_HEADER_LEN   24
#define UD_GID_LEN      16
#define UD_GRH_LEN      40
#define UD_PAYLOAD_MAX  4096 /* IBV_MTU_4096; a message is always one packet */
#define UD_DATAGRAM_MAX (UD_HEADER_LEN + UD_PAYLOAD_MAX)
#define UD_QPN_MAX      0xffffffu

/* UD_CREDIT states that the port has read the other port's packets up to a serial number. */
enum ud_opcode { UD_SEND = 0, UD_SEND_IMM = 1, UD_CREDIT = 2 };

struct ud_header {
	enum ud_opcode opcode;
	bool solicited;
	/* the sender requests a credit for packets up to this packet's serial number */
	bool asks;
	uint8_t serial; /* numbers the packets between two ports in their order of sending */
	uint32_t from_qpn, to_qpn; /* 24 bits */
	/* in UD_CREDIT: number of packets that may be sent without a credit */
	uint32_t qkey;
	/* immediate data in UD_SEND_IMM, else 0; in the byte order of the packet */
	uint32_t imm;
};

/* The source and the destination of a datagram. */
struct ud_path {
	uint8_t from[UD_GID_LEN], to[UD_GID_LEN];
	uint32_t scope; /* the interface of addresses that are valid on one link only; else 0 */
	uint8_t traffic_class, hop_limit;
};

/* A UDP packet. `bytes` has room for UD_DATAGRAM_MAX. */
struct ud_packet {
	struct ud_path path;
	uint16_t port; /* UDP port at the other end */
	bool asks;
	uint8_t serial; /* `asks` and `serial` have the values of the header */
	uint8_t *bytes;
	size_t len;
};

/* The UDP port is a part of each queue pair's number. */
static inline uint16_t ud_port_of(uint32_t qpn)
{
	return (uint16_t)(qpn >> 8);
}

/* Returns the number of bytes written (always UD_HEADER_LEN), or -ENOSPC. */
int ud_header_encode(void *buf, size_t size, const struct ud_header *h);
/* Decode a whole datagram of `len` bytes. Returns 0, or -EBADMSG if the datagram does not follow
 * doc/wire.md s16. */
int ud_header_decode(const void *buf, size_t len, struct ud_header *h);
/* Make a GRH for a payload of this length. With IPv4 the first half is unused and zero, and the
 * second half is an IPv4 header. */
void ud_grh_encode(uint8_t grh[UD_GRH_LEN], const struct ud_path *path, size_t payload);
/* Is this GID an IPv4 address mapped to IPv6? */
bool ud_gid_is_ipv4(const uint8_t gid[UD_GID_LEN]);

#endif
