/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queues.h -- the queues of a QP: posted work requests, this end's unanswered requests, the peer's
 * requests, and Send segments that wait for a receive. This code does not depend on the operations.
 * The queue of receives is in srq.h.
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

/* The condition that must be fulfilled before a work request begins. */
enum sq_fence {
	SQ_FENCE_NONE,
	SQ_FENCE_ANSWERS, /* IBV_SEND_FENCE: all earlier requests are answered */
	SQ_FENCE_ALL,     /* all earlier requests are complete; used for a request that will fail */
	SQ_FENCE_WINDOW,  /* nothing else uses the request's window */
};

struct sq_wr {
	/* Every work request uses the members up to the empty line. Each of the later ones belongs
	 * to some operations. */
	const struct qp_op *op;
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t length;
	/* transmit position after the request's last byte; set when the whole request is built */
	uint64_t end_pos;
	uint32_t rkey; /* STag of the peer's memory, or the STag that a Send invalidates */
	uint32_t num_sge;
	enum ibv_wc_status status;
	bool signaled, solicited, is_inline;
	uint8_t fence; /* enum sq_fence */
	bool answered; /* for a request: its response is complete */

	uint32_t flags; /* flags that belong to the operation */
	uint32_t imm;
	/* number of received bytes of an answer with several segments */
	uint32_t received;
	uint32_t vendor_err; /* valid if the request has a status */
	void *result;        /* for VERIFY and QUERY: address at which the user gets the result */
	/*
	 * operands of an atomic: `operand` is added, swapped in or written; `compare` is compared
	 */
	uint64_t operand, compare;
	struct ibv_sge sge[]; /* the list of SGEs, or the inline bytes */
};

/* The send queue. Requests from `head` to before `next` are begun; those from `next` to before
 * `tail` wait. The counters only grow. */
struct sq {
	uint8_t *slots;
	size_t stride;
	size_t size;    /* size of all slots */
	size_t head_at; /* position of head's slot in `slots` */
	uint32_t depth;
	atomic_uint uncollected; /* completions that occupy a slot until they are polled */
	uint64_t head, next, tail;
	/* index of the first request that must not begin in SQD; SQ_NO_STOP: there is none */
	uint64_t stop;
	/* Index after the last request that must not be deferred: see qp_tx_may_wait(). */
	uint64_t awaited;
	uint64_t patient; /* number of bytes in requests that may be deferred */
	uint64_t placing; /* index after the last request that changes the peer's memory */
	/* Index after the last answered request. All earlier requests are done at the peer. */
	uint64_t proven;
};

#define SQ_NO_STOP UINT64_MAX
int sq_init(struct sq *sq, const struct ibv_qp_cap *cap);
void sq_fini(struct sq *sq);
/*
 * Number of free slots. As on a hardware adapter, a slot becomes free when its completion is
 * polled, not when the completion is added. So a user that posts until no slot is free cannot
 * overrun the completion queue.
 */
static inline uint32_t sq_room(const struct sq *sq)
{
	uint64_t taken =
		sq->tail - sq->head + atomic_load_explicit(&sq->uncollected, memory_order_relaxed);

	return taken < sq->depth ? (uint32_t)(sq->depth - taken) : 0;
}
/* Are all requests finished that may begin in SQD? */
static inline bool sq_is_drained(const struct sq *sq)
{
	return sq->head == sq->tail || sq->head == sq->stop;
}
/* The slot of a request with an index from head to tail. The function avoids a division, because it
 * is called several times for each request. */
static inline struct sq_wr *sq_at(const struct sq *sq, uint64_t index)
{
	size_t at = sq->head_at + (index - sq->head) * sq->stride;

	return (struct sq_wr *)(sq->slots + (at < sq->size ? at : at - sq->size));
}
/* Remove the first request. The returned request stays valid until the next request is posted. */
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
/* Returns the request whose message contains this position of the stream, or NULL. */
struct sq_wr *sq_find(const struct sq *sq, uint64_t pos);

/* Find the SGE that contains offset *off of a list, which must be longer than *off. *off becomes the
 * offset within this SGE. */
static inline const struct ibv_sge *sge_at(const struct ibv_sge *sge, uint64_t *off)
{
	while (*off >= sge->length)
		*off -= sge++->length;
	return sge;
}

/* --- this end's unanswered requests ------------------------------------------------------- */

/* This end's unanswered requests, in order. Responses arrive in the same order (RFC 5040 s5.5). */
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
	struct ddp_hdr ddp; /* the header as received, and the segment's length, for a Terminate */
	uint32_t len;
	const struct qp_op *op;
	union rdmap_request msg;
	union rdmap_answer answer; /* filled in when the answer may be sent */
	/* number of earlier Sends; all of them must be delivered before the request begins */
	uint32_t after_sends;
};

/* The peer's requests, in a ring. The ring grows up to its depth if many requests wait at the same
 * time. It is freed after some time without requests, because most connections need few entries,
 * and usually none. */
struct irq {
	struct irq_entry *ring;
	uint32_t depth, size, head, count;
};

void irq_init(struct irq *irq, uint32_t depth);
void irq_fini(struct irq *irq);
/* Enlarge the ring by at least one entry. The queue must have fewer requests than its depth.
 * Returns 0 or -ENOMEM. */
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
/* Entry number `i`, counted from the head. The function avoids a division, although the ring may
 * have any size. */
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
	uint32_t len, written; /* `written`: see struct rx_seg */
	/* number of the peer's Writes that had ended when the segment arrived */
	uint64_t writes_before;
	bool more; /* the segment's bytes count against RNIC_PARK_ALL */
	uint8_t bytes[];
};

/* Parked Send segments: they arrived before a receive for them was posted. Bytes and messages are
 * limited, by RNIC_PARK_BYTES and RNIC_PARK_MSGS. A wide park has only limits of bytes:
 * RNIC_PARK_MORE, and RNIC_PARK_ALL for all parks together. */
struct park {
	struct list segs;
	uint32_t bytes, msgs;
	bool wide; /* true from qp_rx_widen() until the park is empty */
};

static inline void park_init(struct park *park)
{
	list_init(&park->segs);
}
static inline bool park_is_empty(const struct park *park)
{
	return list_empty(&park->segs);
}
struct park_seg *park_first(const struct park *park); /* returns NULL if the park is empty */
bool park_has_room(const struct park *park, uint32_t len);
/* Add a copy of the segment. Returns NULL if out of memory. */
struct park_seg *park_add(struct park *park, const struct ddp_hdr *hdr, const uint8_t *bytes,
			  uint32_t len);
void park_drop(struct park *park, struct park_seg *seg);
void park_clear(struct park *park);

#endif
