/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intent.h -- the record that a flush places in a member's ring before its data; pure.
 *
 * A ring is INTENT_SLOTS slots of INTENT_BYTES; the flush with number seq uses slot
 * intent_slot(seq), again only after the whole ack set has acknowledged the one before in it. Only
 * the used bytes of a slot are written. Layout, little-endian:
 *
 *    0  magic 4     8  seq 8             24  epoch's nonce 8   40  count of ranges 4   48  ranges:
 *    4  CRC32C 4   16  epoch's number 8  32  acked seq 8       44  zero 4                  offset
 * 6, len 6
 *
 * The CRC is of everything behind it up to the last range.
 */
#ifndef MIRROR_CORE_INTENT_H
#define MIRROR_CORE_INTENT_H

#include <stddef.h>

#include "mirror/core/types.h"

#define INTENT_BYTES      1024u
#define INTENT_SLOTS      1024u
#define INTENT_RING_BYTES (INTENT_SLOTS * INTENT_BYTES)
#define INTENT_HEADER     48u
#define INTENT_RANGE      12u
#define INTENT_RANGES_MAX ((INTENT_BYTES - INTENT_HEADER) / INTENT_RANGE) /* 81 */

struct intent {
	uint64_t seq; /* 1 for the first flush of an epoch */
	struct mirror_epoch epoch;
	uint64_t acked; /* all up to this number are on the whole ack set */
	uint32_t count;
	struct mirror_range ranges[INTENT_RANGES_MAX];
};

static inline uint64_t intent_slot_offset(uint64_t seq)
{
	return seq % INTENT_SLOTS * INTENT_BYTES;
}

/*
 * Encode into a slot image; returns its used bytes. The ranges ascend and do not overlap (as
 * ranges.h makes them). More than INTENT_RANGES_MAX are made coarser until they fit: rounded to
 * blocks, to 16 blocks and so on, at last one range that covers all.
 */
size_t intent_encode(uint8_t slot[INTENT_BYTES], uint64_t seq, struct mirror_epoch epoch,
		     uint64_t acked, const struct mirror_range *ranges, uint32_t n);
/* False: no record there, or torn, or a range ends behind `size`. */
bool intent_decode(const uint8_t slot[INTENT_BYTES], uint64_t size, struct intent *intent);

/* What a ring says after its writers are cut off. */
struct intent_reader {
	const uint8_t *ring; /* INTENT_RING_BYTES */
	uint64_t size;       /* of the set's file */
	uint64_t from, upto; /* numbers of the epochs that count, both included */
};

/* Call fn for each range of each intent that was not acknowledged when its writers were cut off,
 * as far as the ring knows: of each epoch those above the highest acked seq in it. Not ordered, may
 * overlap. Returns the number of such intents. fn may be NULL. */
uint32_t intent_read(const struct intent_reader *reader,
		     void (*fn)(void *arg, const struct mirror_range *range), void *arg);

#endif
