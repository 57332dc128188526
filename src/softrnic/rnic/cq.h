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
};

struct cq {
	struct ibv_cq ibv;
	/* The owner's: called with the queue's mutex held; must not call back into the queue. */
	void (*notify)(struct cq *cq);  /* armed, and a completion was added */
	void (*overrun)(struct cq *cq); /* full: a completion was lost; called once */
	struct lock lock;
	struct cqe *ring;
	uint32_t size, head;
	atomic_uint count; /* written under the mutex; cq_is_empty() reads it without */
	enum { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED } armed;
	bool overrun_seen;
};

int cq_init(struct cq *cq, uint32_t size);
void cq_fini(struct cq *cq);
/*
 * Returns 0, or -EOVERFLOW when the queue is or was full: the QP must go into error. *uncollected
 * (may be NULL) is one more until the completion is polled, and must live until cq_purge().
 */
int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *uncollected);
int cq_poll(struct cq *cq, int max, struct ibv_wc *wc);
bool cq_is_empty(struct cq *cq); /* a hint: lock-free */
void cq_arm(struct cq *cq, bool solicited_only);
/* Drop what a destroyed QP left behind. */
void cq_purge(struct cq *cq, uint32_t qp_num);

#endif
