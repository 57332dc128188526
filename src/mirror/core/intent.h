/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intent.h -- an intent: the record that a flush places in a member's ring before its data; pure.
 *
 * A ring is INTENT_SLOTS slots of INTENT_BYTES. The flush with number seq uses slot
 * intent_slot(seq), and only after all members that have to acknowledge (the ack set) have
 * acknowledged the slot's previous flush. Only the used bytes of a slot are written. Layout,
 * little-endian:
 *
 *    0  magic 4     8  seq 8             24  epoch's nonce 8   40  count of ranges 4
 *    4  CRC32C 4   16  epoch's number 8  32  acked seq 8       44  zero 4
 *   48  ranges: offset 6, len 6 each
 *
 * The CRC covers all bytes behind it up to the end of the last range.
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

struct intent_head {
	uint64_t seq; /* 1 for the first flush of an epoch */
	struct mirror_epoch epoch;
	uint64_t acked; /* less than seq: the whole ack set has all flushes up to this number */
	uint32_t count; /* number of ranges */
};

struct intent {
	struct intent_head head;
	struct mirror_range ranges[INTENT_RANGES_MAX];
};

static inline uint64_t intent_slot_offset(uint64_t seq)
{
	return seq % INTENT_SLOTS * INTENT_BYTES;
}

/* Encode an intent into a slot's image. Returns the number of used bytes. The caller reduces the
 * ranges by ranges_coarsen() first. */
size_t intent_encode(uint8_t slot[INTENT_BYTES], const struct intent_head *head,
		     const struct mirror_range *ranges);
/* Returns false if the slot has no record or a torn one, or if a range ends beyond `size`. */
bool intent_decode(const uint8_t slot[INTENT_BYTES], uint64_t size, struct intent *intent);

/* For reading a ring after the connections of its writers have ended. */
struct intent_reader {
	const uint8_t *ring; /* INTENT_RING_BYTES bytes */
	uint64_t size;       /* size of the set's file */
	uint64_t from, upto; /* numbers of the epochs that count, both included */
};

/* Call fn for each range of each intent that the ring does not show as acknowledged: in each
 * epoch, the intents above the highest acked seq. The ranges are not ordered and may overlap.
 * Returns the number of such intents. fn may be NULL. */
uint32_t intent_read(const struct intent_reader *reader,
		     void (*fn)(void *arg, const struct mirror_range *range), void *arg);

/* Returns the highest flush number of these epochs in the ring, or 0 if there is none. */
uint64_t intent_last(const struct intent_reader *reader);

#endif
