/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_tx.h -- sending: chooses the next message, and turns messages into FPDUs. */
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
	size_t in_place;        /* bytes built there, until qp_tx_sent() */
	uint64_t built, sent;   /* bytes of the stream */
	uint64_t done;          /* messages up to this position complete: sent, or acknowledged */
	uint32_t mulpdu;
	uint32_t msn[DDP_QN_COUNT]; /* next MSN of each queue */
	enum tx_source source;      /* message that is partly built; messages never interleave */
	enum tx_source last;        /* the source of the previous message */
	uint32_t off;               /* bytes of its payload built so far */
	struct mr_near near;        /* held while FPDUs are built */
	bool imm_due;               /* the Write is built, and its Immediate Data is not */
	bool rtr_due;               /* the RTR FPDU must be sent first */
	bool term_due;              /* a Terminate must be sent, and then nothing */
	bool held;                  /* send nothing before the peer's first FPDU */
	bool shut;                  /* the rest of the stream is given up */
};

/* qp_tx.c */
void qp_tx_stop(struct qp *qp); /* gather nothing but a Terminate; release all memory */
void qp_tx_shut(struct qp *qp); /* drop everything */
/*
 * Copy the bytes that half-sent FPDUs need from the region, and release it. An error is recorded.
 */
void qp_tx_let_go(struct qp *qp, const struct mr *mr);

/* qp_tx_turn.c */
bool qp_tx_has_work(const struct qp *qp);
bool qp_tx_build(struct qp *qp);     /* add FPDUs to the batch; false: nothing to add, or no room */
void qp_tx_build_all(struct qp *qp); /* build all messages for which there is room */

/* --- qp_tx_msg.c: the operations build their messages by these ------------------------------ */

/* The STag of an empty message is not checked (RFC 5041 s5.2), but some hardware refuses zero. */
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
/* Returns the length of the next segment of a message that continues at `at`; sets hdr->last. */
uint32_t tx_segment(const struct qp *qp, struct ddp_hdr *hdr, uint64_t at, uint32_t left);
void tx_fpdu_done(struct qp *qp, struct tx_fpdu *f);

/* Each of these builds one FPDU. False: there is no room, or an error is recorded. */

/* A whole message with `len` bytes of our own as payload. */
bool tx_build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len);
/* As tx_build_small(), on the control queue. */
bool tx_build_control(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len);
/* Build the next segment of a work request's payload. hdr->last is set for the last one. */
bool tx_build_data(struct qp *qp, struct sq_wr *wr, struct ddp_hdr *hdr, uint64_t at);
/* A work request that the peer has to answer. */
bool tx_build_request(struct qp *qp, struct sq_wr *wr, enum rdmap_opcode code, const void *bytes,
		      int len);
/* The answer to the request at the head of the IRQ, in one FPDU. */
bool tx_build_answer(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len);

void tx_answer_built(struct qp *qp);
/* Local memory is unusable. FPDUs that were built earlier are sent first, so that they complete. */
bool tx_source_failed(struct qp *qp, struct sq_wr *wr, int err);
/* The work request ends with this status, and so does the stream. FPDUs built earlier are sent
 * first. */
bool tx_wr_failed(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err);
/* May the answer be written to the work request's memory? Returns 0, or an errno value. */
int tx_check_sink(struct qp *qp, const struct sq_wr *wr);

#endif
