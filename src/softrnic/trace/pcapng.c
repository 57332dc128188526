/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/pcapng.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"

#define SECTION_HEADER  0x0a0d0d0au /* the same in both byte orders */
#define INTERFACE       1u
#define ENHANCED_PACKET 6u
#define BYTE_ORDER_OURS 0x1a2b3c4du
#define BYTE_ORDER_SWAP 0x4d3c2b1au
#define LINKTYPE_RAW    101 /* packets begin with an IPv4 or IPv6 header */

enum { OPT_END = 0, OPT_COMMENT = 1, SHB_USERAPPL = 4, IF_NAME = 2, IF_TSRESOL = 9, EPB_FLAGS = 2 };

/* Integers are written in the host's byte order, which the section header shows to readers. */
static void pcapng_put16(struct wcursor *c, uint16_t v)
{
	wcursor_bytes(c, &v, sizeof(v));
}

static void pcapng_put32(struct wcursor *c, uint32_t v)
{
	wcursor_bytes(c, &v, sizeof(v));
}

static uint32_t pcapng_pad(size_t len)
{
	return (uint32_t)(-len & 3);
}

static uint32_t pcapng_option_len(size_t len)
{
	return (uint32_t)(4 + len + pcapng_pad(len));
}

static void pcapng_put_option(struct wcursor *c, uint16_t code, const void *value, size_t len)
{
	pcapng_put16(c, code);
	pcapng_put16(c, (uint16_t)len);
	wcursor_bytes(c, value, len);
	wcursor_bytes(c, "\0\0\0", pcapng_pad(len));
}

bool pcapng_is_section(const uint8_t first[PCAPNG_MAGIC_LEN])
{
	uint32_t type, order;

	memcpy(&type, first, sizeof(type));
	memcpy(&order, first + 8, sizeof(order));
	return type == SECTION_HEADER && (order == BYTE_ORDER_OURS || order == BYTE_ORDER_SWAP);
}

static void pcapng_put_section(struct wcursor *c, const char *writer)
{
	uint32_t total = 28 + pcapng_option_len(strlen(writer)) + 4;

	pcapng_put32(c, SECTION_HEADER);
	pcapng_put32(c, total);
	pcapng_put32(c, BYTE_ORDER_OURS);
	pcapng_put16(c, 1); /* version 1.0 */
	pcapng_put16(c, 0);
	pcapng_put32(c, UINT32_MAX); /* length of the section: unknown */
	pcapng_put32(c, UINT32_MAX);
	pcapng_put_option(c, SHB_USERAPPL, writer, strlen(writer));
	pcapng_put_option(c, OPT_END, NULL, 0);
	pcapng_put32(c, total);
}

static void pcapng_put_interface(struct wcursor *c, const char *name)
{
	uint8_t nanoseconds = 9;
	uint32_t total = 20 + pcapng_option_len(strlen(name)) + pcapng_option_len(1) + 4;

	pcapng_put32(c, INTERFACE);
	pcapng_put32(c, total);
	pcapng_put16(c, LINKTYPE_RAW);
	pcapng_put16(c, 0);
	/* snap length: no limit, because other sections of the file may have longer packets */
	pcapng_put32(c, 0);
	pcapng_put_option(c, IF_NAME, name, strlen(name));
	pcapng_put_option(c, IF_TSRESOL, &nanoseconds, 1);
	pcapng_put_option(c, OPT_END, NULL, 0);
	pcapng_put32(c, total);
}

size_t pcapng_encode_section(void *buf, size_t size, const char *writer, const char *interface)
{
	struct wcursor c = wcursor_init(buf, size);

	pcapng_put_section(&c, writer);
	pcapng_put_interface(&c, interface);
	return c.bad ? 0 : wcursor_len(&c);
}

static size_t pcapng_comment_len(const struct pcapng_packet *packet)
{
	return packet->comment ? strnlen(packet->comment, PCAPNG_COMMENT_MAX) : 0;
}

static uint32_t pcapng_block_len(const struct pcapng_packet *packet)
{
	size_t comment = pcapng_comment_len(packet);

	return PCAPNG_HEAD + packet->captured + pcapng_pad(packet->captured) +
	       (comment ? pcapng_option_len(comment) : 0) + pcapng_option_len(4) +
	       pcapng_option_len(0) + 4;
}

void pcapng_encode_head(uint8_t head[PCAPNG_HEAD], const struct pcapng_packet *packet)
{
	struct wcursor c = wcursor_init(head, PCAPNG_HEAD);

	pcapng_put32(&c, ENHANCED_PACKET);
	pcapng_put32(&c, pcapng_block_len(packet));
	pcapng_put32(&c, 0); /* interface 0, the only one of the section */
	pcapng_put32(&c, (uint32_t)(packet->time_ns >> 32));
	pcapng_put32(&c, (uint32_t)packet->time_ns);
	pcapng_put32(&c, packet->captured);
	pcapng_put32(&c, packet->original);
	assert(!c.bad);
}

size_t pcapng_encode_tail(uint8_t tail[PCAPNG_TAIL_MAX], const struct pcapng_packet *packet)
{
	struct wcursor c = wcursor_init(tail, PCAPNG_TAIL_MAX);
	uint32_t flags = packet->outbound ? 2 : 1;
	size_t comment = pcapng_comment_len(packet);

	wcursor_bytes(&c, "\0\0\0", pcapng_pad(packet->captured));
	if (comment)
		pcapng_put_option(&c, OPT_COMMENT, packet->comment, comment);
	pcapng_put_option(&c, EPB_FLAGS, &flags, sizeof(flags));
	pcapng_put_option(&c, OPT_END, NULL, 0);
	pcapng_put32(&c, pcapng_block_len(packet));
	assert(!c.bad);
	return wcursor_len(&c);
}
