/* SPDX-License-Identifier: BSD-3-Clause */
/* op_flush.h -- what the operations that travel as a Flush Request have in common. */
#ifndef RNIC_OP_FLUSH_H
#define RNIC_OP_FLUSH_H

#include "softrnic/rnic/qp_impl.h"

extern const struct op_rx flush_rx, flush_answer_rx;

/* What a work request of this type asks the peer for: RDMAP_FLUSH_*. */
uint32_t flush_flags(const struct qp *qp, enum vext_flush_type type);
void flush_fill_range(struct sq_wr *slot, const struct ibv_send_wr *wr);
bool flush_build(struct qp *qp, struct sq_wr *wr);

bool flush_is_persistent(const struct irq_entry *e);
bool flush_is_strict(const struct qp *qp, const struct irq_entry *e);
/* The answer is this. */
void flush_ready(struct qp *qp, struct irq_entry *e, enum rdmap_flush_status status, int err);
/* Hold the range with any of these rights, for the job. False: it is answered, or the QP failed. */
bool flush_hold(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job);
/* Bytes of the range may be lost with their file: then the Flush is answered so. */
bool flush_has_lost(struct qp *qp, struct irq_entry *e, struct qp_job *job);
/* A job that fills in requests.digest. */
void flush_ask(struct qp *qp, struct irq_entry *e, struct qp_job *job);
void flush_failed(struct qp *qp, struct irq_entry *e, int status);
void flush_on_job(struct qp *qp, struct irq_entry *e, int status);
void flush_on_detach(struct qp *qp, struct irq_entry *e);
bool flush_build_answer(struct qp *qp, const struct irq_entry *e);
bool flush_is_durability(uint32_t durability); /* enum rdmap_durability */

#endif
