/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ddp.h"

#include <errno.h>

#include "base/word.h"

int ddp_encode(void *buf, size_t size, const struct ddp_hdr *hdr)
{
	struct wcursor c = wcursor_init(buf, size);

	ddp_put(&c, hdr);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

static inline int ddp_decode_from(const void *buf, size_t len, struct ddp_hdr *hdr)
{
	struct rcursor c = rcursor_init(buf, len);

	ddp_get(&c, hdr);
	return c.bad ? -EBADMSG : (int)ddp_hdr_len(hdr->tagged);
}

/* The cursor's length is a constant, so the compiler emits one check and not one for each field. */
int ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr)
{
	return __builtin_expect(len >= DDP_HDR_MAX, 1) ? ddp_decode_from(buf, DDP_HDR_MAX, hdr)
						       : ddp_decode_from(buf, len, hdr);
}

uint32_t ddp_segment(uint32_t max, uint64_t at, uint32_t left)
{
	return (uint32_t)word_piece(at, left, max);
}
