/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/cq.h"

#include <errno.h>
#include <stdlib.h>

int cq_init(struct cq *cq, uint32_t size)
{
	struct cqe *ring;

	if (size == 0)
		return -EINVAL;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	lock_init(&cq->lock);
	cq->ring = ring;
	cq->size = size;
	cq->head = 0;
	atomic_init(&cq->count, 0);
	atomic_init(&cq->armed, CQ_UNARMED);
	atomic_init(&cq->overrun_seen, false);
	return 0;
}

void cq_fini(struct cq *cq)
{
	if (!cq->ring)
		return;
	free(cq->ring);
	cq->ring = NULL;
}

static enum cq_armed cq_armed_locked(const struct cq *cq)
{
	return atomic_load_explicit(&cq->armed, memory_order_relaxed);
}

static void cq_set_armed_locked(struct cq *cq, enum cq_armed armed)
{
	atomic_store_explicit(&cq->armed, armed, memory_order_relaxed);
}

static bool cq_has_overrun_locked(const struct cq *cq)
{
	return atomic_load_explicit(&cq->overrun_seen, memory_order_relaxed);
}

static uint32_t cq_count_locked(struct cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed);
}

static void cq_set_count_locked(struct cq *cq, uint32_t count)
{
	atomic_store_explicit(&cq->count, count, memory_order_release);
}

static struct cqe *cq_slot(struct cq *cq, uint32_t i)
{
	uint64_t at = (uint64_t)cq->head + i;

	return &cq->ring[at < cq->size ? at : at - cq->size];
}

/* A completion in error always raises an event, whatever was requested (ibv_req_notify_cq(3)). */
static bool cq_raises_event(const struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	enum cq_armed armed = cq_armed_locked(cq);

	return armed == CQ_ARMED ||
	       (armed == CQ_ARMED_SOLICITED && (solicited || wc->status != IBV_WC_SUCCESS));
}

/* All completions of one send queue go through one CQ, so the lock of this CQ orders the changes of
 * the counter. */
static void cq_count_uncollected_locked(atomic_uint *uncollected, int by)
{
	unsigned n = atomic_load_explicit(uncollected, memory_order_relaxed);

	atomic_store_explicit(uncollected, n + (unsigned)by, memory_order_relaxed);
}

static void cq_add_locked(struct cq *cq, const struct ibv_wc *wc, bool solicited,
			  atomic_uint *uncollected)
{
	uint32_t count = cq_count_locked(cq);
	struct cqe *e = cq_slot(cq, count);

	e->wc = *wc;
	e->uncollected = uncollected;
	e->at_ns = cq->now ? cq->now() : 0;
	if (uncollected)
		cq_count_uncollected_locked(uncollected, 1);
	cq_set_count_locked(cq, count + 1);
	if (!cq_raises_event(cq, wc, solicited))
		return;
	cq_set_armed_locked(cq, CQ_UNARMED);
	if (cq->notify)
		cq->notify(cq);
}

int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *uncollected)
{
	bool lost;

	lock_enter(&cq->lock);
	lost = cq_has_overrun_locked(cq) || cq_count_locked(cq) == cq->size;
	if (!lost) {
		cq_add_locked(cq, wc, solicited, uncollected);
	} else {
		/* Add no completion after a lost one: later completions would hide the gap. */
		if (!cq_has_overrun_locked(cq) && cq->overrun)
			cq->overrun(cq);
		atomic_store_explicit(&cq->overrun_seen, true, memory_order_relaxed);
	}
	lock_leave(&cq->lock);
	return lost ? -EOVERFLOW : 0;
}

static void cq_collect_locked(const struct cqe *e, struct ibv_wc *wc)
{
	*wc = e->wc;
	if (e->uncollected)
		cq_count_uncollected_locked(e->uncollected, -1);
}

int cq_poll(struct cq *cq, int max, struct ibv_wc *wc)
{
	uint32_t count, n;

	if (max <= 0 || cq_is_empty(cq))
		return 0;
	lock_enter(&cq->lock);
	count = cq_count_locked(cq);
	n = count < (uint32_t)max ? count : (uint32_t)max;
	for (uint32_t i = 0; i < n; i++)
		cq_collect_locked(cq_slot(cq, i), &wc[i]);
	cq->head = (uint32_t)(cq_slot(cq, n) - cq->ring);
	cq_set_count_locked(cq, count - n);
	lock_leave(&cq->lock);
	return (int)n;
}

bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *at_ns)
{
	uint32_t count;

	if (cq_is_empty(cq))
		return false;
	lock_enter(&cq->lock);
	count = cq_count_locked(cq);
	if (count > 0) {
		*at_ns = cq_slot(cq, 0)->at_ns;
		cq_collect_locked(cq_slot(cq, 0), wc);
		cq->head = (uint32_t)(cq_slot(cq, 1) - cq->ring);
		cq_set_count_locked(cq, count - 1);
	}
	lock_leave(&cq->lock);
	return count > 0;
}

/* Install another ring. Afterwards *ring is the old ring, which the caller frees. */
static bool cq_exchange_ring(struct cq *cq, struct cqe **ring, uint32_t size)
{
	struct cqe *old, *to = *ring;
	uint32_t count;

	lock_enter(&cq->lock);
	old = cq->ring;
	count = cq_count_locked(cq);
	if (count <= size) {
		for (uint32_t i = 0; i < count; i++)
			to[i] = *cq_slot(cq, i);
		cq->ring = to;
		cq->size = size;
		cq->head = 0;
		*ring = old;
	}
	lock_leave(&cq->lock);
	return count <= size;
}

int cq_resize(struct cq *cq, uint32_t size)
{
	struct cqe *ring;
	bool fits;

	if (size == 0)
		return -EINVAL;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	fits = cq_exchange_ring(cq, &ring, size);
	free(ring);
	return fits ? 0 : -EINVAL;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	lock_enter(&cq->lock);
	if (!solicited_only)
		cq_set_armed_locked(cq, CQ_ARMED);
	else if (cq_armed_locked(cq) == CQ_UNARMED)
		cq_set_armed_locked(cq, CQ_ARMED_SOLICITED);
	lock_leave(&cq->lock);
}

void cq_purge(struct cq *cq, uint32_t qp_num)
{
	uint32_t kept = 0, count;

	lock_enter(&cq->lock);
	count = cq_count_locked(cq);
	for (uint32_t i = 0; i < count; i++) {
		if (cq_slot(cq, i)->wc.qp_num == qp_num)
			continue;
		if (kept != i)
			*cq_slot(cq, kept) = *cq_slot(cq, i);
		kept++;
	}
	cq_set_count_locked(cq, kept);
	lock_leave(&cq->lock);
}
