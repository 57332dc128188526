/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_rx.h -- receiving: from bytes to segments, and Sends to their receives. */
#ifndef RNIC_QP_RX_H
#define RNIC_QP_RX_H

#include <stdatomic.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/queues.h"
#include "softrnic/rnic/srq.h"

/* a rest of a payload of this length or more is received directly, not copied */
#define QP_RX_DIRECT_MIN 4096u

#define RX_STOP_SWITCH 1 /* until the owner receives over the other link */
#define RX_STOP_ORIGIN 2 /* until the owner has judged the ORIGIN */

/* The FPDU being received; active once its header was accepted. */
struct rx_seg {
	bool active;
	bool whole;    /* all bytes of the FPDU have arrived */
	bool keep;     /* do not place: the whole payload is for finish() */
	bool lost;     /* qp_rx_lose(): pass over the rest of the payload */
	bool rtr_send; /* the agreed RTR Send, which is not for the user */
	struct ddp_hdr hdr;
	const struct qp_op *op;
	const struct op_rx *rx;
	uint32_t ulpdu;         /* length of the DDP segment */
	uint32_t payload, done; /* bytes behind the DDP header, bytes of them placed */
	uint32_t trailer;       /* pad and CRC */
	uint32_t written;       /* Immediate: bytes of the Write that it follows */
};

struct qp_rx {
	uint8_t *buf;
	uint32_t head, tail;
	bool own_buf; /* the buffer is not lent: it holds bytes that came before one was lent */
	bool eof, stalled, any;
	bool over;    /* qp_rx_give_up(): only a Terminate counts */
	uint8_t stop; /* RX_STOP_*: nothing is parsed or received after the last FPDU */
	/* only the rest of an FPDU goes to the buffer: the next may be parsed in place */
	bool exact;
	bool bulk; /* payload went straight to memory lately, and more of it may follow */
	struct rx_seg seg;
	const atomic_uint *given_up; /* qp_watch_given_up() */
	struct mr_near near;         /* held while FPDUs are parsed */
	/* held from qp_rx_want() until qp_rx_got() or qp_rx_fault(): the owner writes to it */
	struct mr *lent_mr;
	void *lent_ptr;
	uint32_t lent_len;
	uint32_t msn[DDP_QN_COUNT]; /* MSN that comes next on each queue */
	/* a tagged Write is not finished; its next segment must be there */
	bool write_open;
	bool write_lost; /* the last Write, or the one that is not finished, is lost */
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t written; /* bytes of the last Write, until a message of QN 0 follows it */
};

/* The Send being received, or the first parked one being delivered. */
struct recv_msg {
	bool has_wr;
	struct rq_wr wr;
	uint64_t room;     /* sum of the lengths of the receive's SGEs */
	uint32_t received; /* bytes placed */
};

struct qp_waiter; /* counted; outlives the QP while its owner is being notified */

struct qp_recv {
	struct rq rq;
	struct qp_waiter *waiter;
	struct recv_msg msg;
	bool open;   /* segments of an unfinished Send have arrived */
	bool lost;   /* that Send is lost */
	uint8_t ulp; /* control byte of that Send */
	uint32_t mo; /* MO of its next segment */
	uint32_t seen_sends, delivered_sends;
	struct park park;
	bool last_reported; /* LAST_WQE_REACHED was reported */
	bool after_close;   /* parked Sends are delivered although the QP failed: qp_recv_keep() */
};

/* qp_rx.c, qp_rx_io.c */
#define RX_TAGGED_FRAME   (MPA_LENGTH_LEN + DDP_TAGGED_HDR)
#define RX_UNTAGGED_FRAME (MPA_LENGTH_LEN + DDP_UNTAGGED_HDR)
static inline uint32_t qp_rx_buffered(const struct qp_rx *rx)
{
	return rx->tail - rx->head;
}
void qp_rx_parse(struct qp *qp);
/* qp_rx_over.c: pass over the FPDUs, and execute a Terminate. Returns how many bytes were taken. */
uint32_t qp_rx_seek_terminate(struct qp *qp, const uint8_t *bytes, uint32_t n);
void qp_rx_free_own_buf(struct qp_rx *rx);
void qp_rx_stop(struct qp *qp);
void qp_rx_fini(struct qp *qp);
/* Before a store to a region that is held: see place_prepare(). 0 or -EFAULT. */
int qp_rx_prepare(const struct mr *mr, const void *ptr, uint32_t len);
int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len);
void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg);
/*
 * This end cannot take the message: there is no receive, or the peer names memory that it may not
 * write to. Of an unreliable queue pair the message is lost, without a word to the peer. False: the
 * queue pair is reliable, and the caller refuses the message.
 */
bool qp_rx_lose(struct qp *qp, struct rx_seg *seg);
/* Note bytes that the peer has placed in registered memory: a later Flush has to find them. */
void qp_rx_placed(struct qp *qp, struct mr *mr, const void *at, uint64_t len);

/* qp_recv.c */
int qp_recv_init(struct qp *qp);
void qp_recv_fini(struct qp *qp);
void qp_recv_flush(struct qp *qp);
void qp_recv_rewind(struct qp *qp); /* for another stream: drop what is parked */
/*
 * The peer has ended the stream. When the QP fails, keep parked Sends for receives that are posted
 * later.
 */
void qp_recv_keep(struct qp *qp);
void qp_recv_keep_no_more(struct qp *qp);
/* May a Send still go to a receive? Also of a failed QP: see qp_recv_keep(). */
bool qp_recv_is_open(const struct qp *qp);
/* The receive that is being filled will end with this status, which is this end's fault. */
void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err);
void qp_recv_end(struct qp *qp, enum ibv_wc_status status); /* SUCCESS: not yet */
/* Is there a receive for the arriving message? If so it is qp->recv.msg. */
bool qp_recv_take(struct qp *qp);
/* Is the segment the next one on the queue of Sends? If not, the stream ends by a Terminate. */
bool qp_recv_is_in_order(struct qp *qp, const struct rx_seg *seg);
/* The message is lost, at its last segment or before: its receive is for the next one. */
void qp_recv_lose(struct qp *qp, bool last);
/* The message is in its receive: the user may see it. */
void qp_recv_complete(struct qp *qp, const struct rx_seg *seg, struct ibv_wc *wc);
void qp_recv_park(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
/* Give parked Sends to receives as far as there are any. */
void qp_recv_deliver(struct qp *qp);

#endif
