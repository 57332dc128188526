/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.h -- DDP segment headers and segmentation (RFC 5041 s4, s5). */
#ifndef PROTO_DDP_H
#define PROTO_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

#define DDP_VERSION      1
#define DDP_TAGGED_HDR   14
#define DDP_UNTAGGED_HDR 18
#define DDP_HDR_MAX      18
/* the first message's number on every queue; the number wraps (RFC 5041 s4.3) */
#define DDP_FIRST_MSN 1u

/* Queue numbers. RFC 5040 s5.1 defines 0 to 2, and RFC 7306 s7 defines 3. DDP_QN_CONTROL is our own
 * addition: it carries messages between the devices of two peers that have agreed to our
 * extensions. Each queue has its own MSN space in each direction. */
enum ddp_qn { DDP_QN_SEND, DDP_QN_REQUEST, DDP_QN_TERMINATE, DDP_QN_RESPONSE, DDP_QN_CONTROL };
#define DDP_QN_COUNT 5

/* A tagged segment uses `stag` and `to`; an untagged segment uses `ulp_word`, `qn`, `msn` and `mo`.
 * ddp_get() sets the unused members to 0. */
struct ddp_hdr {
	bool tagged;
	bool last;
	uint8_t version;
	uint8_t ulp;       /* RDMAP control byte */
	uint32_t ulp_word; /* the STag to invalidate, or 0 */
	uint32_t stag;
	uint64_t to;
	uint32_t qn, msn, mo;
};

/* Copy field by field: for a structure assignment of this size GCC may emit an instruction that
 * takes 30 cycles or more. */
static inline void ddp_hdr_copy(struct ddp_hdr *to, const struct ddp_hdr *from)
{
	to->tagged = from->tagged;
	to->last = from->last;
	to->version = from->version;
	to->ulp = from->ulp;
	to->ulp_word = from->ulp_word;
	to->stag = from->stag;
	to->to = from->to;
	to->qn = from->qn;
	to->msn = from->msn;
	to->mo = from->mo;
}

static inline unsigned ddp_hdr_len(bool tagged)
{
	return tagged ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR;
}

#define DDP_CTRL_TAGGED  0x80
#define DDP_CTRL_LAST    0x40
#define DDP_CTRL_VERSION 0x03

/* Returns the number of bytes written, or -ENOSPC. */
int ddp_encode(void *buf, size_t size, const struct ddp_hdr *hdr);
/* Returns the header's length, or -EBADMSG if `len` is smaller than the header. Any version is
 * accepted and stored in *hdr, because the error for a wrong version depends on the buffer model
 * (RFC 5041 s8). */
int ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr);

/* These two encode and decode the header at the cursor's position, in the middle of a message. */
static inline void ddp_put(struct wcursor *c, const struct ddp_hdr *hdr)
{
	wcursor_u8(c,
		   (uint8_t)((hdr->tagged ? DDP_CTRL_TAGGED : 0) | (hdr->last ? DDP_CTRL_LAST : 0) |
			     (hdr->version & DDP_CTRL_VERSION)));
	wcursor_u8(c, hdr->ulp);
	if (hdr->tagged) {
		wcursor_be32(c, hdr->stag);
		wcursor_be64(c, hdr->to);
	} else {
		wcursor_be32(c, hdr->ulp_word);
		wcursor_be32(c, hdr->qn);
		wcursor_be32(c, hdr->msn);
		wcursor_be32(c, hdr->mo);
	}
}
static inline void ddp_get(struct rcursor *c, struct ddp_hdr *hdr)
{
	uint16_t ctrl = rcursor_be16(c); /* DDP's control byte and RDMAP's control byte */

	*hdr = (struct ddp_hdr){
		.tagged = ctrl >> 8 & DDP_CTRL_TAGGED,
		.last = ctrl >> 8 & DDP_CTRL_LAST,
		.version = ctrl >> 8 & DDP_CTRL_VERSION,
		.ulp = ctrl & 0xff,
	};
	if (hdr->tagged) {
		hdr->stag = rcursor_be32(c);
		hdr->to = rcursor_be64(c);
	} else {
		hdr->ulp_word = rcursor_be32(c);
		hdr->qn = rcursor_be32(c);
		hdr->msn = rcursor_be32(c);
		hdr->mo = rcursor_be32(c);
	}
}

/* The largest payload of one segment. */
static inline uint32_t ddp_payload_max(uint32_t mulpdu, bool tagged)
{
	return mulpdu - ddp_hdr_len(tagged);
}

/*
 * Returns the length of the next segment of a message, at most max bytes, with max at least 8.
 * `left` bytes of the message remain, and the first of these bytes has the target offset `at`. A
 * message is cut only at offsets that are multiples of 8, so that no aligned word is split between
 * two segments.
 */
uint32_t ddp_segment(uint32_t max, uint64_t at, uint32_t left);

#endif
