/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta_hot.c -- the table of extents that may differ between copies.
 *
 * A slot is one word, changed by one store: extent + 1 in 40 bits, a check of 8 bits, a tick of 16
 * bits. The check is the top byte of a product, which detects each flipped bit. Because of the
 * volatile index, marking an extent that is already hot is one load and one store.
 */
#include <errno.h>
#include <stdlib.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/meta_impl.h"

#define HOT_CHECK_SHIFT 40
#define HOT_TICK_SHIFT  48
#define HOT_EXTENT_MASK ((1ull << HOT_CHECK_SHIFT) - 1)

static uint64_t hot_check(uint64_t word)
{
	uint64_t rest = (word & HOT_EXTENT_MASK) | word >> HOT_TICK_SHIFT << HOT_CHECK_SHIFT;

	return rest * 0x9e3779b97f4a7c15ull >> 56;
}

/* Returns the word of a slot in the table of hot extents. */
static uint64_t hot_word(uint32_t extent, uint16_t tick)
{
	uint64_t word = (extent + 1ull) | (uint64_t)tick << HOT_TICK_SHIFT;

	return word | hot_check(word) << HOT_CHECK_SHIFT;
}

/* Returns false if the word is damaged or the extent is not below `extents`. word must not be 0. */
static bool hot_unword(uint64_t word, uint32_t extents, uint32_t *extent)
{
	uint64_t number = word & HOT_EXTENT_MASK;

	*extent = (uint32_t)(number - 1);
	return number && number <= extents && (word >> HOT_CHECK_SHIFT & 0xff) == hot_check(word);
}

static uint64_t *hot_slot(const struct meta *m, unsigned slot)
{
	return (uint64_t *)((uint8_t *)m->store.base + META_HOT_AT) + slot;
}

static uint64_t hot_load(const struct meta *m, unsigned slot)
{
	return le64toh(__atomic_load_n(hot_slot(m, slot), __ATOMIC_RELAXED));
}

static void hot_store(const struct meta *m, unsigned slot, uint64_t word)
{
	__atomic_store_n(hot_slot(m, slot), htole64(word), __ATOMIC_RELAXED);
}

static uint64_t hot_offset(unsigned slot)
{
	return META_HOT_AT + 8ull * slot;
}

/* Load one slot. If the zero of a freed slot did not reach the medium, an extent has two slots. */
static void hot_load_slot(struct meta *m, unsigned slot)
{
	uint64_t word = hot_load(m, slot);
	uint32_t extent;

	if (word && slot >= m->hot_top)
		m->hot_top = slot + 1;
	if (word && !hot_unword(word, m->extents, &extent)) {
		m->damage |= META_DAMAGED_HOT;
	} else if (word && !m->hot_index[extent]) {
		m->hot_index[extent] = (uint16_t)(slot + 1);
		m->hot_count++;
	} else if (slot < m->super.hot_slots) {
		m->hot_free[m->hot_free_count++] = (uint16_t)slot;
	}
}

int meta_hot_load(struct meta *m)
{
	m->hot_index = calloc(m->extents, sizeof(*m->hot_index));
	m->hot_recent = calloc(META_HOT_SLOTS, sizeof(*m->hot_recent));
	m->hot_free = calloc(META_HOT_SLOTS, sizeof(*m->hot_free));
	if (!m->hot_index || !m->hot_recent || !m->hot_free) {
		meta_hot_fini(m);
		return -ENOMEM;
	}
	m->damage &= ~(unsigned)META_DAMAGED_HOT;
	m->hot_count = m->hot_free_count = 0;
	m->hot_top = m->super.hot_slots;
	/* Push the last slot first, so that slots are later taken in ascending order. */
	for (unsigned slot = META_HOT_SLOTS; slot-- > 0;)
		hot_load_slot(m, slot);
	return 0;
}

void meta_hot_fini(struct meta *m)
{
	free(m->hot_index);
	free(m->hot_recent);
	free(m->hot_free);
	m->hot_index = NULL;
	m->hot_recent = NULL;
	m->hot_free = NULL;
}

static void hot_free(struct meta *m, uint32_t extent)
{
	unsigned slot = m->hot_index[extent] - 1u;

	hot_store(m, slot, 0);
	m->hot_index[extent] = 0;
	m->hot_recent[slot] = 0;
	m->hot_count--;
	if (slot < m->super.hot_slots)
		m->hot_free[m->hot_free_count++] = (uint16_t)slot;
}

/* Give the extent a slot, and return the slot. The caller has checked that a slot is free. */
static unsigned hot_take(struct meta *m, uint32_t extent)
{
	unsigned slot = m->hot_free[--m->hot_free_count];

	hot_store(m, slot, hot_word(extent, m->hot_tick));
	m->hot_index[extent] = (uint16_t)(slot + 1);
	m->hot_recent[slot] = 1;
	m->hot_count++;
	return slot;
}

/* Counts the cold extents of the list, each once. It marks them in the index by slot numbers
 * that do not exist; the caller then calls hot_mark_cold() or hot_unmark(). */
static uint32_t hot_count_cold(struct meta *m, const uint32_t *extents, uint32_t n)
{
	uint32_t cold = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint16_t *index = &m->hot_index[extents[i]];

		if (!*index) {
			*index = UINT16_MAX;
			cold++;
		} else if (*index != UINT16_MAX) {
			m->hot_recent[*index - 1] = 1;
		}
	}
	return cold;
}

static void hot_unmark(struct meta *m, const uint32_t *extents, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (m->hot_index[extents[i]] == UINT16_MAX)
			m->hot_index[extents[i]] = 0;
}

static int hot_mark_cold(struct meta *m, const uint32_t *extents, uint32_t n)
{
	struct meta_span span = {0};
	int rc = 0;

	m->hot_tick++;
	for (uint32_t i = 0; !rc && i < n; i++)
		if (m->hot_index[extents[i]] == UINT16_MAX)
			rc = meta_span_add(m, &span, hot_offset(hot_take(m, extents[i])), 8);
	killpoint(KILLPOINT_w2_before);
	if (!rc)
		rc = meta_span_end(m, &span);
	killpoint(KILLPOINT_w2_after);
	if (rc)
		hot_unmark(m, extents, n);
	return rc;
}

int meta_hot_mark(struct meta *m, const uint32_t *extents, uint32_t n)
{
	uint32_t cold = hot_count_cold(m, extents, n);

	if (!cold)
		return m->broken;
	if (m->broken || cold > m->hot_free_count) {
		hot_unmark(m, extents, n);
		return m->broken ? m->broken : -ENOSPC;
	}
	return hot_mark_cold(m, extents, n);
}

uint32_t meta_hot_reserve(struct meta *m, uint16_t *slots, uint32_t n)
{
	uint32_t taken = 0;

	while (taken < n && m->hot_free_count && !m->broken)
		slots[taken++] = m->hot_free[--m->hot_free_count];
	return taken;
}

int meta_hot_fill(const struct meta *m, uint16_t slot, uint32_t extent)
{
	int rc;

	hot_store(m, slot, hot_word(extent, 0));
	killpoint(KILLPOINT_w2_before);
	rc = m->store.persist(m->store.arg, hot_offset(slot), 8);
	killpoint(KILLPOINT_w2_after);
	return rc;
}

void meta_hot_adopt(struct meta *m, uint16_t slot, uint32_t extent)
{
	if (m->hot_index[extent]) {
		hot_store(m, slot, 0);
		m->hot_free[m->hot_free_count++] = slot;
		return;
	}
	m->hot_index[extent] = (uint16_t)(slot + 1);
	m->hot_recent[slot] = 1;
	m->hot_count++;
}

void meta_hot_note(struct meta *m, uint32_t extent)
{
	if (m->hot_index[extent])
		m->hot_recent[m->hot_index[extent] - 1] = 1;
}

static bool hot_is_in(const uint32_t *extents, uint32_t n, uint32_t extent)
{
	while (n > 0)
		if (extents[--n] == extent)
			return true;
	return false;
}

uint32_t meta_hot_victims(struct meta *m, uint32_t *extents, uint32_t n,
			  bool (*is_busy)(void *arg, uint32_t extent), void *arg)
{
	uint32_t found = 0, extent;

	/* Two rounds over the table: the first round may do no more than clear the second
	 * chances. */
	for (uint32_t i = 0; found < n && i < 2 * m->hot_top; i++) {
		unsigned slot = m->hot_hand++ % m->hot_top;

		if (!hot_unword(hot_load(m, slot), m->extents, &extent) ||
		    m->hot_index[extent] != slot + 1)
			continue;
		if (m->hot_recent[slot])
			m->hot_recent[slot] = 0;
		else if (!(is_busy && is_busy(arg, extent)) && !hot_is_in(extents, found, extent))
			extents[found++] = extent;
	}
	return found;
}

int meta_hot_cool(struct meta *m, const uint32_t *extents, uint32_t n)
{
	struct meta_span span = {0};
	int rc = 0;

	killpoint(KILLPOINT_w3_before);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = meta_bitmap_persist_extent(m, extents[i], &span);
	if (!rc)
		rc = meta_span_end(m, &span);
	killpoint(KILLPOINT_w3_after);
	for (uint32_t i = 0; !rc && i < n; i++)
		if (m->hot_index[extents[i]])
			hot_free(m, extents[i]);
	return rc;
}

uint32_t meta_hot_list(const struct meta *m, uint32_t *extents, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t extent = 0; found < m->hot_count && extent < m->extents; extent++) {
		if (!m->hot_index[extent])
			continue;
		if (found < n)
			extents[found] = extent;
		found++;
	}
	return found;
}

/* Returns the first hot extent at or after `extent`, or m->extents. */
static uint32_t hot_next(const struct meta *m, uint32_t extent)
{
	while (extent < m->extents && !m->hot_index[extent])
		extent++;
	return extent;
}

int meta_hot_fold(struct meta *m)
{
	struct meta_span span = {0};
	int rc = 0;

	for (uint32_t e = hot_next(m, 0); !rc && e < m->extents; e = hot_next(m, e + 1)) {
		uint64_t offset = (uint64_t)e * MIRROR_EXTENT, left = m->super.size - offset;

		meta_bitmap_set_all(
			m,
			(struct mirror_range){offset, left < MIRROR_EXTENT ? left : MIRROR_EXTENT});
		rc = meta_bitmap_persist_extent(m, e, &span);
	}
	return rc ? rc : meta_span_end(m, &span);
}

int meta_hot_retire(struct meta *m)
{
	int rc = meta_hot_fold(m);

	if (rc)
		return rc;
	for (uint32_t e = hot_next(m, 0); e < m->extents; e = hot_next(m, e + 1))
		hot_free(m, e);
	for (unsigned slot = 0; slot < META_HOT_SLOTS; slot++)
		hot_store(m, slot, 0);
	return meta_persist(m, META_HOT_AT, META_HOT_SLOTS * 8);
}

int meta_hot_repair(struct meta *m)
{
	uint32_t extent;

	for (unsigned slot = 0; slot < META_HOT_SLOTS; slot++) {
		uint64_t word = hot_load(m, slot);

		if (!word || hot_unword(word, m->extents, &extent))
			continue;
		hot_store(m, slot, 0);
		if (slot < m->super.hot_slots)
			m->hot_free[m->hot_free_count++] = (uint16_t)slot;
	}
	return meta_persist(m, META_HOT_AT, META_HOT_SLOTS * 8);
}
