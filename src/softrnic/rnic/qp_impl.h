/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_impl.h -- the struct of a queue pair, and functions for the files of this folder only. */
#ifndef RNIC_QP_IMPL_H
#define RNIC_QP_IMPL_H

#include <errno.h>

#include "base/log.h"
#include "base/word.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/rnic/dirty.h"
#include "softrnic/rnic/mw.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp.h"
#include "softrnic/rnic/qp_rx.h"
#include "softrnic/rnic/qp_tx.h"
#include "softrnic/rnic/queues.h"

/* State of the request at the head of the IRQ; all others wait. */
enum request_state {
	REQUEST_WAITING, /* the request waits for its turn, or for the delivery of earlier Sends */
	REQUEST_JOB,     /* the owner must fetch the job */
	REQUEST_RUNNING, /* the owner runs the job */
	REQUEST_READY,   /* the answer may be sent */
};

struct qp_requests {
	enum request_state state;
	/* Status of the first Flush that failed, or EXT_OK. After a failure no later atomic request
	 * is executed, and a Flush of everything fails as well. */
	enum ext_status failed;
	uint32_t failed_detail;
	struct qp_job job;
	uint32_t joined; /* number of Flushes after the head that the last job also serves */
	/* result of the head's job: a digest, or a durability class in digest.durability */
	struct vext_digest digest;
	/* ranges that the head still has to write back, if it is a Flush of everything or a Read */
	struct dirty all;
};

struct qp_hello {
	bool due;     /* a message of the start-up, or a LEAVE, must be sent */
	bool awaited; /* the start-up is in progress: no message of the user is sent or accepted */
	bool unsent;  /* this end's HELLO is not sent yet */
	bool missing; /* the peer's HELLO has not arrived yet */
	struct ext_hello peer;
	uint32_t caps; /* VEXT_CAP_* flags, computed from the kinds in `peer` */
};

struct qp_origin {
	bool agreed;     /* both ends take part in the barrier */
	bool asked;      /* this end's ORIGIN awaits its answer */
	bool answered;   /* the answer has arrived, and is in `answer` */
	bool answer_due; /* an answer to the peer's ORIGIN must be sent */
	bool leave_due, peer_leaves;
	struct ext_answer answer;
	struct ext_origin *came; /* the peer's ORIGIN, until the owner takes it */
	uint8_t *out;            /* this end's ORIGIN, encoded; NULL: no ORIGIN must be sent */
	int out_len;
};

/* State of the Acks. Both ends count messages in the same way: struct qp_op contains the number of
 * messages of a work request. */
struct qp_acks {
	bool on;         /* both HELLOs announce Acks */
	bool due;        /* an Ack must be sent */
	bool waits;      /* the message after `taken` is a Send that waits for a receive */
	uint64_t before; /* number of the peer's messages on former streams of this queue pair */
	/* number of the peer's messages that are placed or delivered without a gap */
	uint64_t taken;
	uint64_t sent;    /* count in the last Ack that this end sent */
	uint64_t came;    /* count in the last Ack of the peer */
	uint64_t next;    /* index of the first request without an Ack or answer */
	uint64_t covered; /* number of messages of the work requests before `next` */
};

/* A Send that waits for a receive: see rnr.c. */
struct qp_rnr {
	uint32_t told;     /* for Acks: 1 + the code set by qp_set_rnr_timer(); 0: send no time */
	uint32_t tries;    /* limit of tries of one of this end's Sends; 0: no limit */
	uint64_t for_next; /* 1 + the count of the last Ack that contained `told` */
	/* the peer's code for the time until a retry, valid while `waits` is set */
	uint32_t code;
	bool waits;  /* a Send of this end waits for a receive of the peer */
	bool is_new; /* `waits` or `code` has changed since qp_rnr_changed() */
};

struct qp_heartbeat {
	bool ping_due, pong_due;
	uint32_t limit_ms, peer_limit_ms;
	uint64_t pong_token;
};

/* number of steps that an end may send without an answer: MEET, MET, STOP */
#define QP_LINK_STEPS 3

struct qp_link {
	/* numbers of steps that wait; the oldest step is first in its array */
	unsigned out_due, in_due;
	struct qp_link_msg out[QP_LINK_STEPS], in[QP_LINK_STEPS];
	/* a SWITCH is built, and no byte may follow it on this link */
	bool tx_switching;
	uint64_t tx_end;               /* stream position of the SWITCH's end */
	bool tx_switched, rx_switched; /* the sending (receiving) direction uses the other link */
};

/* The first error, from its detection until qp_settle(). The function that detects the error
 * records it and returns. After that no byte is placed, and no request is begun or completed. */
struct qp_fault {
	bool due;
	bool keep; /* the stream ended in order, so parked Sends are still delivered */
	bool shut; /* send nothing more, not even a Terminate */
	bool event_due;
	enum ibv_event_type event;
	/* status of the first unfinished work request that has no separate status */
	enum ibv_wc_status first;
	/* status of the receive in progress; SUCCESS: the same status as all other receives */
	enum ibv_wc_status recv;
	const char *why;
};

/* A right that no region grants. A look-up for a request that the QP does not permit requires this
 * right, so that permitted requests need no extra check. */
#define QP_DENIED (1 << 16)

struct qp {
	union {
		struct ibv_qp ibv;
		struct qp_face face;
	};
	struct qp_config cfg;
	uint64_t id; /* unique in the process, even after a reset */
	/* State of the work on the stream. ibv.state is the state that the user sees: for a plain
	 * QP the state that the user last set, for other QPs the same as `state`. */
	enum ibv_qp_state state;
	struct qp_rights {
		/* rights that a region must have for Writes, Reads and atomics of the peer */
		int write, read, atomic;
	} rights;
	struct qp_stream stream;
	/* taker of the thread that polls and holds the QP's lock now; NULL: none */
	struct cq_taker *taker;
	struct qp_counters counters;
	struct terminate term;
	bool has_term, term_sent_by_us;
	struct qp_fault fault;
	uint32_t cause;     /* vendor_err of the first failure, and of all requests that are flushed
			       because of it */
	enum qp_rtr rtr_in; /* kind of the FPDU that must arrive first; NONE after its arrival */
	struct sq sq;
	bool notify_drained; /* the event SQ_DRAINED is due when the send queue is drained */
	bool comm_reported;  /* the event COMM_EST was reported */
	struct orq orq;
	struct irq irq;
	struct qp_requests requests;
	struct dirty dirty; /* ranges that the peer has written and that are not written back */
	struct qp_rx rx;
	struct qp_recv recv;
	struct qp_tx tx;
	struct qp_hello hello;
	struct qp_origin origin;
	struct qp_heartbeat heartbeat;
	struct qp_acks acks;
	struct qp_rnr rnr;
	struct qp_link link;
};

/* --- qp.c --------------------------------------------------------------------------------- */

void qp_set_state(struct qp *qp, enum ibv_qp_state state, const char *why);
void qp_msn_init(struct qp *qp);
/* Returns the level of messages that may be exchanged with this peer. */
static inline enum rdmap_level qp_level(const struct qp *qp)
{
	if (qp->stream.consent)
		return RDMAP_LEVEL_OURS;
	return qp->cfg.peer_rfc7306 ? RDMAP_LEVEL_7306 : RDMAP_LEVEL_BASE;
}

/* --- qp_fault.c --------------------------------------------------------------------------- */

/* Record an error, unless an error is already recorded. vendor_err becomes the cause unless the QP
 * has a cause already. The first unfinished work request without a separate status completes with
 * `first`. */
void qp_fault(struct qp *qp, enum ibv_wc_status first, uint32_t vendor_err, const char *why);
/*
 * Record that the peer broke a rule, or that this end's memory failed. The peer gets a Terminate,
 * and the user an async event.
 */
void qp_refuse(struct qp *qp, unsigned error, const struct ddp_hdr *ddp, uint32_t segment_len,
	       const struct rdmap_read_req *read);
void qp_refuse_seg(struct qp *qp, unsigned error, const struct rx_seg *seg);
/* Record an error of this end. The user gets an async event; the peer gets no Terminate. */
void qp_fault_local(struct qp *qp, int err, const char *why);
/* Record that the cause is at this end. wr (if not NULL) completes with the status. The caller must
 * record the fault afterwards. */
void qp_set_local_cause(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err);
/* Notify the user of an event that is not an error. */
void qp_event(struct qp *qp, enum ibv_event_type event);
/* Settle a recorded error: set the state ERR, finish begun FPDUs, flush all work requests. Every
 * function of qp.h that may find an error ends with this call. */
void qp_settle_fault(struct qp *qp);
static inline void qp_settle(struct qp *qp)
{
	if (qp->fault.due)
		qp_settle_fault(qp);
}
/* Has the peer given up its connection? If so, the caller records the fault by qp_given_up().
 * Nothing is executed after that. */
bool qp_find_end(struct qp *qp);
void qp_given_up(struct qp *qp);
static inline bool qp_is_over(struct qp *qp)
{
	unsigned words = atomic_load_explicit(qp->cfg.alarm, memory_order_relaxed) |
			 atomic_load_explicit(qp->rx.given_up, memory_order_relaxed);

	return __builtin_expect(words, 0) && qp_find_end(qp);
}
/* Push a completion. If the CQ overruns, record a fault. */
void qp_complete(struct qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected);
unsigned qp_rdmap_error(enum mr_verdict verdict);
unsigned qp_ddp_error(enum mr_verdict verdict);
int qp_local_errno(enum mr_verdict verdict); /* for a protection error at this end */

/* --- qp_sq.c: this end's posted work requests --------------------------------------------- */

bool qp_window_may_end(const struct qp *qp, const struct sq_wr *wr); /* defined in op_window.c */
/* Is the condition in wr->fence fulfilled? */
static inline bool qp_sq_may_pass(const struct qp *qp, const struct sq_wr *wr)
{
	if (__builtin_expect(wr->fence == SQ_FENCE_WINDOW, 0))
		return qp_window_may_end(qp, wr);
	return wr->fence == SQ_FENCE_ALL ? qp->sq.head == qp->sq.next : qp->orq.count == 0;
}
/* Can the next work request begin (ORD, fence)? */
static inline bool qp_sq_is_ready(const struct qp *qp)
{
	const struct sq_wr *wr;

	if (qp->sq.next == qp->sq.tail || __builtin_expect(qp->sq.next >= qp->sq.stop, 0))
		return false;
	wr = sq_at(&qp->sq, qp->sq.next);
	if (wr->fence && !qp_sq_may_pass(qp, wr))
		return false;
	return !wr->op->is_request || qp->orq.count < qp->orq.ord;
}
void qp_sq_complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		    uint32_t vendor_err);
void qp_sq_retire(struct qp *qp);
void qp_sq_flush(struct qp *qp, enum ibv_wc_status first);
void qp_sq_pause(struct qp *qp, bool notify_drained); /* move to SQD: begin no further request */
bool qp_answer_is_for_rtr(const struct qp *qp);
/* Returns the work request that the next answer belongs to, if messages of this kind answer it. */
struct sq_wr *qp_answered_wr(const struct qp *qp, const struct op_rx *rx);
/* `wr` is NULL for the answer to the RTR Read */
void qp_answer_done(struct qp *qp, struct sq_wr *wr);
/* Fail the QP, because the request failed at the peer. */
void qp_answer_failed(struct qp *qp, struct sq_wr *wr, uint32_t vendor_err, const char *why);

/* --- op_window.c: memory windows ---------------------------------------------------------- */

/* The second part of qp_hold_remote(). It is not inlined, because few programs use windows. */
enum mr_verdict qp_hold_window(struct qp *qp, struct mr_near *near, uint32_t stag,
			       struct mr_need need, void **ptr);
/* Look up memory that the peer names, which may be a region or a window. For the parameters see
 * mr_hold_near(); `near` may be all zeros. */
static inline enum mr_verdict qp_hold_remote(struct qp *qp, struct mr_near *near, uint32_t stag,
					     uint64_t to, uint64_t len, int all, int any,
					     void **ptr)
{
	enum mr_verdict verdict =
		mr_hold_near(qp->cfg.mrs, near, qp->cfg.pd, stag, to, len, all, any, ptr);

	if (__builtin_expect(verdict != MR_BAD_PD, 1))
		return verdict;
	return qp_hold_window(
		qp, near, stag,
		(struct mr_need){.pd = qp->cfg.pd, .to = to, .len = len, .all = all, .any = any},
		ptr);
}
/* Invalidate a window of this queue pair for the peer. Returns false if no window of this queue
 * pair has the STag, or if a job uses the window. */
bool qp_window_invalidate(struct qp *qp, uint32_t stag);

/* --- placing: op_rx functions of messages that are placed while they arrive ----------------- */

/* n bytes have arrived for the memory at ptr. Returns how many of the last of them belong to a word
 * that is still incomplete. */
static inline uint32_t qp_rx_part_of_word(const void *ptr, uint32_t n)
{
	uint32_t part = (uint32_t)(((uintptr_t)ptr + n) % WORD_LEN);

	return part < n ? part : n;
}

/*
 * `rx` is seg->rx. The functions of a row pass it as a constant, so that the handlers are inlined.
 * If `more` is true, a part of the payload has not arrived. In memory that can be made persistent
 * an aligned word is then placed only as a whole, because the connection may end before the rest of
 * the word arrives; seg->done shows how much was placed. Returns 0 or -errno.
 */
static inline __attribute__((always_inline)) int qp_rx_place_as(struct qp *qp, struct rx_seg *seg,
								const uint8_t *src, uint32_t len,
								const struct op_rx *rx, bool more)
{
	while (len > 0) {
		void *ptr;
		uint32_t n = rx->target(qp, seg, len, &ptr);
		struct mr *mr = qp->rx.near.mr;
		int err;

		if (n == 0 && seg->lost)
			seg->done += len;
		if (n == 0)
			return seg->lost ? 0 : -EFAULT;
		if (more && n == len && mr->backing.durable)
			n -= qp_rx_part_of_word(ptr, n);
		if (n == 0)
			return 0;
		err = mr->backing.can_stall ? qp_rx_prepare(mr, ptr, n) : 0;
		if (!err)
			err = place(ptr, src, n);
		if (!err && !rx->is_answer)
			qp_rx_placed(qp, mr, ptr, n);
		if (err) {
			qp_rx_fault_at(qp, seg);
			return err;
		}
		qp->counters.rx_copied_bytes += n;
		seg->done += n;
		src += n;
		len -= n;
		if (qp->fault.due)
			return -ECONNABORTED;
	}
	return 0;
}

/* The function op_rx.whole for a row whose payload is placed. */
static inline __attribute__((always_inline)) enum rx_verdict
qp_rx_place_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes, const struct op_rx *rx)
{
	enum rx_verdict verdict = rx->accept(qp, seg);

	if (verdict != RX_DONE)
		return verdict;
	if (!seg->keep && qp_rx_place_as(qp, seg, bytes, seg->payload, rx, false))
		return RX_FAULT;
	rx->finish(qp, seg, bytes);
	return RX_DONE;
}

/* --- qp_requests.c: the peer's requests --------------------------------------------------- */

static inline bool qp_request_is_ready(const struct qp *qp)
{
	return qp->requests.state == REQUEST_READY;
}
/* The function op_rx.whole for the peer's requests: add the request to the IRQ, and begin it if it
 * is the head. */
enum rx_verdict qp_request_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes);
void qp_requests_run(struct qp *qp); /* begin the head, if it may begin */
bool qp_request_is_due(const struct qp *qp, const struct irq_entry *e);
void qp_request_ready(struct qp *qp);
void qp_request_answered(struct qp *qp);
/*
 * Refuse the head by a Terminate. `read` is the unanswered part of a Read (RFC 5040 s4.8), or NULL.
 */
void qp_request_refuse(struct qp *qp, unsigned error, const struct rdmap_read_req *read);
/* Ask the owner to run this job for the head. The job takes over the hold on job->mr. */
void qp_request_job(struct qp *qp, struct qp_job *job);
/* Ask the owner to write back the next range of requests.all. Returns 1 if the owner is asked, 0 if
 * no range is left, or -EFAULT if the range cannot be written back. */
int qp_request_next_of_all(struct qp *qp, bool strict);
void qp_requests_detach(struct qp *qp, const struct mr *mr);
void qp_requests_stop(struct qp *qp); /* drop all requests; one job may still be running */

/* --- building an FPDU in a batch ---------------------------------------------------------- */

/* Begin an FPDU of `parts` parts with `payload` bytes in total. Returns false if it does not fit
 * into the batch; the batch must be sent first. Also returns false if the batch is in memory of the
 * link, because only short messages are built there. */
static inline bool tx_fpdu_begin(struct tx_fpdu *f, const struct qp *qp, const struct ddp_hdr *hdr,
				 uint32_t payload, unsigned parts)
{
	if (qp->tx.at)
		return false;
	f->b = qp->tx.batch;
	f->pos = qp->tx.built;
	f->crc = qp->stream.crc;
	f->markers = qp->stream.markers;
	f->short_link = qp->link.tx_switched;
	f->is_response = qp->tx.source == TX_FROM_IRQ;
	return tx_fpdu_open(f, hdr, payload, parts);
}

/* Called when the whole work request is built. */
static inline void tx_wr_built(struct qp *qp, struct sq_wr *wr)
{
	wr->end_pos = qp->tx.built;
	qp->sq.next++;
	qp->tx.source = TX_NONE;
	qp->tx.imm_due = false;
	qp->tx.off = 0;
}

/* --- hello.c, origin.c, heartbeat.c, ack.c, link.c,
 * op_terminate.c: messages without a work request --- */

void hello_begin(struct qp *qp); /* called when the stream is in full operation */
bool hello_build(struct qp *qp);
/* Is this segment allowed to arrive before the peer's HELLO? */
bool hello_permits(const struct qp *qp, const struct rx_seg *seg);
/* Must be called when other messages of the start-up become due or awaited. */
void hello_update(struct qp *qp);
/* Does the peer's HELLO name the operation, or does the operation need no HELLO? */
static inline bool hello_names(const struct qp *qp, const struct qp_op *op)
{
	return !(op->cap & ~qp->hello.caps);
}
bool origin_is_due(const struct qp *qp);
bool origin_build(struct qp *qp);
void origin_fini(struct qp *qp);

static inline bool heartbeat_is_due(const struct qp *qp)
{
	return (qp->heartbeat.ping_due || qp->heartbeat.pong_due) && qp->stream.consent;
}
bool heartbeat_build(struct qp *qp);
void ack_update_count(struct qp *qp);
/*
 * Called when messages of the peer may have been placed or delivered: check whether an Ack is due.
 */
static inline void ack_update(struct qp *qp)
{
	if (__builtin_expect(qp->acks.on, 0))
		ack_update_count(qp);
}
bool ack_build(struct qp *qp);
void ack_pass_local_ones(struct qp *qp);
/* Requests that send no message need no Ack: count them as acknowledged with the message before. */
static inline void ack_pass_local(struct qp *qp)
{
	if (qp->acks.on)
		ack_pass_local_ones(qp);
}
/* Handle the 24 bits of the peer's Ack that contain the peer's qp_rnr.told, or 0. */
void rnr_take(struct qp *qp, uint32_t told);
void rnr_rewind(struct qp *qp);
void ack_rewind(struct qp *qp); /* prepare for another stream, after the queues are prepared */
/* Called when the work request with this index is answered. The peer has then also executed all
 * earlier ones. */
void ack_on_answer(struct qp *qp, uint64_t index);
bool link_build(struct qp *qp);
static inline bool link_switch_is_sent(const struct qp *qp)
{
	return qp->link.tx_switching && qp->tx.sent >= qp->link.tx_end;
}
/* is there a step that qp_link_take() returns? */
static inline bool link_is_due(const struct qp *qp)
{
	return qp->link.in_due || link_switch_is_sent(qp);
}
/* end the stream by a Terminate: the peer sent a SWITCH, or bytes after it, at the wrong time */
void link_refuse(struct qp *qp);
bool terminate_build(struct qp *qp);

#endif
