/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_tx_msg.h -- what the qp_tx_*.c files that make messages share and nobody else uses. */
#ifndef RNIC_QP_TX_MSG_H
#define RNIC_QP_TX_MSG_H

#include "softrnic/rnic/qp_impl.h"

/* RFC 5041 s5.2 has the STag of an empty message unchecked; some hardware refuses zero. */
#define DUMMY_STAG 1

static inline struct tx_fpdu fpdu_of(struct qp *qp)
{
	return (struct tx_fpdu){
		.b = qp->tx.batch,
		.pos = qp->tx.built,
		.crc = qp->stream.crc,
		.markers = qp->stream.markers,
		.is_response = qp->tx.source == TX_FROM_IRQ,
	};
}

static inline void fpdu_done(struct qp *qp, struct tx_fpdu *f)
{
	qp->tx.built += tx_fpdu_close(f);
	qp->counters.tx_copied_bytes += f->copied;
	qp->counters.tx_fpdus++;
}

static inline struct ddp_hdr untagged(struct qp *qp, enum rdmap_opcode code)
{
	uint8_t qn = rdmap_ops[code].qn;

	return (struct ddp_hdr){
		.version = DDP_VERSION,
		.last = true,
		.ulp = rdmap_ctrl(code),
		.qn = qn,
		.msn = qp->tx.msn[qn],
	};
}

static inline struct ddp_hdr tagged(enum rdmap_opcode code, uint32_t stag, uint64_t to)
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

static inline uint32_t segment_of(struct qp *qp, struct ddp_hdr *hdr, uint64_t at, uint32_t left)
{
	uint32_t len = ddp_segment(ddp_payload_max(qp->tx.mulpdu, hdr->tagged), at, left);

	hdr->last = len == left;
	return len;
}

/* A whole message of one FPDU whose payload is `len` bytes of our own. */
bool tx_build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len);

bool tx_build_wr(struct qp *qp);     /* qp_tx_wr.c: of the next work request */
bool tx_build_answer(struct qp *qp); /* qp_tx_answer.c: of the next answer */

#endif
