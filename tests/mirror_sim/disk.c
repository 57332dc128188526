/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.c -- a host's copy and metadata in two layers: the cache, which its processes see, and the
 * medium.
 *
 * A run uses only some words of the file: three in each of two blocks of each used extent. When a
 * process ends, the cache keeps its content. When the power is lost, only the medium keeps its
 * content: each word that was not written back is on it or not, by chance.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint64_t extent_offset(unsigned extent)
{
	return (extent < EXTENTS - 1 ? extent : FAR_EXTENT) * (uint64_t)MIRROR_EXTENT;
}

uint64_t word_offset(unsigned word)
{
	unsigned block = word / BLOCK_WORDS;

	return extent_offset(block / 2) + (block % 2 ? 300 : 7) * (uint64_t)MIRROR_BLOCK +
	       word % BLOCK_WORDS * 8;
}

/* Returns the size of a file that ends in the middle or at the end of an extent. */
uint64_t size_of_blocks(unsigned blocks)
{
	return extent_offset((blocks - 1) / 2) +
	       (blocks % 2 ? 100 * (uint64_t)MIRROR_BLOCK : MIRROR_EXTENT);
}

unsigned words_below(uint64_t size)
{
	unsigned word = 0;

	while (word < WORDS && word_offset(word) < size)
		word++;
	return word;
}

uint32_t words_mask(unsigned words)
{
	return (1u << words) - 1;
}

uint32_t words_in(const struct mirror_range *range)
{
	return words_mask(words_below(range->offset + range->len)) &
	       ~words_mask(words_below(range->offset));
}

uint32_t words_of_block(uint32_t words)
{
	uint32_t all = 0, block = (1u << BLOCK_WORDS) - 1;

	for (unsigned b = 0; b < BLOCKS; b++)
		if (words & block << b * BLOCK_WORDS)
			all |= block << b * BLOCK_WORDS;
	return all;
}

uint32_t ranges_of_words(uint32_t words, struct mirror_range *ranges)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		if (!(words >> i & 1))
			continue;
		if (n && ranges[n - 1].offset + ranges[n - 1].len == word_offset(i))
			ranges[n - 1].len += 8;
		else
			ranges[n++] = (struct mirror_range){word_offset(i), 8};
	}
	return n;
}

/* Returns true if the mode breaks the rule by which the bytes at this offset must be written
 * back. */
static bool disk_skips(const struct host *h, uint64_t offset)
{
	switch (h->world->mode) {
	case SIM_PROMISE_NOT_DURABLE:
		return offset >= META_PROMISE_AT && offset < META_HISTORY_AT;
	case SIM_HOT_NOT_DURABLE:
		return offset >= META_HOT_AT && offset < META_RING_AT;
	case SIM_BITS_NOT_DURABLE:
		return offset >= META_BITMAPS_AT;
	case SIM_SYNCING_NOT_DURABLE:
		return offset < META_PROMISE_AT && h->meta.super.flags & META_SYNCING;
	default:
		return false;
	}
}

/* Find the first used part of [from, to). Returns false if no part is used. */
static bool disk_used(const struct disk *d, uint64_t *from, uint64_t to, uint64_t *end)
{
	uint64_t gap = META_RING_AT + d->ring_used;

	if (*from >= gap && *from < META_BITMAPS_AT)
		*from = META_BITMAPS_AT;
	*end = *from < gap && to > gap ? gap : to;
	return *from < *end;
}

static void disk_copy(const struct disk *d, uint8_t *to, const uint8_t *from, uint64_t offset,
		      uint64_t len)
{
	uint64_t end;

	for (uint64_t at = offset; disk_used(d, &at, offset + len, &end); at = end)
		memcpy(to + at, from + at, end - at);
}

#define META_MOST ((meta_size_for(size_of_blocks(SIZES)) + 4095) / 4096 * 4096)

static uint64_t disk_meta_len(uint64_t size)
{
	return (meta_size_for(size) + 4095) / 4096 * 4096;
}

/* Clear the parts that an earlier run used. */
void disk_format(struct disk *d, uint64_t size)
{
	uint64_t end;

	if (!d->meta) {
		d->meta = aligned_alloc(4096, META_MOST);
		d->meta_medium = aligned_alloc(4096, META_MOST);
		if (!d->meta || !d->meta_medium)
			abort();
		d->ring_used = INTENT_RING_BYTES;
	}
	for (uint64_t at = 0; disk_used(d, &at, META_MOST, &end); at = end) {
		memset(d->meta + at, 0, end - at);
		memset(d->meta_medium + at, 0, end - at);
	}
	d->ring_used = 0;
	d->failing = d->dropped = 0;
	memset(d->cache, 0, sizeof(d->cache));
	memset(d->medium, 0, sizeof(d->medium));
	d->len = d->len_medium = size;
	d->meta_len = d->meta_len_medium = disk_meta_len(size);
}

static void disk_zero(uint64_t *words, uint64_t from)
{
	for (unsigned i = words_below(from); i < WORDS; i++)
		words[i] = 0;
}

void disk_extend(struct disk *d, uint64_t keep, uint64_t size)
{
	disk_zero(d->cache, keep);
	if (d->len > keep)
		d->len = keep;
	if (d->len < size)
		d->len = size;
	if (d->meta_len < disk_meta_len(size))
		d->meta_len = disk_meta_len(size);
}

void disk_settle(struct disk *d, uint64_t keep)
{
	disk_zero(d->medium, keep);
	d->len_medium = d->len;
	d->meta_len_medium = d->meta_len;
}

void disk_place_intent(struct disk *d, uint64_t seq, const uint8_t *bytes, size_t len)
{
	uint64_t at = intent_slot_offset(seq);

	memcpy(d->meta + META_RING_AT + at, bytes, len);
	if (at + INTENT_BYTES > d->ring_used)
		d->ring_used = at + INTENT_BYTES;
}

int disk_persist_meta(void *host, uint64_t offset, uint64_t len)
{
	struct host *h = host;

	if (h->stopping)
		return -EIO;
	if (h->persists_left >= 0 && h->persists_left-- == 0) {
		/* The power is lost before, during or after the write. */
		uint64_t part = (uint64_t)(h->clock_offset ^ (int64_t)offset) % 3 * (len / 16) * 8;

		disk_copy(&h->disk, h->disk.meta_medium, h->disk.meta, offset,
			  part < len ? part : len);
		h->stopping = 1 + (int)(offset / 8 % 2);
		return -EIO;
	}
	if (!disk_skips(h, offset))
		disk_copy(&h->disk, h->disk.meta_medium, h->disk.meta, offset, len);
	return 0;
}

void disk_store(struct disk *d, unsigned word, uint64_t value)
{
	d->cache[word] = value;
	if (d->dropped) /* after a new store the kernel writes the whole page again */
		d->dropped &= ~words_of_block(1u << word);
}

bool disk_write_back(struct disk *d, uint32_t words)
{
	uint32_t failed = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		if (!(words >> i & 1) || d->dropped >> i & 1 || d->medium[i] == d->cache[i])
			continue;
		if (d->failing >> i & 1)
			failed |= 1u << i;
		else
			d->medium[i] = d->cache[i];
	}
	d->dropped |= failed;
	return !failed;
}

/* The kernel drops a page. A dirty page is written back before the drop. A page that counts as
 * clean is not written back, so its next reader gets the medium's bytes. */
void disk_evict(struct world *w, struct disk *d)
{
	unsigned i = (unsigned)prng_below(&w->rng, w->words);
	uint32_t bit = 1u << i, block = words_of_block(bit);

	if (d->dropped & block) {
		for (unsigned j = 0; j < WORDS; j++)
			if (d->dropped & block & 1u << j)
				d->cache[j] = d->medium[j];
		d->dropped &= ~block;
	} else if (!(d->failing & bit)) {
		d->medium[i] = d->cache[i];
	}
}

/* Returns true if the copy has a superblock. A copy without a superblock belongs to no set, which
 * is a separate case. */
static bool disk_is_readable(const struct disk *d)
{
	struct meta_store store = {.base = d->meta, .len = d->meta_len};
	struct meta meta;
	struct error err;

	if (meta_load(&meta, &store, &err))
		return false;
	meta_fini(&meta);
	return true;
}

/* Change a byte of the metadata. The next load detects the change. */
void disk_rot(struct world *w, struct disk *d, bool hot_only)
{
	static const struct {
		uint32_t from, to;
	} places[] = {{META_HOT_AT, META_HOT_AT + 32},
		      {META_SUPER_AT, META_SUPER_AT + 4096},
		      {META_PROMISE_AT, META_HISTORY_AT},
		      {META_HISTORY_AT, META_MEMBERS_AT},
		      {META_MEMBERS_AT, META_MEMBERS_AT + 12288}};
	unsigned i =
		hot_only ? 0 : (unsigned)prng_below(&w->rng, sizeof(places) / sizeof(places[0]));
	uint64_t at = sim_between(w, places[i].from, places[i].to - 1);

	if (places[i].to - places[i].from > 32 && sim_chance(w, 700))
		at = at / 2048 * 2048 + at % 64; /* choose an offset that holds data */
	uint8_t was = d->meta[at];

	d->meta[at] ^= (uint8_t)sim_between(w, 1, 255);
	if (!disk_is_readable(d))
		d->meta[at] = was;
	d->meta_medium[at] = d->meta[at];
}

/* Apply a loss of power to one page of the metadata: each word gets its old or its new value. */
static void disk_cut_page(struct world *w, struct disk *d, uint64_t at, uint64_t end, bool none)
{
	if (memcmp(d->meta + at, d->meta_medium + at, end - at) == 0)
		return;
	for (uint64_t i = at; i < end; i += 8)
		if (!none && memcmp(d->meta + i, d->meta_medium + i, 8) && sim_chance(w, 500))
			memcpy(d->meta_medium + i, d->meta + i, 8);
	memcpy(d->meta + at, d->meta_medium + at, end - at);
}

void disk_power_cut(struct world *w, struct disk *d)
{
	uint64_t end;

	/* The part by which a file was just extended reads as zeros. */
	d->meta_len = d->meta_len_medium;
	d->len = d->len_medium;
	for (unsigned i = 0; i < w->words; i++) {
		if (sim_chance(w, 500) && !((d->dropped | d->failing) >> i & 1))
			d->medium[i] = d->cache[i];
		d->cache[i] = d->medium[i];
	}
	d->dropped = 0;
	disk_zero(d->cache, d->len);
	disk_zero(d->medium, d->len);
	bool none = sim_chance(w, 300);

	for (uint64_t at = 0; disk_used(d, &at, d->meta_len, &end); at = end) {
		end = end < at + 4096 ? end : at + 4096;
		disk_cut_page(w, d, at, end, none);
	}
}
