/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.h -- datagrams of queue pairs (doc/wire.md s16): the header before the payload of a UDP packet,
 * and the 40 bytes that a receiver finds before the payload in its memory.
 *
 * An address is a GID as RoCE v2 has it: an IPv6 address, or an IPv4 address in IPv6's form.
 */
#ifndef PROTO_UD_H
#define PROTO_UD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UD_HEADER_LEN   24
#define UD_GID_LEN      16
#define UD_GRH_LEN      40
#define UD_PAYLOAD_MAX  4096 /* IBV_MTU_4096: a message is one packet */
#define UD_DATAGRAM_MAX (UD_HEADER_LEN + UD_PAYLOAD_MAX)
#define UD_QPN_MAX      0xffffffu

/* UD_CREDIT: the port has read the packets of the other port up to a serial number. */
enum ud_opcode { UD_SEND = 0, UD_SEND_IMM = 1, UD_CREDIT = 2 };

struct ud_header {
	enum ud_opcode opcode;
	bool solicited;
	bool asks;      /* for a credit that has this packet's serial number */
	uint8_t serial; /* of the packets between two ports, in the order that they are sent */
	uint32_t from_qpn, to_qpn; /* 24 bits */
	uint32_t qkey;             /* of UD_CREDIT: how many packets may be under way */
	uint32_t imm; /* of UD_SEND_IMM, else 0; its bytes in the order of the packet */
};

/* Where a datagram comes from and goes to. */
struct ud_path {
	uint8_t from[UD_GID_LEN], to[UD_GID_LEN];
	uint32_t scope; /* the interface of addresses that are valid on one link only; else 0 */
	uint8_t traffic_class, hop_limit;
};

/* A UDP packet. `bytes` has room for UD_DATAGRAM_MAX. */
struct ud_packet {
	struct ud_path path;
	uint16_t port; /* UDP's, of the other end */
	bool asks;
	uint8_t serial; /* both: as in the header */
	uint8_t *bytes;
	size_t len;
};

/* The UDP port is a part of a queue pair's number. */
static inline uint16_t ud_port_of(uint32_t qpn)
{
	return (uint16_t)(qpn >> 8);
}

/* Length written, UD_HEADER_LEN, or -ENOSPC. */
int ud_header_encode(void *buf, size_t size, const struct ud_header *h);
/* Of a whole datagram of `len` bytes. 0, or -EBADMSG: it is not one of ours. */
int ud_header_decode(const void *buf, size_t len, struct ud_header *h);
/* A GRH for a payload of that length. With IPv4 its first half is unused and zero, and the second
 * half is an IPv4 header. */
void ud_grh_encode(uint8_t grh[UD_GRH_LEN], const struct ud_path *path, size_t payload);
/* An IPv4 address in IPv6's form. */
bool ud_gid_is_ipv4(const uint8_t gid[UD_GID_LEN]);

#endif
