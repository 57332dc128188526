/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: slots of the ring that a primary leaves behind; if the first byte is odd, their checksums
 * are corrected. The ranges of a decoded record must lie in the file, and a decoded record must
 * encode to the same bytes.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/intent.h"

#define SIZE  (1ull << 40)
#define SLOTS 4

static uint8_t ring[INTENT_RING_BYTES];
static uint32_t ranges;

static void see(void *arg, const struct mirror_range *range)
{
	EXPECT(range->offset <= SIZE && range->len <= SIZE - range->offset);
	ranges++;
}

static void put(uint8_t *slot)
{
	uint32_t count, crc;

	memcpy(&count, slot + 40, 4);
	count %= INTENT_RANGES_MAX + 1;
	memcpy(slot + 40, &count, 4);
	memcpy(slot, "RINT", 4);
	crc = crc32c_final(crc32c_update(CRC32C_INIT, slot + 8, 40 + count * INTENT_RANGE));
	memcpy(slot + 4, &crc, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct intent_reader reader = {ring, SIZE, 0, UINT64_MAX};
	uint8_t again[INTENT_BYTES];
	struct intent intent;
	uint32_t found;

	if (!len)
		return 0;
	memset(ring, 0, SLOTS * INTENT_BYTES);
	memcpy(ring, data + 1, len - 1 < SLOTS * INTENT_BYTES ? len - 1 : SLOTS * INTENT_BYTES);
	for (unsigned i = 0; i < SLOTS; i++) {
		uint8_t *slot = ring + i * INTENT_BYTES;

		if (data[0] & 1)
			put(slot);
		if (!intent_decode(slot, SIZE, &intent))
			continue;
		len = intent_encode(again, &intent.head, intent.ranges);
		memcpy(again + 44, slot + 44, 4); /* bytes without a meaning */
		EXPECT(!memcmp(again + 8, slot + 8, len - 8));
	}
	ranges = 0;
	found = intent_read(&reader, see, NULL);
	EXPECT(found <= SLOTS && ranges <= SLOTS * INTENT_RANGES_MAX);
	EXPECT(found == intent_read(&reader, NULL, NULL));
	intent_last(&reader);
	return 0;
}
