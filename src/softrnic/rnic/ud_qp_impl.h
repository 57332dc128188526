/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_qp_impl.h -- declarations that only the files ud_qp*.c use. */
#ifndef RNIC_UD_QP_IMPL_H
#define RNIC_UD_QP_IMPL_H

#include <stdatomic.h>

#include "softrnic/rnic/qp.h"
#include "softrnic/rnic/ud_qp.h"

/* A posted Send. */
struct ud_wr {
	uint64_t wr_id;
	struct ud_path path;
	uint32_t qpn, qkey;
	uint32_t imm;
	uint32_t length, num_sge;
	bool signaled, solicited, is_inline, has_imm;
	struct ibv_sge sge[]; /* the list of SGEs, or the inline bytes */
};

struct ud_sq {
	uint8_t *slots;
	size_t stride;
	uint32_t depth;
	uint64_t head, tail; /* counters of requests that only grow */
	/* number of completions that occupy a slot until they are polled */
	atomic_uint uncollected;
};

struct ud_qp {
	union {
		struct ibv_qp ibv;
		struct qp_face face;
	};
	struct ud_qp_config cfg;
	uint32_t qkey;
	struct ud_sq sq;
	/* The payload that ud_qp_stage() loaded. */
	struct {
		uint8_t *bytes; /* NULL: ud_qp_stage() was never called */
		uint64_t next;  /* 1 + index of the request; 0: none is loaded */
		bool failed;    /* its memory is not accessible */
	} stage;
	struct rq rq;
	/*
	 * A receive that was taken from the queue and is not filled yet. The next message gets it.
	 */
	struct rq_wr taken;
	bool has_taken;
	struct ud_counters counters;
};

static inline struct ud_wr *ud_sq_at(const struct ud_sq *sq, uint64_t index)
{
	return (struct ud_wr *)(sq->slots + index % sq->depth * sq->stride);
}

int ud_send_init(struct ud_qp *qp); /* returns 0 or -ENOMEM */
void ud_send_fini(struct ud_qp *qp);
void ud_send_flush(struct ud_qp *qp); /* end every posted request with WR_FLUSH_ERR */
int ud_recv_init(struct ud_qp *qp);
void ud_recv_fini(struct ud_qp *qp);
void ud_recv_flush(struct ud_qp *qp);
void ud_recv_drop(struct ud_qp *qp); /* drop all receives without completions */

/* `uncollected`: see cq_push(). If the CQ is full, the queue pair fails. */
void ud_complete(struct ud_qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected);
void ud_event(struct ud_qp *qp, enum ibv_event_type event);

#endif
