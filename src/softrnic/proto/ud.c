/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ud.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define UD_MAGIC          0x73525544u /* the bytes "sRUD" */
#define UD_VERSION        1u
#define UD_FLAG_SOLICITED 1u
#define UD_FLAG_ASKS      2u

int ud_header_encode(void *buf, size_t size, const struct ud_header *h)
{
	struct wcursor c = wcursor_init(buf, size);

	wcursor_be32(&c, UD_MAGIC);
	wcursor_u8(&c, UD_VERSION);
	wcursor_u8(&c, (uint8_t)h->opcode);
	wcursor_u8(&c, (uint8_t)((h->solicited ? UD_FLAG_SOLICITED : 0) |
				 (h->asks ? UD_FLAG_ASKS : 0)));
	wcursor_u8(&c, h->serial);
	wcursor_be32(&c, h->from_qpn);
	wcursor_be32(&c, h->to_qpn);
	wcursor_be32(&c, h->qkey);
	wcursor_bytes(&c, &h->imm, sizeof(h->imm));
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

/* Read the start of a datagram. Returns false for another protocol or version. */
static bool ud_get_head(struct rcursor *c, struct ud_header *h)
{
	uint32_t magic = rcursor_be32(c);
	uint8_t version = rcursor_u8(c), opcode = rcursor_u8(c);
	uint8_t flags = rcursor_u8(c);

	h->opcode = (enum ud_opcode)opcode;
	h->solicited = flags & UD_FLAG_SOLICITED;
	h->asks = flags & UD_FLAG_ASKS;
	h->serial = rcursor_u8(c);
	return magic == UD_MAGIC && version == UD_VERSION && opcode <= UD_CREDIT &&
	       !(flags & ~(UD_FLAG_SOLICITED | UD_FLAG_ASKS));
}

/* Are all fields that the opcode does not use 0? */
static bool ud_is_consistent(const struct ud_header *h, size_t len)
{
	switch (h->opcode) {
	case UD_SEND:
		return !h->imm;
	case UD_SEND_IMM:
		return true;
	case UD_CREDIT:
		return !h->imm && !h->solicited && !h->asks && len == UD_HEADER_LEN;
	}
	return false;
}

int ud_header_decode(const void *buf, size_t len, struct ud_header *h)
{
	struct rcursor c = rcursor_init(buf, len);
	const uint8_t *imm;

	*h = (struct ud_header){.opcode = UD_SEND};
	if (len < UD_HEADER_LEN || len > UD_DATAGRAM_MAX || !ud_get_head(&c, h))
		return -EBADMSG;
	h->from_qpn = rcursor_be32(&c);
	h->to_qpn = rcursor_be32(&c);
	h->qkey = rcursor_be32(&c);
	imm = rcursor_bytes(&c, sizeof(h->imm));
	if (!imm || h->from_qpn > UD_QPN_MAX || h->to_qpn > UD_QPN_MAX)
		return -EBADMSG;
	memcpy(&h->imm, imm, sizeof(h->imm));
	return ud_is_consistent(h, len) ? 0 : -EBADMSG;
}

/* --- GRH ------------------------------------------------------------------------------------ */

enum {
	IPV4_LEN = 20,
	IPV4_CHECKSUM_AT = 10,
	IPV4_ADDRESS_AT = 12, /* place of the IPv4 address in a GID */
	IPV6_LEN = 40,
	UDP_LEN = 8,
	PROTOCOL_UDP = 17,
};

bool ud_gid_is_ipv4(const uint8_t gid[UD_GID_LEN])
{
	static const uint8_t prefix[IPV4_ADDRESS_AT] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

/* The checksum of a whole header (RFC 1071). */
static uint16_t ud_checksum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Write an IPv4 header without options (RFC 791 s3.1). */
static void ud_put_ipv4(uint8_t *to, const struct ud_path *path, size_t len)
{
	struct wcursor c = wcursor_init(to, IPV4_LEN);
	uint16_t sum;

	wcursor_u8(&c, 0x45);
	wcursor_u8(&c, path->traffic_class);
	wcursor_be16(&c, (uint16_t)(IPV4_LEN + len));
	wcursor_be32(&c, 0);
	wcursor_u8(&c, path->hop_limit);
	wcursor_u8(&c, PROTOCOL_UDP);
	wcursor_be16(&c, 0);
	wcursor_bytes(&c, path->from + IPV4_ADDRESS_AT, UD_GID_LEN - IPV4_ADDRESS_AT);
	wcursor_bytes(&c, path->to + IPV4_ADDRESS_AT, UD_GID_LEN - IPV4_ADDRESS_AT);
	sum = ud_checksum(to, IPV4_LEN);
	to[IPV4_CHECKSUM_AT] = (uint8_t)(sum >> 8);
	to[IPV4_CHECKSUM_AT + 1] = (uint8_t)sum;
}

/* Write an IPv6 header (RFC 8200 s3). */
static void ud_put_ipv6(uint8_t *to, const struct ud_path *path, size_t len)
{
	struct wcursor c = wcursor_init(to, IPV6_LEN);

	wcursor_be32(&c, 6u << 28 | (uint32_t)path->traffic_class << 20);
	wcursor_be16(&c, (uint16_t)len);
	wcursor_u8(&c, PROTOCOL_UDP);
	wcursor_u8(&c, path->hop_limit);
	wcursor_bytes(&c, path->from, UD_GID_LEN);
	wcursor_bytes(&c, path->to, UD_GID_LEN);
}

void ud_grh_encode(uint8_t grh[UD_GRH_LEN], const struct ud_path *path, size_t payload)
{
	size_t len = UDP_LEN + UD_HEADER_LEN + payload;

	memset(grh, 0, UD_GRH_LEN);
	if (ud_gid_is_ipv4(path->from))
		ud_put_ipv4(grh + UD_GRH_LEN - IPV4_LEN, path, len);
	else
		ud_put_ipv6(grh, path, len);
}
