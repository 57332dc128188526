/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_rx.h -- receiving: splits bytes into segments, and matches Sends with their receives. */
#ifndef RNIC_QP_RX_H
#define RNIC_QP_RX_H

#include <stdatomic.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/queues.h"
#include "softrnic/rnic/srq.h"

/* the rest of a payload is received directly, without a copy, from this length on */
#define QP_RX_DIRECT_MIN 4096u

#define RX_STOP_SWITCH 1 /* until the owner receives over the other link */
#define RX_STOP_ORIGIN 2 /* until the owner has judged the ORIGIN */

/* The FPDU in progress; active after its header was accepted. */
struct rx_seg {
	bool active;
	bool whole;    /* the whole FPDU has arrived */
	bool keep;     /* do not place the payload: finish() gets all of it */
	bool lost;     /* qp_rx_lose(): skip the rest of the payload */
	bool rtr_send; /* the agreed RTR Send, which is not for the user */
	struct ddp_hdr hdr;
	const struct qp_op *op;
	const struct op_rx *rx;
	uint32_t ulpdu;         /* length of the DDP segment */
	uint32_t payload, done; /* bytes after the DDP header, and how many of them are placed */
	uint32_t trailer;       /* pad and CRC */
	uint32_t written;       /* Immediate: length of the preceding Write */
};

struct qp_rx {
	uint8_t *buf;
	uint32_t head, tail;
	bool own_buf; /* own, not lent: holds bytes that came before a buffer was lent */
	bool eof, stalled, any;
	bool over;    /* qp_rx_give_up(): only a Terminate counts */
	uint8_t stop; /* RX_STOP_*: nothing is parsed or received until the owner continues */
	/* read only the rest of an FPDU to the buffer: the next may be parsed in place */
	bool exact;
	bool bulk; /* payload was recently received directly to memory, and more may follow */
	struct rx_seg seg;
	const atomic_uint *given_up; /* qp_watch_given_up() */
	struct mr_near near;         /* held while FPDUs are parsed */
	/*
	 * held from qp_rx_want() until qp_rx_got() or qp_rx_fault(), because the owner writes to it
	 */
	struct mr *lent_mr;
	void *lent_ptr;
	uint32_t lent_len;
	uint32_t msn[DDP_QN_COUNT]; /* expected MSN of each queue */
	/* a tagged Write is unfinished; its next segment must follow */
	bool write_open;
	bool write_lost; /* the last Write, or the unfinished one, is lost */
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t written; /* length of the last Write, until a message of QN 0 follows */
};

/* The Send in progress, or the first parked one during its delivery. */
struct recv_msg {
	bool has_wr;
	struct rq_wr wr;
	uint64_t room;     /* sum of the lengths of the receive's SGEs */
	uint32_t received; /* number of placed bytes */
};

struct qp_waiter; /* counted; outlives the QP during a notification of its owner */

struct qp_recv {
	struct rq rq;
	struct qp_waiter *waiter;
	struct recv_msg msg;
	bool open;   /* segments of an unfinished Send have arrived */
	bool lost;   /* the unfinished Send is lost */
	uint8_t ulp; /* control byte of the unfinished Send */
	uint32_t mo; /* MO of its next segment */
	uint32_t seen_sends, delivered_sends;
	struct park park;
	bool last_reported; /* LAST_WQE_REACHED was reported */
	bool after_close;   /* deliver parked Sends after a failure: qp_recv_keep() */
};

/* qp_rx.c, qp_rx_io.c */
#define RX_TAGGED_FRAME   (MPA_LENGTH_LEN + DDP_TAGGED_HDR)
#define RX_UNTAGGED_FRAME (MPA_LENGTH_LEN + DDP_UNTAGGED_HDR)
static inline uint32_t qp_rx_buffered(const struct qp_rx *rx)
{
	return rx->tail - rx->head;
}
void qp_rx_parse(struct qp *qp);
/* qp_rx_over.c: skip FPDUs, and execute a Terminate. Returns the number of processed bytes. */
uint32_t qp_rx_seek_terminate(struct qp *qp, const uint8_t *bytes, uint32_t n);
void qp_rx_free_own_buf(struct qp_rx *rx);
void qp_rx_stop(struct qp *qp);
void qp_rx_fini(struct qp *qp);
/* To be called before a store to a held region: see place_prepare(). Returns 0 or -EFAULT. */
int qp_rx_prepare(const struct mr *mr, const void *ptr, uint32_t len);
int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len);
void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg);
/*
 * This end cannot accept the message: there is no receive, or the peer may not write to the memory.
 * An unreliable queue pair loses the message, without a report to the peer. Returns false if the
 * queue pair is reliable; then the caller refuses the message.
 */
bool qp_rx_lose(struct qp *qp, struct rx_seg *seg);
/* Record bytes that the peer has placed in registered memory, for a later Flush. */
void qp_rx_placed(struct qp *qp, struct mr *mr, const void *at, uint64_t len);

/* qp_recv.c */
int qp_recv_init(struct qp *qp);
void qp_recv_fini(struct qp *qp);
void qp_recv_flush(struct qp *qp);
void qp_recv_rewind(struct qp *qp); /* for another stream: drop parked Sends */
/* The peer has ended the stream. When the QP fails, keep parked Sends for later receives. */
void qp_recv_keep(struct qp *qp);
void qp_recv_keep_no_more(struct qp *qp);
/* May a Send still go to a receive? Even for a failed QP: see qp_recv_keep(). */
bool qp_recv_is_open(const struct qp *qp);
/* The receive in progress will end with this status, because of a fault at this end. */
void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err);
void qp_recv_end(struct qp *qp, enum ibv_wc_status status); /* SUCCESS: do not end it yet */
/* Is there a receive for the arriving message? If so, qp->recv.msg is set to it. */
bool qp_recv_take(struct qp *qp);
/* Is the segment the next one on the queue of Sends? If not, the stream ends by a Terminate. */
bool qp_recv_is_in_order(struct qp *qp, const struct rx_seg *seg);
/* The message is lost, at its last segment or earlier: the next message gets its receive. */
void qp_recv_lose(struct qp *qp, bool last);
/* The receive contains the whole message: complete it for the user. */
void qp_recv_complete(struct qp *qp, const struct rx_seg *seg, struct ibv_wc *wc);
void qp_recv_park(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
/* Deliver parked Sends while there are receives. */
void qp_recv_deliver(struct qp *qp);

#endif
