/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib_direct.c -- a direct mapping: stores are immediately in the file, even without a flush, and
 * reach the medium at any time. An extent gets a hot slot in the metadata before the application
 * can store to it (rule W2 of doc/mirror-format.md), and the whole extent is flushed before the
 * slot is released.
 *
 * A resync copies the mapping, including unflushed stores, which other members lack. So the member
 * that receives the copy records the extents of these stores, until the extents have been flushed
 * to all members.
 */
#include "sim.h"

static uint32_t direct_words(const struct lib *lib, uint32_t extent)
{
	struct mirror_range range = {extent * (uint64_t)MIRROR_EXTENT, MIRROR_EXTENT};

	return words_in(&range) & words_mask(lib->words);
}

static uint32_t direct_hot_words(const struct lib *lib)
{
	uint32_t extents[EXTENTS], words = 0, n = meta_hot_list(&lib->meta, extents, EXTENTS);

	for (uint32_t i = 0; i < n; i++)
		words |= direct_words(lib, extents[i]);
	return words;
}

/* Make an extent read-only. The next flush must include this extent. */
static void direct_cool(struct world *w, struct lib *lib)
{
	uint32_t victim;

	if (lib->cooling || !meta_hot_victims(&lib->meta, &victim, 1, NULL, NULL))
		return;
	if (w->mode == SIM_COOL_UNFLUSHED) {
		meta_hot_cool(&lib->meta, &victim, 1);
		return;
	}
	lib->cooling = direct_words(lib, victim);
	lib->cooling_extent = victim;
	lib->cooling_seq = 0;
}

void direct_store(struct world *w, struct lib *lib, unsigned word, uint64_t value)
{
	struct host *h = &w->host[lib->host];
	uint32_t extent = meta_extent_of(word_offset(word));

	if (lib->cooling >> word & 1)
		return;
	if (w->mode != SIM_HOT_LATE && !meta_hot_is(&lib->meta, extent) &&
	    meta_hot_mark(&lib->meta, &extent, 1)) {
		direct_cool(w, lib);
		return;
	}
	if (!h->stopping)
		disk_store(&h->disk, word, value);
}

/* Returns the words that the next flush must include besides those that the application
 * requests. */
uint32_t direct_wants(const struct lib *lib)
{
	return lib->mirroring | (lib->cooling_seq ? 0 : lib->cooling);
}

void direct_on_flush(struct lib *lib, const struct flight *f)
{
	if (lib->cooling && !lib->cooling_seq && !(lib->cooling & ~f->mask))
		lib->cooling_seq = f->seq;
	if (!lib->mirroring || lib->mirroring & ~f->mask)
		return;
	lib->mirroring = 0;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (lib->peers[i].settled == UINT64_MAX)
			lib->peers[i].settled = f->seq;
}

void direct_on_acked(struct lib *lib)
{
	if (!lib->cooling_seq || lib->flush.retired < lib->cooling_seq)
		return;
	meta_hot_cool(&lib->meta, &lib->cooling_extent, 1);
	lib->cooling = 0;
	lib->cooling_seq = 0;
}

/* A resync has copied unflushed stores to the member, so flush their extents. The member keeps its
 * record of these extents until this flush is acknowledged. */
void direct_settle(struct world *w, struct lib *lib, unsigned slot)
{
	uint32_t words = direct_hot_words(lib);

	if (!w->direct || !words || w->mode == SIM_DIRECT_JOIN_UNNAMED)
		return;
	lib->mirroring |= words;
	lib->peers[slot].settled = UINT64_MAX;
}

uint32_t direct_carried(const struct world *w, const struct lib *lib, struct mirror_range *ranges)
{
	if (!w->direct || w->mode == SIM_DIRECT_JOIN_UNNAMED)
		return 0;
	return ranges_of_words(direct_hot_words(lib), ranges);
}

/*
 * The application has stopped: flush its unflushed stores. Returns false if all stores are flushed.
 */
bool direct_end(struct lib *lib)
{
	uint32_t words = direct_hot_words(lib);

	if (lib->is_ending || !words)
		return false;
	lib->is_ending = true;
	lib->mirroring |= words;
	return true;
}
