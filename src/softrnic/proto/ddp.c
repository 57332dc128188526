/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ddp.h"

#include <errno.h>

#define CUT 8u /* the word that must not be split */

void ddp_get(struct rcursor *c, struct ddp_hdr *hdr)
{
	uint8_t ctrl = rcursor_u8(c);

	*hdr = (struct ddp_hdr){
		.tagged = ctrl & DDP_CTRL_TAGGED,
		.last = ctrl & DDP_CTRL_LAST,
		.version = ctrl & DDP_CTRL_VERSION,
	};
	hdr->ulp = rcursor_u8(c);
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

int ddp_encode(void *buf, size_t size, const struct ddp_hdr *hdr)
{
	struct wcursor c = wcursor_init(buf, size);

	ddp_put(&c, hdr);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

int ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr)
{
	struct rcursor c = rcursor_init(buf, len);

	ddp_get(&c, hdr);
	return c.bad ? -EBADMSG : (int)ddp_hdr_len(hdr->tagged);
}

uint32_t ddp_segment(uint32_t max, uint64_t at, uint32_t left)
{
	if (left <= max)
		return left;
	/* With max >= CUT at least one cut lies in (0, max]. */
	return max - (uint32_t)((at + max) % CUT);
}
