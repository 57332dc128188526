/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/intent.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/cursor.h"

#define INTENT_MAGIC  0x544e4952u /* "RINT" */
#define INTENT_SUM_AT 4
#define INTENT_SUMMED 8 /* the checksum covers all bytes from this offset on */

static uint32_t intent_sum(const uint8_t *slot, uint32_t count)
{
	size_t len = INTENT_HEADER + (size_t)count * INTENT_RANGE;

	return crc32c_final(crc32c_update(CRC32C_INIT, slot + INTENT_SUMMED, len - INTENT_SUMMED));
}

size_t intent_encode(uint8_t slot[INTENT_BYTES], const struct intent_head *head,
		     const struct mirror_range *ranges)
{
	struct wcursor c = wcursor_init(slot, INTENT_HEADER);

	_Static_assert(INTENT_HEADER + INTENT_RANGES_MAX * INTENT_RANGE + 2 <= INTENT_BYTES,
		       "the last range is stored by words of 8 bytes");
	assert(head->count <= INTENT_RANGES_MAX);
	wcursor_le(&c, INTENT_MAGIC, 4);
	wcursor_le(&c, 0, 4);
	wcursor_le(&c, head->seq, 8);
	wcursor_le(&c, head->epoch.number, 8);
	wcursor_le(&c, head->epoch.nonce, 8);
	wcursor_le(&c, head->acked, 8);
	wcursor_le(&c, head->count, 4);
	wcursor_le(&c, 0, 4);
	/* Offset and length have 6 bytes each. An 8-byte store of the last range's length still
	 * ends within the slot. */
	for (uint32_t i = 0; i < head->count; i++) {
		uint8_t *at = slot + INTENT_HEADER + (size_t)i * INTENT_RANGE;
		uint64_t offset = htole64(ranges[i].offset), len = htole64(ranges[i].len);

		memcpy(at, &offset, 8);
		memcpy(at + 6, &len, 8);
	}
	c = wcursor_init(slot + INTENT_SUM_AT, 4);
	wcursor_le(&c, intent_sum(slot, head->count), 4);
	return INTENT_HEADER + (size_t)head->count * INTENT_RANGE;
}

static bool intent_decode_ranges(struct rcursor *c, uint64_t size, struct intent *intent)
{
	for (uint32_t i = 0; i < intent->head.count; i++) {
		struct mirror_range *range = &intent->ranges[i];

		range->offset = rcursor_le(c, 6);
		range->len = rcursor_le(c, 6);
		if (range->offset > size || range->len > size - range->offset)
			return false;
	}
	return true;
}

static bool intent_decode_head(const uint8_t slot[INTENT_BYTES], struct intent_head *head)
{
	struct rcursor c = rcursor_init(slot, INTENT_HEADER);
	uint64_t sum;

	if (rcursor_le(&c, 4) != INTENT_MAGIC)
		return false;
	sum = rcursor_le(&c, 4);
	head->seq = rcursor_le(&c, 8);
	head->epoch.number = rcursor_le(&c, 8);
	head->epoch.nonce = rcursor_le(&c, 8);
	head->acked = rcursor_le(&c, 8);
	head->count = (uint32_t)rcursor_le(&c, 4);
	return head->count <= INTENT_RANGES_MAX && head->acked < head->seq &&
	       sum == intent_sum(slot, head->count);
}

bool intent_decode(const uint8_t slot[INTENT_BYTES], uint64_t size, struct intent *intent)
{
	struct rcursor c =
		rcursor_init(slot + INTENT_HEADER, (size_t)INTENT_RANGES_MAX * INTENT_RANGE);

	return intent_decode_head(slot, &intent->head) && intent_decode_ranges(&c, size, intent);
}

/* Reads the heads of all slots; seq 0 marks a slot whose record does not count. */
static void intent_read_heads(const struct intent_reader *r, struct intent_head heads[INTENT_SLOTS])
{
	for (uint32_t i = 0; i < INTENT_SLOTS; i++)
		if (!intent_decode_head(r->ring + (size_t)i * INTENT_BYTES, &heads[i]) ||
		    heads[i].epoch.number < r->from || heads[i].epoch.number > r->upto)
			heads[i].seq = 0;
}

/* Returns true if a later flush of the same epoch records that this flush is acknowledged. */
static bool intent_is_acked(const struct intent_head heads[INTENT_SLOTS],
			    const struct intent_head *head)
{
	for (uint32_t i = 0; i < INTENT_SLOTS; i++)
		if (heads[i].seq && heads[i].acked >= head->seq &&
		    mirror_epoch_is_equal(heads[i].epoch, head->epoch))
			return true;
	return false;
}

uint32_t intent_read(const struct intent_reader *r,
		     void (*fn)(void *arg, const struct mirror_range *range), void *arg)
{
	struct intent_head heads[INTENT_SLOTS];
	struct intent intent;
	uint32_t found = 0;

	intent_read_heads(r, heads);
	for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
		if (!heads[i].seq || intent_is_acked(heads, &heads[i]) ||
		    !intent_decode(r->ring + (size_t)i * INTENT_BYTES, r->size, &intent))
			continue;
		found++;
		for (uint32_t k = 0; fn && k < intent.head.count; k++)
			fn(arg, &intent.ranges[k]);
	}
	return found;
}

uint64_t intent_last(const struct intent_reader *r)
{
	struct intent_head heads[INTENT_SLOTS];
	uint64_t last = 0;

	intent_read_heads(r, heads);
	for (uint32_t i = 0; i < INTENT_SLOTS; i++)
		last = heads[i].seq > last ? heads[i].seq : last;
	return last;
}
