/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta_bitmap.c -- the blocks that changed while a member was away.
 *
 * Each slot, except this copy's own, has a plane of little-endian words, which is used in place. A
 * flush sets a bit in memory; meta_hot_cool() makes the bits of an extent durable before the
 * extent's slot is free. So stored bits and hot extents together always cover all blocks that a
 * member lacks (W3).
 */
#include <errno.h>
#include <string.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/meta_impl.h"

/* bytes of bits for an extent: one cache line */
#define BITMAP_EXTENT_BYTES (MIRROR_EXTENT / MIRROR_BLOCK / 8)

struct blocks {
	uint64_t from, to; /* the first block, and the block behind the last */
};

static uint64_t bitmap_at(const struct meta *m, uint8_t slot)
{
	return META_BITMAPS_AT + m->plane_bytes * (uint64_t)(slot - (slot > m->super.slot));
}

static uint64_t *bitmap_words(const struct meta *m, uint8_t slot)
{
	return (uint64_t *)((uint8_t *)m->store.base + bitmap_at(m, slot));
}

static size_t bitmap_word_count(const struct meta *m)
{
	return (size_t)((m->blocks + 63) / 64);
}

static bool bitmap_exists(const struct meta *m, uint8_t slot)
{
	return slot != m->super.slot && m->members.members[slot].has_bitmap;
}

/* Returns the bits of word i that belong to these blocks. */
static uint64_t bitmap_mask(struct blocks b, uint64_t i)
{
	uint64_t mask = ~0ull;

	if (b.from > i * 64)
		mask &= ~0ull << (b.from - i * 64);
	if (b.to < i * 64 + 64)
		mask &= ~0ull >> (i * 64 + 64 - b.to);
	return mask;
}

static uint64_t bitmap_count_words(const uint64_t *words, size_t n)
{
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += (unsigned)__builtin_popcountll(words[i]);
	return count;
}

void meta_bitmap_load(struct meta *m)
{
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		m->bitmap_counts[slot] =
			bitmap_exists(m, slot)
				? bitmap_count_words(bitmap_words(m, slot), bitmap_word_count(m))
				: 0;
}

/* ---- begin and end of bitmaps ---- */

static int bitmap_zero(struct meta *m, uint8_t slot)
{
	memset(bitmap_words(m, slot), 0, (size_t)m->plane_bytes);
	m->bitmap_counts[slot] = 0;
	return meta_persist(m, bitmap_at(m, slot), m->plane_bytes);
}

int meta_bitmap_drop(struct meta *m, uint8_t slot)
{
	struct meta_members members = m->members;
	int rc;

	for (uint8_t i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		if (i != slot && slot != MIRROR_NO_SLOT)
			continue;
		members.members[i].has_bitmap = false;
		members.members[i].base = members.members[i].started = (struct mirror_epoch){0};
		m->bitmap_counts[i] = 0;
	}
	killpoint(KILLPOINT_drop_before);
	rc = meta_set_members(m, &members);
	killpoint(KILLPOINT_drop_after);
	return rc;
}

static int bitmap_set_base(struct meta *m, uint8_t slot, struct mirror_epoch base,
			   struct mirror_epoch started)
{
	struct meta_members members = m->members;

	members.members[slot].has_bitmap = true;
	members.members[slot].base = base;
	members.members[slot].started = started;
	return meta_set_members(m, &members);
}

/* `bits` has native byte order, as in resync.h; the plane has little-endian words. */
static void bitmap_add_words(struct meta *m, uint8_t slot, const uint64_t *bits)
{
	uint64_t *words = bitmap_words(m, slot);
	size_t n = bitmap_word_count(m);

	for (size_t i = 0; i < n; i++)
		if (bits[i])
			words[i] |= htole64(bits[i]);
	m->bitmap_counts[slot] = bitmap_count_words(words, n);
}

int meta_bitmap_start(struct meta *m, uint8_t slot, struct mirror_epoch base,
		      struct mirror_epoch now, const uint64_t *bits)
{
	const struct meta_member *member = &m->members.members[slot];
	bool goes_on = meta_bitmap_is_usable(m, slot, base);
	int rc = 0;

	if (slot >= MIRROR_MEMBERS_MAX || slot == m->super.slot)
		return -EINVAL;
	if (goes_on && !bits && mirror_epoch_is_equal(member->base, base) &&
	    mirror_epoch_is_equal(member->started, now))
		return m->broken;
	killpoint(KILLPOINT_bitmap_before);
	if (!goes_on && bitmap_exists(m, slot))
		rc = meta_bitmap_drop(m, slot);
	if (!rc && !goes_on)
		rc = bitmap_zero(m, slot);
	if (!rc && bits) {
		bitmap_add_words(m, slot, bits);
		rc = meta_persist(m, bitmap_at(m, slot), m->plane_bytes);
	}
	if (!rc)
		rc = bitmap_set_base(m, slot, base, now);
	killpoint(KILLPOINT_bitmap_after);
	return rc;
}

int meta_bitmap_clear(struct meta *m, uint8_t slot, struct mirror_epoch now)
{
	int rc;

	killpoint(KILLPOINT_w5_clear_before);
	rc = bitmap_exists(m, slot) ? bitmap_zero(m, slot) : -EINVAL;
	if (!rc)
		rc = bitmap_set_base(m, slot, now, now);
	killpoint(KILLPOINT_w5_clear_after);
	return rc;
}

bool meta_bitmap_is_usable(const struct meta *m, uint8_t slot, struct mirror_epoch epoch)
{
	const struct meta_member *member;

	if (slot >= MIRROR_MEMBERS_MAX || !bitmap_exists(m, slot))
		return false;
	member = &m->members.members[slot];
	return mirror_epoch_is_equal(member->base, epoch) ||
	       mirror_epoch_is_equal(member->started, epoch);
}

/* ---- bits ---- */

/* Sets or clears the blocks' bits. Returns the number of bits that changed. */
static uint64_t bitmap_put(uint64_t *words, struct blocks b, bool value)
{
	uint64_t changed = 0;

	for (uint64_t i = b.from / 64; i * 64 < b.to; i++) {
		uint64_t was = le64toh(words[i]), mask = bitmap_mask(b, i);
		uint64_t now = value ? was | mask : was & ~mask;

		if (now != was)
			words[i] = htole64(now);
		changed += (unsigned)__builtin_popcountll(now ^ was);
	}
	return changed;
}

static struct blocks bitmap_blocks_touched(const struct meta *m, struct mirror_range range)
{
	struct blocks b = {range.offset / MIRROR_BLOCK,
			   (range.offset + range.len + MIRROR_BLOCK - 1) / MIRROR_BLOCK};

	if (!range.len)
		b.to = b.from;
	b.to = b.to < m->blocks ? b.to : m->blocks;
	return b;
}

static struct blocks bitmap_blocks_inside(const struct meta *m, struct mirror_range range)
{
	struct blocks b = {(range.offset + MIRROR_BLOCK - 1) / MIRROR_BLOCK,
			   (range.offset + range.len) / MIRROR_BLOCK};

	b.to = b.to < m->blocks ? b.to : m->blocks;
	return b;
}

void meta_bitmap_set(struct meta *m, uint8_t slot, struct mirror_range range)
{
	struct blocks b = bitmap_blocks_touched(m, range);

	if (!bitmap_exists(m, slot))
		return;
	m->bitmap_counts[slot] += bitmap_put(bitmap_words(m, slot), b, true);
}

void meta_bitmap_set_all(struct meta *m, struct mirror_range range)
{
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		meta_bitmap_set(m, slot, range);
}

void meta_bitmap_unset(struct meta *m, uint8_t slot, struct mirror_range range)
{
	struct blocks b = bitmap_blocks_inside(m, range);

	if (!bitmap_exists(m, slot) || b.from >= b.to)
		return;
	m->bitmap_counts[slot] -= bitmap_put(bitmap_words(m, slot), b, false);
}

uint64_t meta_bitmap_count(const struct meta *m, uint8_t slot)
{
	return m->bitmap_counts[slot];
}

/* Returns the first block at or after `from` whose bit is `value`, or m->blocks. */
static uint64_t bitmap_find(const struct meta *m, const uint64_t *words, uint64_t from, bool value)
{
	uint64_t flip = value ? 0 : ~0ull;

	for (uint64_t i = from / 64; i * 64 < m->blocks; i++) {
		uint64_t word = (le64toh(words[i]) ^ flip) &
				bitmap_mask((struct blocks){from, m->blocks}, i);

		if (word)
			return i * 64 + (unsigned)__builtin_ctzll(word);
	}
	return m->blocks;
}

bool meta_bitmap_next(const struct meta *m, uint8_t slot, uint64_t from, uint64_t max_len,
		      struct mirror_range *run)
{
	uint64_t at = from / MIRROR_BLOCK, end;
	const uint64_t *words;

	if (!bitmap_exists(m, slot))
		return false;
	words = bitmap_words(m, slot);
	at = at < m->blocks ? bitmap_find(m, words, at, true) : m->blocks;
	if (at == m->blocks)
		return false;
	end = bitmap_find(m, words, at, false);
	*run = (struct mirror_range){at * MIRROR_BLOCK, (end - at) * MIRROR_BLOCK};
	max_len = max_len / MIRROR_BLOCK * MIRROR_BLOCK;
	if (max_len && run->len > max_len)
		run->len = max_len;
	return true;
}

int meta_bitmap_persist(struct meta *m, uint8_t slot)
{
	return bitmap_exists(m, slot) ? meta_persist(m, bitmap_at(m, slot), m->plane_bytes)
				      : m->broken;
}

int meta_bitmap_persist_extent(struct meta *m, uint32_t extent, struct meta_span *span)
{
	int rc = 0;

	for (uint8_t slot = 0; !rc && slot < MIRROR_MEMBERS_MAX; slot++)
		if (bitmap_exists(m, slot))
			rc = meta_span_add(m, span,
					   bitmap_at(m, slot) + extent * BITMAP_EXTENT_BYTES,
					   BITMAP_EXTENT_BYTES);
	return rc;
}
