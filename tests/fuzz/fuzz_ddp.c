/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: any ULPDU. Its DDP header stays the same after decoding and encoding, except for reserved
 * bits. A message with this header is cut into segments of the permitted length, which end at
 * aligned offsets.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/ddp.h"

static void cut(const struct ddp_hdr *hdr)
{
	uint32_t max = 8 + (hdr->msn ^ hdr->stag) % 2000, left = hdr->qn % 100000;
	uint64_t at = hdr->to + hdr->mo;

	while (left) {
		uint32_t n = ddp_segment(max, at, left);

		EXPECT(n > 0 && n <= max && n <= left);
		at += n;
		left -= n;
		EXPECT(!left || at % 8 == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t out[DDP_HDR_MAX];
	struct ddp_hdr hdr;
	int n = ddp_decode(data, len, &hdr);

	if (n < 0)
		return 0;
	EXPECT((size_t)n <= len && (unsigned)n == ddp_hdr_len(hdr.tagged));
	EXPECT(ddp_encode(out, sizeof(out), &hdr) == n);
	EXPECT(out[0] == (data[0] & 0xc3));
	EXPECT(memcmp(out + 1, data + 1, (size_t)n - 1) == 0);
	cut(&hdr);
	return 0;
}
