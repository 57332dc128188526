/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this stream placed and has not written back: one range for each region. Kept only
 * for peers whose user issues no flushes of its own and only for regions that such a peer
 * can read; the number of regions is up to the local user, so it bounds the list.
 */
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

/* The entry moves to the front: a stream mostly writes where it wrote last. */
static struct dirty_range *find(struct qp_dirty *d, uint32_t stag)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct dirty_range found = d->range[i];

		if (found.stag != stag)
			continue;
		d->range[i] = d->range[0];
		d->range[0] = found;
		return &d->range[0];
	}
	return NULL;
}

static struct dirty_range *add(struct qp_dirty *d)
{
	if (d->count == d->room) {
		uint32_t room = d->room ? 2 * d->room : 4;
		struct dirty_range *more = realloc(d->range, room * sizeof(*more));

		if (!more)
			return NULL;
		d->range = more;
		d->room = room;
	}
	return &d->range[d->count++];
}

void qp_dirty_note(struct qp *qp, const struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->ibv.addr, hi = lo + len;
	struct dirty_range *r;

	if (qp->stream.peer_flushes || !mr->persist || !(mr->access & IBV_ACCESS_REMOTE_READ))
		return;
	r = find(&qp->dirty, mr->ibv.rkey);
	if (r) {
		r->lo = lo < r->lo ? lo : r->lo;
		r->hi = hi > r->hi ? hi : r->hi;
		return;
	}
	r = add(&qp->dirty);
	if (r)
		*r = (struct dirty_range){.stag = mr->ibv.rkey, .lo = lo, .hi = hi};
	else
		qp_refuse(qp, TERM_DDP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
}

bool qp_dirty_take(struct qp *qp, uint32_t stag, uint64_t *lo, uint64_t *hi)
{
	struct qp_dirty *d = &qp->dirty;
	struct dirty_range *r = find(d, stag);

	if (!r)
		return false;
	*lo = r->lo;
	*hi = r->hi;
	*r = d->range[--d->count];
	return true;
}

void qp_dirty_forget(struct qp *qp, uint32_t stag)
{
	uint64_t lo, hi;

	(void)qp_dirty_take(qp, stag, &lo, &hi);
}

void qp_dirty_fini(struct qp *qp)
{
	free(qp->dirty.range);
}
