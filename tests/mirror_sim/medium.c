/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.c -- the primary's own medium fails: it refuses to write some or all words, for some time
 * or until the copy is replaced. The kernel reports the failure to one write-back. From then on it
 * counts the pages that it could not write as clean. So programs can read the content of such a
 * page until the kernel drops the page, but the content never reaches the medium.
 *
 * The library then acts as src/mirror/flush.c and flush_result.c do, with `local_error = continue`.
 * The library's daemon gets the report before any other event or, if the daemon does not run,
 * before the kernel drops a page.
 *
 * These runs use separate random numbers, so that all other runs do not change.
 */
#include "sim.h"

void medium_choose(struct world *w)
{
	w->media_fail =
		prng_below(&w->medium_rng, 1000) < 200 || w->mode >= SIM_LOCAL_FAILURE_IGNORED;
}

static void medium_recovers(struct world *w, struct event *e)
{
	if (w->host[e->host].medium_uid == e->uid)
		w->host[e->host].disk.failing = 0;
}

/* Choose whole blocks, because in this simulation a block is a page of the file. */
static uint32_t medium_part(struct world *w)
{
	uint32_t words = 0;

	if (prng_below(&w->medium_rng, 1000) < 300)
		return UINT32_MAX;
	for (unsigned i = 0; i < WORDS; i += BLOCK_WORDS)
		if (prng_below(&w->medium_rng, 1000) < 400)
			words |= words_of_block(1u << i);
	return words;
}

void medium_trouble(struct world *w, struct event *e)
{
	unsigned primary = w->reg.rec.view.primary;

	(void)e;
	if (w->healing)
		return;
	if (primary < w->hosts && view_count(w->reg.rec.view.insync) > 1) {
		struct host *h = &w->host[primary];

		h->disk.failing = medium_part(w);
		h->medium_uid++;
		w->count.media++;
		sim_trace(w, "%u: its medium fails, words %#x", h->id, h->disk.failing);
		if (prng_below(&w->medium_rng, 1000) < 600)
			sched_add(w, prng_between(&w->medium_rng, MS, 300 * MS), medium_recovers,
				  h->id, h->medium_uid, 0, NULL);
	}
	sched_add(w, prng_between(&w->medium_rng, 300 * MS, 4000 * MS), medium_trouble, 0, 0, 0,
		  NULL);
}

/* Returns all words that a write-back of these words writes: fdatasync() writes the whole file. */
uint32_t medium_extent(const struct disk *d, uint32_t words)
{
	return d->failing ? UINT32_MAX : words;
}

void medium_on_daemon(struct world *w, struct lib *lib)
{
	struct host *h = &w->host[lib->host];
	struct member_verdict v;

	if (!lib->says_failed || !h->daemon_uid || h->stopping)
		return;
	lib->says_failed = false;
	member_fail(&h->member, &v);
	sim_trace(w, "%u: its copy has failed", h->id);
}

void medium_on_end(struct host *h, const struct lib *lib)
{
	if (lib->says_failed)
		h->disk.dropped = 0;
}

void medium_failed(struct world *w, struct lib *lib, uint64_t first)
{
	if (w->mode == SIM_LOCAL_FAILURE_IGNORED || lib->failed_seq)
		return;
	sim_trace(w, "%u: a write-back has failed, perhaps from flush %llu on", lib->host,
		  (unsigned long long)first);
	w->count.local_failures++;
	lib->failed_seq = first;
	lib->says_failed = true;
	medium_on_daemon(w, lib);
	/* Members that joined after the failure got their data from this copy, whose medium
	 * possibly lacks the data. */
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (lib->flush.members[slot].from > first)
			primary_on_lost(&lib->p, slot);
	primary_tick(&lib->p, host_ms(w, &w->host[lib->host]));
	primary_on_local_failed(&lib->p);
	if (w->mode == SIM_FAILED_SOURCE)
		lib->p.local_failed = false;
}

/* The copy of this host has a flush only if the write-back of this flush succeeded. */
uint64_t medium_acked(const struct world *w, const struct lib *lib, uint64_t acked)
{
	bool is_own = primary_must_have(&lib->p) & MIRROR_BIT(lib->host);

	if (lib->failed_seq && is_own && acked >= lib->failed_seq && w->mode != SIM_FAILED_COUNTS)
		return lib->failed_seq - 1;
	return acked;
}

/*
 * Returns true if another copy has the flush, and did not get it by a resync from this copy.
 * Otherwise the flush returns E_MEDIUM. It always returns E_MEDIUM in a direct mapping, where a
 * load can return the medium's older content.
 */
bool medium_is_durable(const struct world *w, const struct lib *lib, uint64_t seq)
{
	mirror_mask durable = lib->p.rec.view.insync & (mirror_mask)~MIRROR_BIT(lib->host);

	if (!lib->failed_seq || seq < lib->failed_seq)
		return true;
	if (w->direct && w->mode != SIM_FAILED_DIRECT)
		return false;
	durable &= (mirror_mask)~flush_lacking(&lib->flush, seq, durable);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (lib->flush.members[slot].from > seq)
			durable &= (mirror_mask)~MIRROR_BIT(slot);
	return durable;
}

/* ---- peace ---- */

bool medium_has_failed(const struct host *h)
{
	return h->daemon_uid && member_copy(&h->member, true) == MIRROR_COPY_FAILED;
}

static bool medium_is_usable(const struct host *h)
{
	enum mirror_copy copy = h->daemon_uid ? member_copy(&h->member, true) : MIRROR_COPY_FAILED;

	return copy != MIRROR_COPY_FAILED && copy != MIRROR_COPY_EMPTY;
}

/* Returns true if no member of S can be promoted any more: each member has failed, or is unequal
 * because a promotion by force ended early. */
static bool medium_is_s_lost(const struct world *w)
{
	bool any = w->forced;

	for (unsigned i = 0; i < w->hosts; i++) {
		const struct host *h = &w->host[i];
		bool is_in = w->reg.rec.view.insync & MIRROR_BIT(i);

		if (h->lib ||
		    (is_in && !medium_has_failed(h) &&
		     !(h->daemon_uid && member_copy(&h->member, true) == MIRROR_COPY_SYNCING)))
			return false;
		any |= is_in && medium_has_failed(h);
	}
	return any;
}

bool medium_is_all_lost(struct world *w)
{
	if (!medium_is_s_lost(w))
		return false;
	for (unsigned i = 0; i < w->hosts; i++)
		if (medium_is_usable(&w->host[i]))
			return false;
	w->count.lost++;
	return true;
}

/*
 * Move the application to another host, and replace the failed copy. Keep the last copy of S,
 * because its process makes the other copies equal. If this process has ended, medium_operate()
 * promotes another copy by force.
 */
static void medium_replace(struct world *w, struct host *h)
{
	const struct mirror_view *view = &w->reg.rec.view;
	bool is_last = view->insync == MIRROR_BIT(h->id);

	if (!medium_has_failed(h) || is_last)
		return;
	if (h->lib && !h->lib->ended) {
		primary_demote(&h->lib->p);
		lib_run(w, h->lib);
		host_settle(w, h);
	} else if (!h->lib && view->primary != h->id) {
		world_replace(w, h);
	}
}

void medium_operate(struct world *w)
{
	for (unsigned i = 0; i < w->hosts; i++)
		medium_replace(w, &w->host[i]);
	for (unsigned i = 0; i < w->hosts && medium_is_s_lost(w); i++)
		if (medium_is_usable(&w->host[i]))
			world_force_now(w, &w->host[i]);
}
