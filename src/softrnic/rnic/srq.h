/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq.h -- queues of receive work requests. A queue belongs to one QP, or many QPs share it.
 *
 * The functions rq_* implement the ring. The functions srq_* add a mutex (a leaf lock), and a list
 * of the QPs that found the queue empty and wait. Posting a receive notifies them.
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
	/* a ring's slots have only as many entries as its queue's max_sge */
	struct ibv_sge sge[RNIC_MAX_SGE];
};

struct rq {
	uint8_t *slots; /* depth entries of `stride` bytes: wr_id, num_sge, sge[max_sge] */
	size_t stride;
	uint32_t depth, max_sge, head, count;
};

int rq_init(struct rq *rq, uint32_t depth, uint32_t max_sge);
void rq_fini(struct rq *rq);
int rq_post(struct rq *rq,
	    /* 0, EINVAL (too many SGEs) or ENOMEM (the queue is full) */
	    const struct ibv_recv_wr *wr);
bool rq_take(struct rq *rq, struct rq_wr *out);

/* Number of bytes that fit into the memory of a receive. */
static inline uint64_t rq_wr_room(const struct rq_wr *wr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < wr->num_sge; i++)
		sum += wr->sge[i].length;
	return sum;
}

/* The entry of a QP in an SRQ's list of waiting QPs. The QP calls list_init() for `link`. */
struct srq_waiter {
	struct list link;
	void (*notify)(struct srq_waiter *waiter); /* called without the SRQ's mutex, after get() */
	/* called with the SRQ's mutex; keeps the owner alive */
	void (*get)(struct srq_waiter *waiter);
};

struct srq {
	struct ibv_srq ibv;
	/* function of the owner; called without the mutex */
	void (*limit_reached)(struct srq *srq);
	pthread_mutex_t lock;
	struct rq rq;
	uint32_t limit; /* armed SRQ limit; 0: not armed */
	struct list waiters;
};

int srq_init(struct srq *srq, uint32_t depth, uint32_t max_sge);
void srq_fini(struct srq *srq);
/* Posts receives like the verbs call. Returns 0 or a positive errno value; *bad is the first
 * refused request. */
int srq_post(struct srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/*
 * Take a receive. If there is none, queue the waiter and return false. Both happen under one lock,
 * so no post is missed. `waiter` is NULL if the caller does not need a later receive.
 */
bool srq_take(struct srq *srq, struct rq_wr *out, struct srq_waiter *waiter);
/* Remove the waiter. No notification follows afterwards, except one for which get() was already
 * called. */
void srq_cancel(struct srq *srq, struct srq_waiter *waiter);
/* Arm one event, which is raised when fewer than `limit` receives are left. 0 disarms it. */
void srq_arm_limit(struct srq *srq, uint32_t limit);

#endif
