/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng.h -- the blocks of a capture file (draft-ietf-opsawg-pcapng). Pure: encodes into the
 * caller's memory.
 *
 * The file (SOFTRNIC_TRACE), in the byte order of its writer:
 *
 *   Section Header Block       byte order, version 1.0, length unknown; shb_userappl: the writer
 *   Interface Description      link type RAW (101), no snap length; if_name; if_tsresol: 1e-9 s
 *   Enhanced Packet Block ...  interface 0, time, captured and original length;
 *                              IP header, TCP or UDP header, payload (flow.h); padding;
 *                              opt_comment on some; epb_flags: inbound or outbound
 *
 * A packet's block is encoded in two parts around its bytes: the head (PCAPNG_HEAD bytes) and the
 * tail (padding, options, the length again).
 *
 * Several processes may write to one file. Each begins a section of its own and appends whole
 * blocks. A reader assigns a packet to the interface of the section that began last. All these
 * sections describe the same single interface, so blocks of several writers may alternate.
 */
#ifndef TRACE_PCAPNG_H
#define TRACE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_MAGIC_LEN   12  /* bytes that identify a capture file */
#define PCAPNG_SECTION_MAX 256 /* enough for the writer and interface names in use */
#define PCAPNG_COMMENT_MAX 64
#define PCAPNG_HEAD        28 /* length of the block's part in front of a packet's bytes */
#define PCAPNG_TAIL_MAX    (3 + 4 + PCAPNG_COMMENT_MAX + 3 + 8 + 4 + 4)

struct pcapng_packet {
	uint64_t time_ns;            /* since 1970 */
	uint32_t captured, original; /* number of bytes in the file, and in the original packet */
	bool outbound;
	/* NULL: no comment; a longer one is cut off after PCAPNG_COMMENT_MAX bytes */
	const char *comment;
};

/* Do these first bytes of a file identify a capture? Both byte orders are accepted. */
bool pcapng_is_section(const uint8_t first[PCAPNG_MAGIC_LEN]);

/* Encode the section header and the interface description. Returns their length, or 0 if `size` is
 * too small. */
size_t pcapng_encode_section(void *buf, size_t size, const char *writer, const char *interface);

/* The two parts around a packet's bytes. The second function returns the tail's length. */
void pcapng_encode_head(uint8_t head[PCAPNG_HEAD], const struct pcapng_packet *packet);
size_t pcapng_encode_tail(uint8_t tail[PCAPNG_TAIL_MAX], const struct pcapng_packet *packet);

#endif
