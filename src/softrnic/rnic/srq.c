/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/srq.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int rq_init(struct rq *rq, uint32_t depth, uint32_t max_sge)
{
	*rq = (struct rq){.depth = depth, .max_sge = max_sge};
	if (max_sge > RNIC_MAX_SGE)
		return -EINVAL;
	rq->stride = offsetof(struct rq_wr, sge) + max_sge * sizeof(struct ibv_sge);
	if (depth == 0)
		return 0;
	rq->slots = calloc(depth, rq->stride);
	return rq->slots ? 0 : -ENOMEM;
}

void rq_fini(struct rq *rq)
{
	free(rq->slots);
	*rq = (struct rq){0};
}

int rq_post(struct rq *rq, const struct ibv_recv_wr *wr)
{
	uint64_t at = (uint64_t)rq->head + rq->count;
	uint8_t *slot;
	uint32_t num_sge = (uint32_t)wr->num_sge;

	if (wr->num_sge < 0 || num_sge > rq->max_sge)
		return EINVAL;
	if (rq->count == rq->depth)
		return ENOMEM;
	slot = rq->slots + (at < rq->depth ? at : at - rq->depth) * rq->stride;
	memcpy(slot + offsetof(struct rq_wr, wr_id), &wr->wr_id, sizeof(wr->wr_id));
	memcpy(slot + offsetof(struct rq_wr, num_sge), &num_sge, sizeof(num_sge));
	if (num_sge == 1) /* the usual case */
		memcpy(slot + offsetof(struct rq_wr, sge), wr->sg_list, sizeof(struct ibv_sge));
	else if (num_sge > 0)
		memcpy(slot + offsetof(struct rq_wr, sge), wr->sg_list,
		       num_sge * sizeof(struct ibv_sge));
	rq->count++;
	return 0;
}

bool rq_take(struct rq *rq, struct rq_wr *out)
{
	const uint8_t *slot;
	uint32_t num_sge;

	if (rq->count == 0)
		return false;
	slot = rq->slots + rq->head * rq->stride;
	memcpy(&num_sge, slot + offsetof(struct rq_wr, num_sge), sizeof(num_sge));
	if (num_sge == 1) /* the usual case: a copy of constant length is faster */
		memcpy(out, slot, offsetof(struct rq_wr, sge[1]));
	else
		memcpy(out, slot, offsetof(struct rq_wr, sge) + num_sge * sizeof(struct ibv_sge));
	rq->head = rq->head + 1 == rq->depth ? 0 : rq->head + 1;
	rq->count--;
	return true;
}

int srq_init(struct srq *srq, uint32_t depth, uint32_t max_sge)
{
	int err = rq_init(&srq->rq, depth, max_sge);

	if (err)
		return err;
	pthread_mutex_init(&srq->lock, NULL);
	list_init(&srq->waiters);
	srq->limit = 0;
	return 0;
}

void srq_fini(struct srq *srq)
{
	if (!srq->waiters.next)
		return;
	rq_fini(&srq->rq);
	pthread_mutex_destroy(&srq->lock);
	srq->waiters.next = NULL;
}

/*
 * Notify one waiter in each iteration while there are receives. A waiter queues itself again only
 * if it found none, so the loop ends. A notified waiter may not need a receive, because its QP has
 * failed; the next iteration then notifies the next waiter.
 */
static void srq_notify_waiters(struct srq *srq)
{
	for (;;) {
		struct list *node = NULL;
		struct srq_waiter *waiter;

		pthread_mutex_lock(&srq->lock);
		if (srq->rq.count > 0)
			node = list_pop(&srq->waiters);
		waiter = node ? container_of(node, struct srq_waiter, link) : NULL;
		if (waiter && waiter->get)
			waiter->get(waiter);
		pthread_mutex_unlock(&srq->lock);
		if (!waiter)
			return;
		waiter->notify(waiter);
	}
}

int srq_post(struct srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	while (wr && (err = rq_post(&srq->rq, wr)) == 0)
		wr = wr->next;
	pthread_mutex_unlock(&srq->lock);
	if (err)
		*bad = wr;
	srq_notify_waiters(srq);
	return err;
}

bool srq_take(struct srq *srq, struct rq_wr *out, struct srq_waiter *waiter)
{
	bool taken, below = false;

	pthread_mutex_lock(&srq->lock);
	taken = rq_take(&srq->rq, out);
	if (taken && srq->rq.count < srq->limit) {
		srq->limit = 0;
		below = true;
	}
	if (!taken && waiter && list_empty(&waiter->link))
		list_add_tail(&srq->waiters, &waiter->link);
	pthread_mutex_unlock(&srq->lock);
	if (below && srq->limit_reached)
		srq->limit_reached(srq);
	return taken;
}

void srq_cancel(struct srq *srq, struct srq_waiter *waiter)
{
	pthread_mutex_lock(&srq->lock);
	list_del(&waiter->link);
	pthread_mutex_unlock(&srq->lock);
}

void srq_arm_limit(struct srq *srq, uint32_t limit)
{
	pthread_mutex_lock(&srq->lock);
	srq->limit = limit;
	pthread_mutex_unlock(&srq->lock);
}
