/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/pcapng.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"

#define SECTION_HEADER  0x0a0d0d0au /* reads the same from either end */
#define INTERFACE       1u
#define ENHANCED_PACKET 6u
#define BYTE_ORDER_OURS 0x1a2b3c4du
#define BYTE_ORDER_SWAP 0x4d3c2b1au
#define LINKTYPE_RAW    101 /* begins with an IPv4 or IPv6 header */

enum { OPT_END = 0, OPT_COMMENT = 1, SHB_USERAPPL = 4, IF_NAME = 2, IF_TSRESOL = 9, EPB_FLAGS = 2 };

/* A section is in the byte order of who writes it, which its header tells. */
static void put16(struct wcursor *c, uint16_t v)
{
	wcursor_bytes(c, &v, sizeof(v));
}

static void put32(struct wcursor *c, uint32_t v)
{
	wcursor_bytes(c, &v, sizeof(v));
}

static uint32_t pad_of(size_t len)
{
	return (uint32_t)(-len & 3);
}

static uint32_t option_len(size_t len)
{
	return (uint32_t)(4 + len + pad_of(len));
}

static void put_padded(struct wcursor *c, const void *bytes, size_t len)
{
	wcursor_bytes(c, bytes, len);
	wcursor_bytes(c, "\0\0\0", pad_of(len));
}

static void put_option(struct wcursor *c, uint16_t code, const void *value, size_t len)
{
	put16(c, code);
	put16(c, (uint16_t)len);
	put_padded(c, value, len);
}

bool pcapng_is_section(const uint8_t first[PCAPNG_MAGIC_LEN])
{
	uint32_t type, order;

	memcpy(&type, first, sizeof(type));
	memcpy(&order, first + 8, sizeof(order));
	return type == SECTION_HEADER && (order == BYTE_ORDER_OURS || order == BYTE_ORDER_SWAP);
}

static void put_section_header(struct wcursor *c, const char *writer)
{
	uint32_t total = 28 + option_len(strlen(writer)) + 4;

	put32(c, SECTION_HEADER);
	put32(c, total);
	put32(c, BYTE_ORDER_OURS);
	put16(c, 1); /* version 1.0 */
	put16(c, 0);
	put32(c, UINT32_MAX); /* the length of the section: unknown */
	put32(c, UINT32_MAX);
	put_option(c, SHB_USERAPPL, writer, strlen(writer));
	put_option(c, OPT_END, NULL, 0);
	put32(c, total);
}

static void put_interface(struct wcursor *c, const char *name)
{
	uint8_t nanoseconds = 9;
	uint32_t total = 20 + option_len(strlen(name)) + option_len(1) + 4;

	put32(c, INTERFACE);
	put32(c, total);
	put16(c, LINKTYPE_RAW);
	put16(c, 0);
	put32(c, 0); /* packets have any length: other sections may have another limit */
	put_option(c, IF_NAME, name, strlen(name));
	put_option(c, IF_TSRESOL, &nanoseconds, 1);
	put_option(c, OPT_END, NULL, 0);
	put32(c, total);
}

size_t pcapng_encode_section(void *buf, size_t size, const char *writer, const char *interface)
{
	struct wcursor c = wcursor_init(buf, size);

	put_section_header(&c, writer);
	put_interface(&c, interface);
	return c.bad ? 0 : wcursor_len(&c);
}

static size_t comment_len(const struct pcapng_packet *packet)
{
	return packet->comment ? strnlen(packet->comment, PCAPNG_COMMENT_MAX) : 0;
}

static uint32_t tail_len(const struct pcapng_packet *packet)
{
	size_t comment = comment_len(packet);

	return pad_of(packet->captured) + (comment ? option_len(comment) : 0) + option_len(4) +
	       option_len(0) + 4;
}

static uint32_t block_len(const struct pcapng_packet *packet)
{
	return PCAPNG_HEAD + packet->captured + tail_len(packet);
}

void pcapng_encode_head(uint8_t head[PCAPNG_HEAD], const struct pcapng_packet *packet)
{
	struct wcursor c = wcursor_init(head, PCAPNG_HEAD);

	put32(&c, ENHANCED_PACKET);
	put32(&c, block_len(packet));
	put32(&c, 0); /* the section's first interface */
	put32(&c, (uint32_t)(packet->time_ns >> 32));
	put32(&c, (uint32_t)packet->time_ns);
	put32(&c, packet->captured);
	put32(&c, packet->original);
	assert(!c.bad);
}

size_t pcapng_encode_tail(uint8_t tail[PCAPNG_TAIL_MAX], const struct pcapng_packet *packet)
{
	struct wcursor c = wcursor_init(tail, PCAPNG_TAIL_MAX);
	uint32_t flags = packet->outbound ? 2 : 1;
	size_t comment = comment_len(packet);

	wcursor_bytes(&c, "\0\0\0", pad_of(packet->captured));
	if (comment)
		put_option(&c, OPT_COMMENT, packet->comment, comment);
	put_option(&c, EPB_FLAGS, &flags, sizeof(flags));
	put_option(&c, OPT_END, NULL, 0);
	put32(&c, block_len(packet));
	assert(!c.bad);
	return wcursor_len(&c);
}
