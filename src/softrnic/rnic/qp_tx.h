/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_tx.h -- the state of sending: how the next message is chosen, and how messages are turned into
 * FPDUs. */
#ifndef RNIC_QP_TX_H
#define RNIC_QP_TX_H

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/queues.h"
#include "softrnic/rnic/tx_batch.h"

enum tx_source { TX_NONE, TX_FROM_SQ, TX_FROM_IRQ };

struct qp_tx {
	struct tx_batch *batch; /* in the lent buffer */
	uint8_t *at, *end;      /* memory of the link, used by qp_tx_in_place(); else NULL */
	/* number of bytes built at `at` and not reported by qp_tx_sent() yet */
	size_t in_place;
	uint64_t built, sent; /* numbers of bytes of the stream */
	/* messages that end before this stream position are complete: sent, or acknowledged */
	uint64_t done;
	uint32_t mulpdu;
	uint32_t msn[DDP_QN_COUNT]; /* next MSN of each queue */
	/* source of the message that is partly built; messages never interleave */
	enum tx_source source;
	enum tx_source last; /* the source of the previous message */
	uint32_t off;        /* number of bytes of this message's payload that are built */
	struct mr_near near; /* the region that is held while FPDUs are built */
	bool imm_due;        /* the Write is built, and its Immediate Data is not */
	bool rtr_due;        /* the RTR FPDU must be sent first */
	bool term_due;       /* a Terminate must be sent, and nothing after it */
	bool held;           /* send nothing before the peer's first FPDU has arrived */
	bool shut;           /* nothing more is sent on this stream */
	bool window_awaited; /* the next request waits until its window is not in use */
};

/* qp_tx.c */
void qp_tx_stop(struct qp *qp); /* gather nothing except a Terminate, and release all memory */
void qp_tx_shut(struct qp *qp); /* drop all unsent bytes */
/*
 * Copy the bytes that half-sent FPDUs need from the region, and release the region. Records an
 * error if this fails.
 */
void qp_tx_let_go(struct qp *qp, const struct mr *mr);

/* qp_tx_turn.c */
bool qp_tx_has_work(const struct qp *qp);
/* add FPDUs to the batch; returns false if there is nothing to add, or the batch is full */
bool qp_tx_build(struct qp *qp);
void qp_tx_build_all(struct qp *qp); /* build all messages that fit into the batch */

/* --- qp_tx_msg.c: functions by which the operations build their messages -------------------- */

/* The STag of a message without payload is not checked (RFC 5041 s5.2), but some hardware refuses
 * the STag 0. */
#define TX_DUMMY_STAG 1

struct ddp_hdr tx_untagged(const struct qp *qp, enum rdmap_opcode code);
static inline struct ddp_hdr tx_tagged(enum rdmap_opcode code, uint32_t stag, uint64_t to)
{
	return (struct ddp_hdr){
		.tagged = true,
		.version = DDP_VERSION,
		.last = true,
		.ulp = rdmap_ctrl(code),
		.stag = stag,
		.to = to,
	};
}
/* Returns the length of the next segment of a message whose next byte has the offset `at`. Sets
 * hdr->last. */
uint32_t tx_segment(const struct qp *qp, struct ddp_hdr *hdr, uint64_t at, uint32_t left);
void tx_fpdu_done(struct qp *qp, struct tx_fpdu *f);

/* Each of these functions builds one FPDU. It returns false if the batch is full, or an error is
 * recorded. */

/* Build a whole message. Its payload is `len` bytes of the library's own memory. */
bool tx_build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len);
/* Does the same as tx_build_small() for a message of the control queue. */
bool tx_build_control(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len);
/* Build the next segment of a work request's payload. Sets hdr->last for the last segment. */
bool tx_build_data(struct qp *qp, struct sq_wr *wr, struct ddp_hdr *hdr, uint64_t at);
/* Build the message of a work request that the peer has to answer. */
bool tx_build_request(struct qp *qp, struct sq_wr *wr, enum rdmap_opcode code, const void *bytes,
		      int len);
/* Build the answer to the request at the head of the IRQ, in one FPDU. */
bool tx_build_answer(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len);

void tx_answer_built(struct qp *qp);
/* Fail the work request, because its local memory is unusable. FPDUs that were built earlier are
 * sent first, so that their requests complete. */
bool tx_source_failed(struct qp *qp, struct sq_wr *wr, int err);
/* End the work request with this status, and then the stream. FPDUs that were built earlier are
 * sent first. */
bool tx_wr_failed(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err);
/* Is the answer allowed to be written to each SGE of this work request? Returns 0 or an errno
 * value. */
int tx_check_sink(struct qp *qp, const struct sq_wr *wr);

#endif
