/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any bytes as a memory region's descriptor, through the public API. The call fails, or
 * makes a remote region with the values in these bytes. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_rpma.h"
#include "librpma.h"

enum { DESC_SIZE = 21, FLUSH_TYPES = 16 | 32 };

static uint64_t little_endian(const uint8_t *p, int bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | p[bytes];
	return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpma_mr_remote *mr = NULL;
	size_t size = 0;
	int ret, types = 0;

	fuzz_rpma_log();
	ret = rpma_mr_remote_from_descriptor(data, len, &mr);
	if (ret) {
		EXPECT(ret == RPMA_E_INVAL && !mr);
		EXPECT(len < DESC_SIZE || !data[20]);
		return 0;
	}
	EXPECT(len >= DESC_SIZE && data[20]);
	EXPECT(!rpma_mr_remote_get_size(mr, &size) && size == little_endian(data + 8, 8));
	EXPECT(!rpma_mr_remote_get_flush_type(mr, &types) && types == (data[20] & FLUSH_TYPES));
	EXPECT(!rpma_mr_remote_delete(&mr) && !mr);
	return 0;
}
