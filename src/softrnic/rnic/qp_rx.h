/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_rx.h -- the state of receiving: how bytes are split into segments, and how Sends get their
 * receives. */
#ifndef RNIC_QP_RX_H
#define RNIC_QP_RX_H

#include <stdatomic.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/queues.h"
#include "softrnic/rnic/srq.h"

/* from this length on, the rest of a payload is received directly to its place, without a copy, if
 * its memory permits that (qp_rx_io.c) */
#define QP_RX_DIRECT_MIN 4096u

/* RX_STOP_*: receive nothing until the owner receives from the other link */
#define RX_STOP_SWITCH 1
#define RX_STOP_ORIGIN 2 /* receive nothing until the owner has handled the ORIGIN */

/* The FPDU in progress. It becomes active after its header was accepted. */
struct rx_seg {
	bool active;
	bool whole;    /* the whole FPDU has arrived */
	bool keep;     /* do not place the payload, but pass all of it to finish() */
	bool lost;     /* set by qp_rx_lose(): skip the rest of the payload */
	bool rtr_send; /* this is the agreed RTR Send, which is not for the user */
	struct ddp_hdr hdr;
	const struct qp_op *op;
	const struct op_rx *rx;
	uint32_t ulpdu; /* length of the DDP segment */
	/* number of bytes after the DDP header, and number of these bytes that are placed */
	uint32_t payload, done;
	uint32_t trailer; /* length of pad and CRC */
	uint32_t written; /* for Immediate Data: length of the preceding Write */
};

struct qp_rx {
	uint8_t *buf;
	uint32_t head, tail;
	/* the buffer is the QP's own, not the owner's: it holds bytes that came before a buffer was
	 * lent */
	bool own_buf;
	bool eof, stalled, any;
	bool over; /* set by qp_rx_give_up(): only a Terminate has an effect */
	/* RX_STOP_*: nothing is parsed or received until the owner continues; 0: no stop */
	uint8_t stop;
	/*
	 * read only the rest of an FPDU to the buffer, because the next FPDU may be parsed in place
	 */
	bool exact;
	/* a payload was recently received directly to its destination, and more may follow */
	bool bulk;
	struct rx_seg seg;
	const atomic_uint *given_up; /* see qp_watch_given_up() */
	struct mr_near near;         /* the region that is held while FPDUs are parsed */
	/*
	 * region that the owner receives into; held from qp_rx_want() until qp_rx_got() or
	 * qp_rx_fault()
	 */
	struct mr *lent_mr;
	void *lent_ptr;
	uint32_t lent_len;
	uint32_t msn[DDP_QN_COUNT]; /* expected MSN of each queue */
	/* a tagged Write is unfinished, and the next tagged segment must continue it */
	bool write_open;
	bool write_lost; /* the last Write, or the unfinished one, is lost */
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t written; /* length of the last Write; reset when a message of queue 0 follows */
};

/* The Send in progress, or, while parked Sends (queues.h) are delivered, the first of them. */
struct recv_msg {
	bool has_wr;
	struct rq_wr wr;
	uint64_t room;     /* sum of the lengths of the receive's SGEs */
	uint32_t received; /* number of placed bytes */
};

/* reference-counted; outlives the QP while a notification of its owner is in progress */
struct qp_waiter;

struct qp_recv {
	struct rq rq;
	struct qp_waiter *waiter;
	struct recv_msg msg;
	bool open;   /* segments of an unfinished Send have arrived */
	bool lost;   /* the unfinished Send is lost */
	uint8_t ulp; /* control byte of the unfinished Send */
	uint32_t mo; /* expected MO of the next segment of the unfinished Send */
	uint32_t seen_sends, delivered_sends;
	struct park park;
	bool last_reported; /* LAST_WQE_REACHED was reported */
	bool after_close;   /* set by qp_recv_keep(): deliver parked Sends after a failure */
};

/* qp_rx.c, qp_rx_io.c */
#define RX_TAGGED_FRAME   (MPA_LENGTH_LEN + DDP_TAGGED_HDR)
#define RX_UNTAGGED_FRAME (MPA_LENGTH_LEN + DDP_UNTAGGED_HDR)
static inline uint32_t qp_rx_buffered(const struct qp_rx *rx)
{
	return rx->tail - rx->head;
}
void qp_rx_parse(struct qp *qp);
/* qp_rx_over.c: skip FPDUs until a Terminate, and execute the Terminate. Returns the number of
 * processed bytes. */
uint32_t qp_rx_seek_terminate(struct qp *qp, const uint8_t *bytes, uint32_t n);
void qp_rx_free_own_buf(struct qp_rx *rx);
void qp_rx_stop(struct qp *qp);
void qp_rx_fini(struct qp *qp);
/* Must be called before a store to a held region: see place_prepare(). Returns 0 or -EFAULT. */
int qp_rx_prepare(const struct mr *mr, const void *ptr, uint32_t len);
int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len);
void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg);
/*
 * Called if this end cannot accept the message, because there is no receive, or the peer is not
 * allowed to write to the memory. If the queue pair is unreliable, the message is lost without a
 * report to the peer. If it is reliable, the function returns false, and the caller refuses the
 * message.
 */
bool qp_rx_lose(struct qp *qp, struct rx_seg *seg);
/* Record bytes that the peer has placed in registered memory, for a later Flush. */
void qp_rx_placed(struct qp *qp, struct mr *mr, const void *at, uint64_t len);

/* in qp_recv.c: */
int qp_recv_init(struct qp *qp);
void qp_recv_fini(struct qp *qp);
void qp_recv_flush(struct qp *qp);
void qp_recv_rewind(struct qp *qp); /* prepare for another stream: drop parked Sends */
/* Called when the peer has closed the stream. When the QP then fails, parked Sends are kept for
 * receives that are posted later. */
void qp_recv_keep(struct qp *qp);
void qp_recv_keep_no_more(struct qp *qp);
/*
 * Can a Send still get a receive? This may be so even after the QP has failed: see qp_recv_keep().
 */
bool qp_recv_is_open(const struct qp *qp);
/* Called for a fault at this end: the receive in progress will complete with this status. */
void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err);
/* End the receive in progress, if there is one, with this status. SUCCESS: do nothing. */
void qp_recv_end(struct qp *qp, enum ibv_wc_status status);
/* Is there a receive for the arriving message? If there is one, qp->recv.msg is set to it. */
bool qp_recv_take(struct qp *qp);
/* Is the segment the next one on the queue of Sends? Returns false if not; the stream then ends by
 * a Terminate. */
bool qp_recv_is_in_order(struct qp *qp, const struct rx_seg *seg);
/* Called for each segment of a lost message; `last` is true for the last one. The next message gets
 * the receive. */
void qp_recv_lose(struct qp *qp, bool last);
/* Complete the receive, which contains the whole message, for the user. */
void qp_recv_complete(struct qp *qp, const struct rx_seg *seg, struct ibv_wc *wc);
void qp_recv_park(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
/* Deliver parked Sends as long as there are receives. */
void qp_recv_deliver(struct qp *qp);

#endif
