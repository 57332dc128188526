/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_impl.h -- the inside of a queue pair, shared by the qp*.c files and by nobody else. */
#ifndef RNIC_QP_IMPL_H
#define RNIC_QP_IMPL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/list.h"
#include "base/log.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/qp.h"
#include "softrnic/rnic/qp_tx_batch.h"
#include "softrnic/rnic/rnic.h"

#define QP_RX_DIRECT_MIN 4096u /* a payload's rest from which on it is not worth a copy */

/* --- send queue --------------------------------------------------------------------------- */

enum sq_op {
	SQ_WRITE,
	SQ_WRITE_IMM,
	SQ_SEND,
	SQ_SEND_INV,
	SQ_SEND_IMM,
	SQ_READ,
	SQ_FETCH_ADD,
	SQ_CMP_SWAP,
	SQ_FLUSH,
	SQ_VERIFY,
	SQ_QUERY,
	SQ_ATOMIC_WRITE,
	SQ_OPS
};

struct sq_row {
	int wr, wc; /* verbs' opcodes; wr -1: not verbs' */
	enum rdmap_level level;
	bool request; /* answered by the peer */
};
extern const struct sq_row qp_sq_rows[SQ_OPS];

struct sq_wr {
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t length;
	uint64_t end_pos; /* transmit position behind its last byte, once all of it is built */
	uint32_t rkey;    /* or the STag that a Send invalidates at the peer */
	uint32_t vendor_err;
	uint32_t flush_flags;
	uint32_t imm;
	void *result;              /* of a VERIFY or QUERY: the user's */
	uint64_t operand, compare; /* of an atomic: added, swapped in or written; compared */
	enum ibv_wc_status status;
	uint8_t op;
	bool signaled, fence, solicited, is_inline;
	bool answered; /* requests: the response is complete */
	uint32_t num_sge;
	struct ibv_sge sge[]; /* or the inline bytes */
};

/* head..next were begun, next..tail wait; the counters only grow, a slot is counter % depth. */
struct qp_sq {
	uint8_t *slots;
	size_t stride;
	uint32_t depth;
	atomic_uint uncollected; /* completions that still take a slot, until they are polled */
	uint64_t head, next, tail;
};

/* Our unanswered requests in order (RFC 5040 s5.5: responses come in request order). */
#define ORQ_RTR UINT64_MAX /* the RTR Read: no work request behind it */
struct qp_orq {
	uint64_t wr[RNIC_MAX_RD_ATOM];
	uint32_t head, count, ord;
	uint32_t received; /* bytes of the head's Read Response */
};

/* --- inbound requests --------------------------------------------------------------------- */

enum irq_state {
	IRQ_WAITING,   /* behind others, or behind a parked Send */
	IRQ_WRITEBACK, /* the owner has to fetch the write-back, or what else it is asked */
	IRQ_RUNNING,   /* write-back under way */
	IRQ_READY,     /* may be answered */
};

struct irq_entry {
	struct ddp_hdr ddp; /* as received, for a Terminate */
	enum rdmap_opcode code;
	union {
		struct rdmap_read_req read;
		struct rdmap_flush_req flush;
		struct rdmap_atomic_req atomic;
	};
	union {
		struct rdmap_flush_resp flushed;
		struct rdmap_atomic_resp was; /* an atomic that is executed, in state READY */
	};
	uint32_t after_sends; /* Sends that were complete when it came: they go first */
};

/* What this stream placed and nobody wrote back: see qp_dirty.c. */
#define DIRTY_RANGES 4
struct dirty_range {
	uint64_t lo, hi; /* counted from the region's first byte */
};
struct dirty_region {
	struct mr *mr; /* referred to */
	uint32_t count;
	struct dirty_range range[DIRTY_RANGES];
};
struct qp_dirty {
	struct dirty_region *region;
	uint32_t count, room;
	bool lost;         /* some of it cannot be written back: its region was deregistered */
	bool lost_durable; /* and should have been on a medium */
	bool failed;       /* and its file failed: the stream has not been answered so yet */
};

struct qp_irq {
	struct irq_entry *ring;
	uint32_t depth, head, count;
	enum irq_state state; /* of the head; all others wait */
	/* The first Flush that failed: nothing may be published any more that it was to precede,
	 * and a Flush of everything fails likewise. Status 0: none. */
	struct rdmap_flush_resp failed;
	struct qp_writeback wb;
	struct vext_digest digest; /* the head's, or `durability`: its class */
	struct qp_dirty all; /* what the Flush of everything, or the Read, at the head has still
			      * to do */
};

/* --- receive ------------------------------------------------------------------------------ */

struct rx_op;

/* The FPDU being received; active once its header was accepted. */
struct rx_seg {
	bool active;
	bool keep;     /* do not place: the whole payload is for finish() */
	bool rtr_send; /* the agreed RTR Send, which is not for the user */
	struct ddp_hdr hdr;
	const struct rx_op *op;
	uint32_t ulpdu;         /* length of the DDP segment */
	uint32_t payload, done; /* bytes behind the DDP header, bytes of them placed */
	uint32_t trailer;       /* pad and CRC */
	uint32_t written;       /* Immediate: bytes of the Write that it follows */
};

enum rx_verdict {
	RX_DONE,  /* go on with the next FPDU */
	RX_MORE,  /* bytes are missing */
	RX_STALL, /* no room for it: do not read on */
	RX_DEAD,  /* the QP failed */
};

/* What receiving an opcode means; the formal checks were made from rdmap_ops. */
struct rx_op {
	/* May it come now? Takes what it needs; leaves no trace unless it returns RX_DONE. */
	enum rx_verdict (*accept)(struct qp *qp, struct rx_seg *seg, bool whole);
	/* Memory for payload bytes from seg->done on: at most max bytes at *ptr, of *mr, which is
	 * now held. 0: the QP failed. NULL: the payload is a header and goes to finish(). */
	uint32_t (*target)(struct qp *qp, const struct rx_seg *seg, uint32_t max, struct mr **mr,
			   void **ptr);
	/* All of it is there, and intact. bytes: the payload, if it was not placed. */
	void (*finish)(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
};
extern const struct rx_op *const qp_rx_ops[RDMAP_OPCODES];

struct qp_rx {
	uint8_t *buf;
	uint32_t head, tail;
	bool own_buf; /* not lent: holds bytes that came before a buffer did */
	bool eof, stalled, any;
	struct rx_seg seg;
	bool receiving;     /* between want and got or fault: the owner may write to the memory */
	struct mr *lent_mr; /* so long held: part of it is among that memory */
	void *lent_ptr;
	uint32_t lent_len;
	uint32_t msn[DDP_QN_COUNT]; /* expected next */
	bool write_open;            /* an unfinished tagged Write, and where it goes on */
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t written; /* bytes of the last Write, until a message of QN 0 follows it */
};

/* The Send being received, or the first parked one being delivered. */
struct recv_msg {
	bool has_wr;
	struct rq_wr wr;
	uint64_t room;     /* of the receive's SGEs */
	uint32_t received; /* bytes placed */
};

struct park_seg {
	struct list link;
	struct ddp_hdr hdr;
	uint32_t len, written;
	uint8_t bytes[];
};

struct qp_waiter; /* counted; outlives the QP while a kick is under way */

struct qp_recv {
	struct rq rq;
	struct qp_waiter *waiter;
	struct recv_msg msg;
	bool open;   /* segments of an unfinished Send have arrived */
	uint8_t ulp; /* its control byte */
	uint32_t mo; /* where it goes on */
	uint32_t seen_sends, delivered_sends;
	struct list parked; /* park_seg */
	uint32_t park_bytes, park_msgs;
	bool last_words; /* parked ones are delivered although the QP failed: qp_recv_keep() */
};

/* --- transmit ----------------------------------------------------------------------------- */

enum tx_source { TX_NONE, TX_FROM_SQ, TX_FROM_IRQ };

struct qp_tx {
	struct tx_batch *batch; /* in the lent buffer */
	uint64_t built, sent;   /* bytes of the stream */
	uint32_t mulpdu;
	uint32_t msn[DDP_QN_COUNT]; /* next */
	enum tx_source source;      /* message begun and not all built; never interleaved */
	enum tx_source last;        /* who had the turn before */
	uint32_t off;               /* bytes of its payload that are built */
	bool imm_due;               /* its Write is built, its Immediate is not */
	bool rtr_due;               /* the RTR FPDU has to go first */
	bool term_due;              /* a Terminate has to go, and then nothing */
	bool held;                  /* nothing before the peer's first FPDU */
	bool shut;                  /* the rest of the stream is given up */
};

struct qp_engine {
	bool ping_due, pong_due;
	uint32_t limit_ms, peer_limit_ms;
	uint64_t pong_token;
};

struct qp {
	struct ibv_qp ibv;
	struct qp_config cfg;
	struct qp_stream stream;
	struct qp_counters counters;
	struct terminate term;
	bool has_term, term_sent_by_us;
	uint32_t cause;     /* vendor_err of what made it fail, and of all that falls with it */
	enum qp_rtr rtr_in; /* expected as first FPDU; NONE once it came */
	struct qp_sq sq;
	struct qp_orq orq;
	struct qp_irq irq;
	struct qp_dirty dirty;
	struct qp_rx rx;
	struct qp_recv recv;
	struct qp_tx tx;
	struct qp_engine engine;
};

/* qp.c: the only writers of ibv.state. */
void qp_set_state(struct qp *qp, enum ibv_qp_state state, const char *why);
/* -> ERR, for this vendor_err unless somebody was blamed before. The first unfinished work request
 * without a status of its own gets `first`. FPDUs begun are finished, a Terminate that is due
 * follows. Nothing happens if it failed before. */
void qp_die(struct qp *qp, enum ibv_wc_status first, uint32_t vendor_err, const char *why);
/* It is the fault of this end; wr (or NULL) ends with the status. The caller lets the QP fail. */
void qp_blame_local(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err);
/* The peer broke a rule, or our own memory failed: Terminate, async event, ERR. */
void qp_refuse(struct qp *qp, unsigned error, const struct ddp_hdr *ddp, uint32_t segment_len,
	       const struct rdmap_read_req *read);
void qp_refuse_seg(struct qp *qp, unsigned error, const struct rx_seg *seg);
void qp_async(struct qp *qp, enum ibv_event_type event);
/* Push a completion; a CQ overrun fails the QP. */
void qp_complete(struct qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected);
/* What may be sent to this peer, and is taken from it. */
enum rdmap_level qp_level(const struct qp *qp);
unsigned qp_rdmap_error(enum mr_verdict verdict);
unsigned qp_ddp_error(enum mr_verdict verdict);

/* qp_sq.c */
int qp_sq_init(struct qp *qp);
struct sq_wr *qp_sq_at(const struct qp *qp, uint64_t index);
void qp_sq_complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		    uint32_t vendor_err);
void qp_sq_retire(struct qp *qp);
void qp_sq_flush(struct qp *qp, enum ibv_wc_status first);
/* May the next one be begun (ORD, fence)? */
bool qp_sq_is_ready(const struct qp *qp);
uint8_t *qp_sq_inline(struct sq_wr *wr);

/* qp_orq.c */
void qp_orq_push(struct qp *qp, uint64_t index);
/* errno for a protection error at this end. */
int qp_local_errno(enum mr_verdict verdict);
void qp_orq_fault(struct qp *qp); /* the sink of the Read being answered is gone */
extern const struct rx_op qp_rx_read_resp, qp_rx_flush_resp, qp_rx_atomic_resp;

/* qp_irq.c */
bool qp_irq_is_ready(const struct qp *qp);
void qp_irq_run(struct qp *qp); /* begin the head, if it may be begun */
struct irq_entry *qp_irq_head(struct qp *qp);
/* Ask the owner, for the head; the hold on wb->mr goes over. */
void qp_irq_want(struct qp *qp, struct qp_writeback *wb);
/* Ask it for the next range of irq.all. 0: there is none; -EFAULT: it cannot be written back. */
int qp_irq_want_next(struct qp *qp, bool strict);
void qp_irq_answered(struct qp *qp);
/* Source failed: Terminate with the request advanced to where it failed (RFC 5040 s4.8). */
void qp_irq_refuse(struct qp *qp, unsigned error, uint32_t off);
void qp_irq_detach(struct qp *qp, const struct mr *mr);
void qp_irq_stop(struct qp *qp); /* forget requests; one write-back may still be under way */
extern const struct rx_op qp_rx_read_req, qp_rx_flush_req, qp_rx_atomic_req;

/* qp_atomic.c: execute the request at the head of the IRQ. */
void qp_atomic_begin(struct qp *qp, struct irq_entry *e);

/* qp_flush.c: the Flush at the head of the IRQ. */
void qp_flush_begin(struct qp *qp, struct irq_entry *e);
/* The owner has done what it was asked: the head may be answered now, or there is more to do. */
void qp_flush_on_writeback(struct qp *qp, struct irq_entry *e, int status);
/* The region of the write-back that is due goes away. False: begin the Flush again. */
bool qp_flush_detached(struct qp *qp, struct irq_entry *e);

/* qp_dirty.c */
void qp_dirty_note(struct qp *qp, struct mr *mr, const void *at, uint64_t len);
/* It is about to be written back; whoever fails in that has to remember the failure. */
void qp_dirty_clean(struct qp *qp, const struct mr *mr, const void *at, uint64_t len);
/* Take one interval out; NULL: there is none. The reference on its region is the caller's. */
struct mr *qp_dirty_next(struct qp_dirty *d, struct dirty_range *range);
void qp_dirty_move(struct qp_dirty *to, struct qp_dirty *from);
/* The same of what can persist, one interval a region. False: no memory. */
bool qp_dirty_move_durable(struct qp_dirty *to, struct qp_dirty *from);
/* It was deregistered, and cannot be written back any more. */
void qp_dirty_forget(struct qp_dirty *d, const struct mr *mr);
/* Bytes that are lost with a failed file: reported once. The file may have had a fresh start since.
 */
bool qp_dirty_has_failed(struct qp_dirty *d);
void qp_dirty_fini(struct qp_dirty *d);

/* qp_rx.c, qp_rx_io.c */
#define RX_TAGGED_FRAME   (MPA_LENGTH_LEN + DDP_TAGGED_HDR)
#define RX_UNTAGGED_FRAME (MPA_LENGTH_LEN + DDP_UNTAGGED_HDR)
static inline uint32_t qp_rx_buffered(const struct qp_rx *rx)
{
	return rx->tail - rx->head;
}
void qp_rx_parse(struct qp *qp);
void qp_rx_free_own_buf(struct qp_rx *rx);
void qp_rx_stop(struct qp *qp);
void qp_rx_fini(struct qp *qp);
/* Is this the MSN that a one-segment message on its queue must have? Terminates if not. */
bool qp_rx_is_next(struct qp *qp, const struct rx_seg *seg);
int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len);
void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg);

/* qp_recv.c, qp_park.c */
int qp_recv_init(struct qp *qp);
void qp_recv_fini(struct qp *qp);
void qp_recv_flush(struct qp *qp);
/* The stream ends in good order: keep what is parked for receives to come when the QP fails. */
void qp_recv_keep(struct qp *qp);
void qp_recv_keep_no_more(struct qp *qp);
/* May a Send still go to a receive? Also of a failed QP: see qp_recv_keep(). */
bool qp_recv_is_open(const struct qp *qp);
void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err); /* of this end */
/* Give parked Sends to receives as far as there are any. */
void qp_recv_deliver(struct qp *qp);
bool qp_park_has_room(const struct qp *qp, uint32_t len);
int qp_park_add(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
void qp_park_drop(struct qp *qp, struct park_seg *p);
void qp_park_clear(struct qp *qp);
extern const struct rx_op qp_rx_send, qp_rx_imm;

/* qp_engine.c */
bool qp_engine_is_due(const struct qp *qp);
struct rdmap_engine qp_engine_next(const struct qp *qp);
void qp_engine_sent(struct qp *qp);
extern const struct rx_op qp_rx_engine;

/* qp_tx.c, qp_tx_msg.c */
bool qp_tx_has_work(const struct qp *qp);
void qp_tx_stop(struct qp *qp);  /* gather nothing but a Terminate; let go of all memory */
void qp_tx_shut(struct qp *qp);  /* drop everything */
bool qp_tx_build(struct qp *qp); /* one more FPDU into the batch; false: nothing, or no room */

#endif
