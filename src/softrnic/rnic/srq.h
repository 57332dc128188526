/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq.h -- receive work requests: the queue of one QP, or one shared by many.
 *
 * rq_* is the plain ring. srq_* adds a mutex (a leaf lock) and the list of QPs that
 * found it empty and wait; posting notifies them.
 */
#ifndef RNIC_SRQ_H
#define RNIC_SRQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/rnic/rnic.h"

struct rq_wr {
	uint64_t wr_id;
	uint32_t num_sge;
	struct ibv_sge sge[RNIC_MAX_SGE]; /* the ring is allocated with the queue's own max_sge */
};

struct rq {
	uint8_t *slots; /* depth entries of `stride` bytes: wr_id, num_sge, sge[max_sge] */
	size_t stride;
	uint32_t depth, max_sge, head, count;
};

int rq_init(struct rq *rq, uint32_t depth, uint32_t max_sge);
void rq_fini(struct rq *rq);
int rq_post(struct rq *rq,
	    const struct ibv_recv_wr *wr); /* 0, EINVAL (too many SGEs), ENOMEM (full) */
bool rq_take(struct rq *rq, struct rq_wr *out);
/*
 * The entry of a QP in the list of QPs that wait for a receive. The QP calls list_init() for
 * `link`.
 */
struct srq_waiter {
	struct list link;
	void (*notify)(struct srq_waiter *waiter); /* called without the SRQ's mutex, after get() */
	/* called with the SRQ's mutex; keeps the owner alive */
	void (*get)(struct srq_waiter *waiter);
};

struct srq {
	struct ibv_srq ibv;
	void (*limit_reached)(struct srq *srq); /* the owner's; called without the mutex */
	pthread_mutex_t lock;
	struct rq rq;
	uint32_t limit; /* armed SRQ limit, 0 = not armed */
	struct list waiters;
};

int srq_init(struct srq *srq, uint32_t depth, uint32_t max_sge);
void srq_fini(struct srq *srq);
/* Like the verbs call: 0 or a positive errno, *bad is the first refused request. */
int srq_post(struct srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/*
 * Take a receive. If there is none, queue the waiter and return false. Both happen under one lock,
 * so no post is missed. waiter: NULL if a later receive is of no use.
 */
bool srq_take(struct srq *srq, struct rq_wr *out, struct srq_waiter *waiter);
/* No notification will follow, except one whose get() was called already. */
void srq_cancel(struct srq *srq, struct srq_waiter *waiter);
/* Arm one event for the time when fewer than `limit` receives are left. 0 disarms it. */
void srq_arm_limit(struct srq *srq, uint32_t limit);

#endif
