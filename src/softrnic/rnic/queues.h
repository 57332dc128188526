/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queues.h -- the queues of a QP: posted work requests, our unanswered requests, the peer's
 * requests, and Send segments that wait for a receive. No operation appears here. The queue of
 * receives is in srq.h.
 */
#ifndef RNIC_QUEUES_H
#define RNIC_QUEUES_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/rnic.h"

struct qp_op;

/* --- send queue --------------------------------------------------------------------------- */

/* The condition for the start of a work request. */
enum sq_fence {
	SQ_FENCE_NONE,
	SQ_FENCE_ANSWERS, /* IBV_SEND_FENCE: the answers to all requests before it */
	SQ_FENCE_ALL,     /* the completion of all earlier ones: the request will fail */
	SQ_FENCE_WINDOW,  /* the end of other uses of the request's window */
};

struct sq_wr {
	/* Every work request uses these fields; each of the others belongs to some operations. */
	const struct qp_op *op;
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t length;
	uint64_t end_pos; /* transmit position after its last byte; set when all is built */
	uint32_t rkey;    /* of the peer's memory; or the STag that a Send invalidates */
	uint32_t num_sge;
	enum ibv_wc_status status;
	bool signaled, solicited, is_inline;
	uint8_t fence; /* enum sq_fence */
	bool answered; /* requests: the response is complete */

	uint32_t flags; /* flags of the operation */
	uint32_t imm;
	/* number of received bytes of an answer with several segments */
	uint32_t received;
	uint32_t vendor_err; /* valid with a status */
	void *result;        /* VERIFY and QUERY: the user's place for the result */
	/* operands of an atomic: the first is added, swapped in or written, the second compared */
	uint64_t operand, compare;
	struct ibv_sge sge[]; /* or the inline bytes */
};

/* head..next are begun, next..tail wait; the counters only grow. */
struct sq {
	uint8_t *slots;
	size_t stride;
	size_t size;    /* size of all slots */
	size_t head_at; /* place of the slot of `head` */
	uint32_t depth;
	atomic_uint uncollected; /* completions that occupy a slot until they are polled */
	uint64_t head, next, tail;
	uint64_t stop; /* index of the first request that SQD does not begin; else SQ_NO_STOP */
	/* index after the last request that must not be deferred: see qp_tx_may_wait() */
	uint64_t awaited;
	uint64_t patient; /* bytes of requests that may be deferred */
	uint64_t placing; /* index after the last request that changes the peer's memory */
	/* index after the last answered request; all earlier ones are done at the peer */
	uint64_t proven;
};

#define SQ_NO_STOP UINT64_MAX
int sq_init(struct sq *sq, const struct ibv_qp_cap *cap);
void sq_fini(struct sq *sq);
/*
 * As on a hardware adapter, a slot becomes free when its completion is polled, not when it is added.
 * So a user that posts until there is no room cannot overrun the completion queue.
 */
static inline uint32_t sq_room(const struct sq *sq)
{
	uint64_t taken =
		sq->tail - sq->head + atomic_load_explicit(&sq->uncollected, memory_order_relaxed);

	return taken < sq->depth ? (uint32_t)(sq->depth - taken) : 0;
}
/* Are all requests finished that may begin? */
static inline bool sq_is_drained(const struct sq *sq)
{
	return sq->head == sq->tail || sq->head == sq->stop;
}
/* The slot of a request from head to tail. It avoids a division, because it is called several times
 * for each request. */
static inline struct sq_wr *sq_at(const struct sq *sq, uint64_t index)
{
	size_t at = sq->head_at + (index - sq->head) * sq->stride;

	return (struct sq_wr *)(sq->slots + (at < sq->size ? at : at - sq->size));
}
/* Remove the first request. It stays valid until the next one is posted. */
static inline struct sq_wr *sq_pop(struct sq *sq)
{
	struct sq_wr *wr = (struct sq_wr *)(sq->slots + sq->head_at);

	sq->head++;
	sq->head_at += sq->stride;
	if (sq->head_at == sq->size)
		sq->head_at = 0;
	return wr;
}
static inline uint8_t *sq_inline(struct sq_wr *wr)
{
	return (uint8_t *)wr->sge;
}
/* The request that contains this position of the stream; NULL: none. */
struct sq_wr *sq_find(const struct sq *sq, uint64_t pos);

/* --- our unanswered requests -------------------------------------------------------------- */

/* The unanswered requests, in order: responses have the same order (RFC 5040 s5.5). */
#define ORQ_RTR UINT64_MAX /* the RTR Read, which has no work request */
struct orq {
	uint64_t wr[RNIC_MAX_RD_ATOM]; /* indices into the send queue */
	uint32_t head, count, ord;
};

static inline void orq_push(struct orq *orq, uint64_t index)
{
	orq->wr[(orq->head + orq->count++) % RNIC_MAX_RD_ATOM] = index;
}
static inline uint64_t orq_head(const struct orq *orq)
{
	return orq->wr[orq->head];
}
static inline void orq_pop(struct orq *orq)
{
	orq->head = (orq->head + 1) % RNIC_MAX_RD_ATOM;
	orq->count--;
}

/* --- the peer's requests ------------------------------------------------------------------ */

struct irq_entry {
	struct ddp_hdr ddp; /* as received, with the segment's length, for a Terminate */
	uint32_t len;
	const struct qp_op *op;
	union rdmap_request msg;
	union rdmap_answer answer; /* set when the answer may be sent */
	uint32_t after_sends;      /* number of earlier Sends, which must be delivered first */
};

/* The ring grows up to its depth if many requests wait at the same time. It is freed after a while
 * without requests, because most connections need few entries, and usually none. */
struct irq {
	struct irq_entry *ring;
	uint32_t depth, size, head, count;
};

void irq_init(struct irq *irq, uint32_t depth);
void irq_fini(struct irq *irq);
/* Make room for one more request, in a queue that is not full. Returns 0 or -ENOMEM. */
int irq_grow(struct irq *irq);
static inline int irq_make_room(struct irq *irq)
{
	return irq->count < irq->size ? 0 : irq_grow(irq);
}
void irq_trim(struct irq *irq);
static inline bool irq_is_full(const struct irq *irq)
{
	return irq->count == irq->depth;
}
static inline struct irq_entry *irq_head(const struct irq *irq)
{
	return &irq->ring[irq->head];
}
/* Entry number `i` from the head. It avoids a division, although the ring may have any size. */
static inline struct irq_entry *irq_at(const struct irq *irq, uint32_t i)
{
	uint32_t at = irq->head + i;

	return &irq->ring[at < irq->size ? at : at - irq->size];
}
static inline struct irq_entry *irq_push(struct irq *irq)
{
	return irq_at(irq, irq->count++);
}
static inline void irq_pop(struct irq *irq)
{
	irq->head = irq->head + 1 < irq->size ? irq->head + 1 : 0;
	irq->count--;
}

/* --- Send segments without a receive ------------------------------------------------------ */

struct park_seg {
	struct list link;
	struct ddp_hdr hdr;
	uint32_t len, written;  /* written: see struct rx_seg */
	uint64_t writes_before; /* number of the peer's Writes that had ended when it arrived */
	bool more;              /* its bytes count against RNIC_PARK_ALL */
	uint8_t bytes[];
};

/* Limited in bytes and messages: RNIC_PARK_BYTES, RNIC_PARK_MSGS. While it is wide, only in bytes:
 * RNIC_PARK_MORE, and RNIC_PARK_ALL. */
struct park {
	struct list segs;
	uint32_t bytes, msgs;
	bool wide; /* until it is empty */
};

static inline void park_init(struct park *park)
{
	list_init(&park->segs);
}
static inline bool park_is_empty(const struct park *park)
{
	return list_empty(&park->segs);
}
struct park_seg *park_first(const struct park *park); /* NULL: none */
bool park_has_room(const struct park *park, uint32_t len);
/* Add a copy of the segment. Returns NULL if out of memory. */
struct park_seg *park_add(struct park *park, const struct ddp_hdr *hdr, const uint8_t *bytes,
			  uint32_t len);
void park_drop(struct park *park, struct park_seg *seg);
void park_clear(struct park *park);

#endif
