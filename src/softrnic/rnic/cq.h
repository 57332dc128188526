/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.h -- completion queues. Thread-safe; the queue's mutex is a leaf lock.
 *
 * An armed queue raises an event only for a later completion: completions that were queued before
 * ibv_req_notify_cq() raise no event.
 */
#ifndef RNIC_CQ_H
#define RNIC_CQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct cqe {
	struct ibv_wc wc;
	/* counter of completions that are not polled yet; NULL: not counted */
	atomic_uint *uncollected;
	uint64_t at_ns; /* time of the completion, if the queue has a clock (`now`) */
};

enum cq_armed { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq {
	union { /* both members begin with the same fields (ibv_cq_ex_to_cq()) */
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	/* The clock of a queue with time stamps, set by the owner. NULL: the queue has no time
	 * stamps. */
	uint64_t (*now)(void);
	/*
	 * Functions of the owner. They are called with the queue's mutex held, and must not call
	 * back into the queue.
	 */
	void (*notify)(struct cq *cq);  /* called when a completion was added to the armed queue */
	void (*overrun)(struct cq *cq); /* called once, when the full queue has lost a completion */
	struct lock lock;
	struct cqe *ring;
	uint32_t size, head;
	atomic_uint count; /* written under the mutex; cq_is_empty() reads it without the mutex */
	/* Written under the mutex. cq_take() reads `armed`, `overrun_seen` and `count` without the
	 * mutex. */
	_Atomic(enum cq_armed) armed;
	atomic_bool overrun_seen;
};

/* The array that a polling thread fills, if polling itself causes completions. Such completions go
 * directly to the array if it has free entries, the queue is empty and no event is due. */
struct cq_taker {
	struct cq *cq;
	struct ibv_wc *wc;
	int room, got;
};

int cq_init(struct cq *cq, uint32_t size);
void cq_fini(struct cq *cq);
/*
 * Returns 0, or -EOVERFLOW if the queue is full or has lost a completion; the QP must fail then.
 * *uncollected (may be NULL) counts the completion until it is polled. The counter must exist until
 * cq_purge().
 */
int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *uncollected);
int cq_poll(struct cq *cq, int max, struct ibv_wc *wc);
/* Take one completion and the time at which it was added. */
bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *at_ns);
/* Move the queued completions to a ring of another size. Returns 0, -ENOMEM, or -EINVAL if the size
 * is 0 or less than the number of queued completions. After an error the ring is unchanged. */
int cq_resize(struct cq *cq, uint32_t size);
static inline bool cq_is_empty(struct cq *cq) /* a hint, because it reads without the mutex */
{
	return atomic_load_explicit(&cq->count, memory_order_acquire) == 0;
}
/*
 * Give the completion directly to the taker. The effect is that of cq_push() and a later cq_poll().
 * Returns false if the caller must call cq_push() instead.
 *
 * The completions of one QP are made under its connection's lock, which the taker's thread holds.
 * So earlier completions of the QP are visible in the queue, or were polled. If another thread arms
 * the queue at the same time, this completion counts as earlier than the arming. Requests that are
 * posted after the arming complete under the same lock, so they complete after this completion.
 */
static inline bool cq_take(struct cq_taker *t, struct cq *cq, const struct ibv_wc *wc)
{
	if (t->cq != cq || t->got == t->room || !cq_is_empty(cq) ||
	    atomic_load_explicit(&cq->armed, memory_order_relaxed) != CQ_UNARMED ||
	    atomic_load_explicit(&cq->overrun_seen, memory_order_relaxed))
		return false;
	t->wc[t->got++] = *wc;
	return true;
}
void cq_arm(struct cq *cq, bool solicited_only);
/* Drop the completions of a QP that is being destroyed. */
void cq_purge(struct cq *cq, uint32_t qp_num);

#endif
