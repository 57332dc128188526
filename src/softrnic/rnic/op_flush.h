/* SPDX-License-Identifier: BSD-3-Clause */
/* op_flush.h -- what Flush, Verify and Query have in common at the target. */
#ifndef RNIC_OP_FLUSH_H
#define RNIC_OP_FLUSH_H

#include "softrnic/rnic/op_ext.h"

/* What a work request of this type asks the peer for: EXT_FLUSH_*. */
uint32_t flush_flags(const struct qp *qp, enum vext_flush_type type);

/* Set the answer. The first failure is kept: see struct qp_requests. */
void flush_ready(struct qp *qp, struct irq_entry *e, enum ext_status status, int err);
/* Hold the range with any of these rights, for the job. False: the QP failed. */
bool flush_hold(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job);
/*
 * If bytes of the range may be lost with their file, answer the Flush with that failure. True: it
 * is answered.
 */
bool flush_has_lost(struct qp *qp, struct irq_entry *e, struct qp_job *job);
/* Ask for a job that fills in requests.digest. */
void flush_ask(struct qp *qp, struct irq_entry *e, struct qp_job *job);
/* op_flush_join.c. Let later Flushes join the head's job; called before the job is asked for. */
void flush_join(struct qp *qp, struct qp_job *job);
/* Were the head's bytes written back with an earlier Flush that it had joined? */
static inline bool flush_take_joined(struct qp *qp)
{
	bool joined = qp->requests.joined > 0;

	qp->requests.joined -= joined;
	return joined;
}
void flush_failed(struct qp *qp, struct irq_entry *e, int status);
void flush_on_job(struct qp *qp, struct irq_entry *e, int status);
void flush_on_detach(struct qp *qp, struct irq_entry *e);

#endif
