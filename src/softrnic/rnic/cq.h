/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.h -- completion queues. Thread-safe; the queue's mutex is a leaf lock.
 *
 * Arming counts only completions added afterwards: what was queued before
 * ibv_req_notify_cq() raises no event.
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
	atomic_uint *uncollected; /* counts it until it is polled; NULL: it is not counted */
	uint64_t at_ns;           /* when it was added, in a queue with `now` */
};

enum cq_armed { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq {
	union { /* both begin with the same members (ibv_cq_ex_to_cq()) */
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	/* Set by the owner of a queue whose completions have a time; or NULL. */
	uint64_t (*now)(void);
	/* The owner's: called with the queue's mutex held; must not call back into the queue. */
	void (*notify)(struct cq *cq);  /* armed, and a completion was added */
	void (*overrun)(struct cq *cq); /* full: a completion was lost; called once */
	struct lock lock;
	struct cqe *ring;
	uint32_t size, head;
	atomic_uint count; /* written under the mutex; cq_is_empty() reads it without */
	/* Written under the mutex; cq_take() reads them and `count` without. */
	_Atomic(enum cq_armed) armed;
	atomic_bool overrun_seen;
};

/*
 * A thread that polls, and makes what it polls for: completions go to it directly, as far as it has
 * room, while the queue is empty and raises no event.
 */
struct cq_taker {
	struct cq *cq;
	struct ibv_wc *wc;
	int room, got;
};

int cq_init(struct cq *cq, uint32_t size);
void cq_fini(struct cq *cq);
/*
 * Returns 0, or -EOVERFLOW when the queue is or was full: the QP must go into error. *uncollected
 * (may be NULL) is one more until the completion is polled, and must live until cq_purge().
 */
int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *uncollected);
int cq_poll(struct cq *cq, int max, struct ibv_wc *wc);
/* One completion, and when it was added. */
bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *at_ns);
/*
 * A ring of another size, which takes over what is queued. 0, -EINVAL (size 0, or more completions
 * are queued), or -ENOMEM; then the ring is what it was.
 */
int cq_resize(struct cq *cq, uint32_t size);
static inline bool cq_is_empty(struct cq *cq) /* a hint: lock-free */
{
	return atomic_load_explicit(&cq->count, memory_order_acquire) == 0;
}
/*
 * Does what cq_push() and a later cq_poll() do; false: the completion is to be pushed. The
 * completions of one QP are made under its connection's lock, which the taker's thread holds. So
 * those that were pushed before are seen in the queue, or were polled. A thread that arms the queue
 * at the same time comes too late for this one. What is posted after the queue was armed completes
 * under the same lock, so later than this.
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
/* Drop the completions of a QP that is destroyed. */
void cq_purge(struct cq *cq, uint32_t qp_num);

#endif
