/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any start-up frame. The frame stays the same after decoding, encoding and decoding
 * again. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/mpa.h"

/* Encode the decoded frame. */
static size_t normalize(const uint8_t *data, size_t len, uint8_t *out)
{
	struct mpa_start start;
	const uint8_t *pdata;
	int total = mpa_start_decode(data, len, &start, &pdata), n;

	if (total < 0)
		return 0;
	EXPECT((size_t)total <= len && total <= MPA_START_MAX);
	EXPECT(mpa_start_decode_header(data) == total);
	n = mpa_start_encode(out, MPA_START_MAX, &start, pdata);
	EXPECT(n == total);
	return (size_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t once[MPA_START_MAX], twice[MPA_START_MAX];
	size_t n = normalize(data, len, once);

	if (!n)
		return 0;
	EXPECT(normalize(once, n, twice) == n);
	EXPECT(memcmp(once, twice, n) == 0);
	/* Only flag bits without a meaning may differ. */
	EXPECT(memcmp(once, data, 16) == 0);
	EXPECT((once[16] & ~data[16]) == 0);
	EXPECT(memcmp(once + 17, data + 17, n - 17) == 0);
	return 0;
}
