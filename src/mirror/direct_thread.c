/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread of a direct mapping. It holds the set's lock except while it sleeps or waits for a
 * flush. No other thread changes the table of hot extents during these times.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "mirror/core/killpoint.h"
#include "mirror/direct.h"
#include "mirror/set.h"

#define DIRECT_SLEEP_MS 100
#define DIRECT_RETRY_MS 10 /* pause if no extent could be made cold */

/* ---- the reserve ---- */

/* Adopt the filled slots into the table, and fill the reserve with free slots. */
static void direct_refill(struct direct *d)
{
	struct extents_filled filled[EXTENTS_RESERVE_MAX];
	uint16_t slots[EXTENTS_RESERVE_MAX];
	struct meta *meta = &d->m->hot.meta;
	uint32_t n, wanted;

	siglock_take(&d->lock);
	n = extents_take_filled(&d->extents, filled);
	wanted = extents_lacks(&d->extents);
	siglock_release(&d->lock);
	for (uint32_t i = 0; i < n; i++)
		meta_hot_adopt(meta, filled[i].slot, filled[i].extent);
	wanted = meta_hot_reserve(meta, slots, wanted);
	if (!wanted)
		return;
	siglock_take(&d->lock);
	extents_add_slots(&d->extents, slots, wanted);
	siglock_notify(&d->change);
	siglock_release(&d->lock);
}

/* ---- making an extent cold ---- */

static bool direct_is_busy(void *arg, uint32_t extent)
{
	struct direct *d = arg;
	bool may;

	siglock_take(&d->lock);
	may = extents_may_cool(&d->extents, extent);
	siglock_release(&d->lock);
	return !may;
}

/* Forbid stores to the extent. Returns false if stores were permitted until now. */
static bool direct_is_unstored(struct direct *d, uint32_t extent)
{
	bool was_open;

	siglock_take(&d->lock);
	was_open = extents_mirror(&d->extents, extent);
	if (was_open && !direct_protect(d, extent, PROT_READ)) {
		uint16_t none;

		extents_begin(&d->extents, extent, &none);
		extents_opened(&d->extents, extent, true);
	}
	was_open = was_open || d->extents.states[extent] == EXTENTS_MIRRORING;
	siglock_release(&d->lock);
	killpoint(KILLPOINT_direct_protected);
	return !was_open;
}

/* Give up the extent's slot, unless a store has opened the extent again. Returns 0 or -errno. */
static int direct_give_up_slot(struct direct *d, uint32_t extent)
{
	struct meta *meta = &d->m->hot.meta;
	bool may;
	int rc;

	siglock_take(&d->lock);
	may = extents_cool(&d->extents, extent);
	siglock_release(&d->lock);
	if (!may) {
		meta_hot_note(meta, extent);
		return 0;
	}
	rc = meta_hot_cool(meta, &extent, 1);
	siglock_take(&d->lock);
	extents_cooled(&d->extents, extent);
	siglock_notify(&d->change);
	siglock_release(&d->lock);
	return rc;
}

/* Make one extent cold. Returns false if no extent can be made cold now. */
static bool direct_cool_one(struct direct *d)
{
	struct rpmirror *m = d->m;
	uint32_t extent;
	int rc;

	if (!meta_hot_victims(&m->hot.meta, &extent, 1, direct_is_busy, d))
		return false;
	if (!direct_is_unstored(d, extent)) {
		struct mirror_range range = direct_range(d, extent);

		if (flush_whole(m, &range, 1))
			return false;
	}
	rc = direct_give_up_slot(d, extent);
	if (rc)
		set_local_failed(m, m->flush.begun + 1, rc);
	return !rc;
}

/* ---- stores that a resync carried ---- */

static bool direct_should_flush(const struct direct *d)
{
	return d->carried && !d->m->ended && !d->m->is_protected && !d->closing;
}

/* Returns false if the flush failed and has to be tried again. */
static bool direct_flush_carried(struct direct *d)
{
	struct rpmirror *m = d->m;
	mirror_mask members = d->carried;
	struct mirror_range *v;
	uint32_t n;
	bool done;

	d->carried = 0; /* members that join during the flush are added again */
	v = direct_list(d, &n);
	done = v && (!n || !flush_whole(m, v, n));
	free(v);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (done && members & ~d->carried & MIRROR_BIT(slot))
			m->members[slot].settled = m->flush.retired;
	if (!done)
		d->carried |= members;
	act_retire(m);
	set_wake(m);
	return done;
}

/* ---- the end ---- */

/* Flush everything that may be unflushed. No further store reaches the file meanwhile. */
static void direct_flush_all(struct direct *d)
{
	struct mirror_range *v;
	uint32_t n;

	/*
	 * Wait until no handler opens an extent. After that no handler writes to the table of hot
	 * extents, which may soon belong to the daemon.
	 */
	siglock_take(&d->lock);
	while (d->extents.opening)
		siglock_wait(&d->lock, &d->change, siglock_seen(&d->change), DIRECT_SLEEP_MS);
	siglock_release(&d->lock);
	direct_refill(d); /* adopt the filled slots into the table */
	v = direct_list(d, &n);

	if (v && !d->m->ended)
		d->is_cold = !flush_whole(d->m, v, n);
	free(v);
	d->is_closed = true;
	set_wake(d->m);
}

/* ---- the loop ---- */

/* After a failure of this copy, a store without a slot is safe as soon as no other member treats
 * this copy as good. */
static void direct_check_failure(struct direct *d)
{
	struct rpmirror *m = d->m;
	mirror_mask own = MIRROR_BIT(m->self), insync = m->primary.rec.view.insync;
	int error;

	siglock_take(&d->lock);
	error = d->extents.error;
	if (m->failed_seq && !d->extents.is_untracked && (!(insync & own) || insync == own)) {
		d->extents.is_untracked = true;
		siglock_notify(&d->change);
	}
	siglock_release(&d->lock);
	if (error && !m->failed_seq) {
		set_local_failed(m, m->flush.begun + 1, error);
		act_all(m);
	}
}

static bool direct_should_cool(const struct direct *d)
{
	const struct rpmirror *m = d->m;

	return !m->ended && !m->failed_seq && !m->is_protected && !d->closing &&
	       m->hot.meta.hot_free_count < d->extents.reserve;
}

static void direct_sleep(struct direct *d, unsigned seen, unsigned ms)
{
	pthread_mutex_unlock(&d->m->lock);
	siglock_take(&d->lock);
	siglock_wait(&d->lock, &d->work, seen, ms);
	siglock_release(&d->lock);
	pthread_mutex_lock(&d->m->lock);
}

void *direct_main(void *arg)
{
	struct direct *d = arg;
	struct rpmirror *m = d->m;

	pthread_mutex_lock(&m->lock);
	while (!d->stopping) {
		unsigned seen = siglock_seen(&d->work);

		if (d->is_closed) {
			direct_sleep(d, seen, DIRECT_SLEEP_MS);
			continue;
		}
		direct_refill(d);
		direct_check_failure(d);
		if (d->closing)
			direct_flush_all(d);
		else if (direct_should_flush(d) && direct_flush_carried(d))
			continue;
		else if (direct_should_cool(d) && direct_cool_one(d))
			continue;
		else
			direct_sleep(d, seen,
				     direct_should_cool(d) ? DIRECT_RETRY_MS : DIRECT_SLEEP_MS);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}
