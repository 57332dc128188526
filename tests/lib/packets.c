/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/packets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

#define SECTION     0x0a0d0d0au
#define INTERFACE   1u
#define PACKET      6u
#define OPT_COMMENT 1
#define OPT_FLAGS   2

static uint32_t packets_word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t packets_half(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Compute the Internet checksum of the bytes; the result is 0 if the bytes contain a correct
 * checksum. */
static uint16_t packets_sum(uint32_t start, const uint8_t *p, size_t len)
{
	uint64_t s = start;

	for (size_t i = 0; i < len; i++)
		s += i % 2 ? p[i] : (uint64_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static int packets_parse_tcp(struct packet *k, const uint8_t *tcp, size_t len, bool whole)
{
	struct rcursor c = rcursor_init(tcp, len);
	size_t hdr;

	k->sport = rcursor_be16(&c);
	k->dport = rcursor_be16(&c);
	k->seq = rcursor_be32(&c);
	k->ack = rcursor_be32(&c);
	hdr = (rcursor_u8(&c) >> 4) * 4u;
	k->flags = rcursor_u8(&c);
	rcursor_bytes(&c, hdr - 14);
	k->data = whole ? c.p : NULL;
	k->len = len - hdr;
	return c.bad ? -EPROTO : 0;
}

/* The checksum covers a pseudo header, too: addresses, protocol 6, length. */
static bool packets_tcp_sum_is_right(const struct packet *k, const uint8_t *tcp, size_t len)
{
	size_t alen = k->v6 ? 16 : 4;
	uint8_t both[32];

	memcpy(both, k->src, alen);
	memcpy(both + alen, k->dst, alen);
	return packets_sum(6 + (uint32_t)len + (uint16_t)~packets_sum(0, both, 2 * alen), tcp,
			   len) == 0;
}

static int packets_parse_ip(struct packet *k, const uint8_t *ip)
{
	bool whole = k->captured == k->original;
	size_t hdr = ip[0] >> 4 == 6 ? 40 : 20, alen = hdr == 40 ? 16 : 4, total;

	k->v6 = hdr == 40;
	if (k->captured < hdr + 20)
		return -EPROTO;
	memcpy(k->src, ip + hdr - 2 * alen, alen);
	memcpy(k->dst, ip + hdr - alen, alen);
	total = (size_t)(k->v6 ? ip[4] << 8 | ip[5] : ip[2] << 8 | ip[3]) + (k->v6 ? 40 : 0);
	if (total != k->original || (k->v6 ? ip[6] : ip[9]) != 6)
		return -EPROTO;
	if (!k->v6 && packets_sum(0, ip, hdr))
		return -EPROTO;
	if (whole && !packets_tcp_sum_is_right(k, ip + hdr, total - hdr))
		return -EPROTO;
	return packets_parse_tcp(k, ip + hdr, total - hdr, whole);
}

static int packets_parse_options(struct packet *k, const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 4 && packets_half(p)) {
		uint16_t len = packets_half(p + 2);

		if (end - p < 4 + len)
			return -EPROTO;
		if (packets_half(p) == OPT_COMMENT)
			snprintf(k->comment, sizeof(k->comment), "%.*s", len, (const char *)p + 4);
		if (packets_half(p) == OPT_FLAGS)
			k->direction = packets_word(p + 4);
		p += 4 + (len + 3) / 4 * 4;
	}
	return end - p == 4 && packets_half(p) == 0 && packets_half(p + 2) == 0 ? 0 : -EPROTO;
}

static int packets_parse_packet(struct packet *k, const uint8_t *block, uint32_t total)
{
	uint32_t padded;
	int ret;

	k->time_ns = (uint64_t)packets_word(block + 12) << 32 | packets_word(block + 16);
	k->captured = packets_word(block + 20);
	k->original = packets_word(block + 24);
	padded = (k->captured + 3) / 4 * 4;
	if (total < 32 || padded > total - 32 || packets_word(block + 8) != 0)
		return -EPROTO;
	ret = packets_parse_options(k, block + 28 + padded, block + total - 4);
	return ret ? ret : packets_parse_ip(k, block + 28);
}

static int packets_parse_block(struct packets *p, const uint8_t *block, uint32_t total)
{
	struct packet *more;

	if (packets_word(block) == SECTION)
		p->sections++;
	if (packets_word(block) == SECTION || packets_word(block) == INTERFACE)
		return 0;
	if (packets_word(block) != PACKET || !p->sections)
		return -EPROTO;
	more = realloc(p->all, (p->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->all = more;
	memset(&more[p->n], 0, sizeof(*more));
	return packets_parse_packet(&more[p->n++], block, total);
}

static int packets_parse_file(struct packets *p)
{
	const uint8_t *at = p->file, *end = p->file + p->size;
	int ret = 0;

	while (!ret && at < end) {
		uint32_t total = end - at >= 12 ? packets_word(at + 4) : 0;

		if (total < 12 || total % 4 || total > (size_t)(end - at) ||
		    packets_word(at + total - 4) != total)
			return -EPROTO;
		ret = packets_parse_block(p, at, total);
		at += total;
	}
	return ret;
}

int packets_load(struct packets *p, const char *path)
{
	FILE *f = fopen(path, "rbe");
	int ret = -ENOMEM;
	long size;

	*p = (struct packets){0};
	if (!f)
		return -errno;
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	p->file = malloc((size_t)size + 1);
	p->size = p->file ? fread(p->file, 1, (size_t)size, f) : 0;
	fclose(f);
	if (p->file)
		ret = packets_parse_file(p);
	if (ret)
		packets_fini(p);
	return ret;
}

void packets_fini(struct packets *p)
{
	free(p->file);
	free(p->all);
	*p = (struct packets){0};
}
