/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.c -- a host's copy and metadata in two layers: what its processes see, and the medium.
 *
 * Of the file only some words are used: three in each of two blocks of each extent. A process that
 * ends leaves the upper layer as it is. A loss of power leaves the medium; what was not written
 * back may have reached it all the same, word by word.
 */
#include <errno.h>
#include <string.h>

#include "sim.h"

uint64_t word_offset(unsigned word)
{
	unsigned block = word / BLOCK_WORDS;

	return block / 2 * (uint64_t)MIRROR_EXTENT +
	       (block % 2 ? 300 : 7) * (uint64_t)MIRROR_BLOCK + word % BLOCK_WORDS * 8;
}

uint32_t words_in(const struct mirror_range *range)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < WORDS; i++)
		if (word_offset(i) >= range->offset && word_offset(i) < range->offset + range->len)
			mask |= 1u << i;
	return mask;
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

/* A rule of the order of writes that is dropped: these bytes are not written back. */
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

int disk_persist_meta(void *host, uint64_t offset, uint64_t len)
{
	struct host *h = host;

	if (h->doomed)
		return -EIO;
	if (h->persists_left >= 0 && h->persists_left-- == 0) {
		/* Before, or after, or in the middle. */
		uint64_t part = (uint64_t)(h->clock_offset ^ (int64_t)offset) % 3 * (len / 16) * 8;

		memcpy(h->disk.meta_medium + offset, h->disk.meta + offset,
		       part < len ? part : len);
		h->doomed = 1 + (int)(offset / 8 % 2);
		return -EIO;
	}
	if (!disk_skips(h, offset))
		memcpy(h->disk.meta_medium + offset, h->disk.meta + offset, len);
	return 0;
}

void disk_write_back(struct disk *d, uint32_t words)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (words >> i & 1)
			d->medium[i] = d->cache[i];
}

void disk_evict(struct world *w, struct disk *d)
{
	unsigned i = (unsigned)prng_below(&w->rng, WORDS);

	d->medium[i] = d->cache[i];
}

void disk_power_cut(struct world *w, struct disk *d)
{
	for (unsigned i = 0; i < WORDS; i++) {
		if (sim_chance(w, 500))
			d->medium[i] = d->cache[i];
		d->cache[i] = d->medium[i];
	}
	bool none = sim_chance(w, 300);

	for (uint64_t at = 0; at + 4096 <= d->meta_len; at += 4096) {
		if (memcmp(d->meta + at, d->meta_medium + at, 4096) == 0)
			continue;
		for (uint64_t i = at; i < at + 4096; i += 8)
			if (!none && memcmp(d->meta + i, d->meta_medium + i, 8) &&
			    sim_chance(w, 500))
				memcpy(d->meta_medium + i, d->meta + i, 8);
		memcpy(d->meta + at, d->meta_medium + at, 4096);
	}
}
