/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng.h -- the blocks of a capture file (draft-ietf-opsawg-pcapng): a section with one
 * interface, and packets of it. Pure: encodes into the caller's memory.
 *
 * A reader takes a packet's interface from the section that began last. As all our sections have
 * the same single interface, sections of several processes may be mixed in one file.
 */
#ifndef TRACE_PCAPNG_H
#define TRACE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_MAGIC_LEN   12  /* bytes that tell a capture file from others */
#define PCAPNG_SECTION_MAX 256 /* of names as short as ours */
#define PCAPNG_COMMENT_MAX 64
#define PCAPNG_HEAD        28 /* in front of a packet's bytes */
#define PCAPNG_TAIL_MAX    (3 + 4 + PCAPNG_COMMENT_MAX + 3 + 8 + 4 + 4)

struct pcapng_packet {
	uint64_t time_ns;            /* since 1970 */
	uint32_t captured, original; /* bytes: how many follow, and how many there were */
	bool outbound;
	const char *comment; /* or NULL; cut off after PCAPNG_COMMENT_MAX bytes */
};

/* Does a file that begins so hold a capture, of either byte order? */
bool pcapng_is_section(const uint8_t first[PCAPNG_MAGIC_LEN]);

/* Section header and interface description: their length, 0 if there is no room for them. */
size_t pcapng_encode_section(void *buf, size_t size, const char *writer, const char *interface);

/*
 * A packet's block is its head, its bytes, and its tail: pads, options and the length again. The
 * tail's length is returned.
 */
void pcapng_encode_head(uint8_t head[PCAPNG_HEAD], const struct pcapng_packet *packet);
size_t pcapng_encode_tail(uint8_t tail[PCAPNG_TAIL_MAX], const struct pcapng_packet *packet);

#endif
