/* SPDX-License-Identifier: BSD-3-Clause */
/* op_flush.h -- the common part of Flush, Verify and Query, for the end that executes them. */
#ifndef RNIC_OP_FLUSH_H
#define RNIC_OP_FLUSH_H

#include "softrnic/rnic/op_ext.h"

/* The EXT_FLUSH_* flags that a work request of this type sends to the peer. */
uint32_t flush_flags(const struct qp *qp, enum vext_flush_type type);

/* Set the answer. The first failure of the stream is also recorded: see struct qp_requests. */
void flush_ready(struct qp *qp, struct irq_entry *e, enum ext_status status, int err);
/* Hold the range's region for the job. The STag must grant one of these rights. Returns false if
 * the request was refused. */
bool flush_hold(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job);
/*
 * If bytes of the range may have been lost with a failed file, answer the Flush with this failure.
 * Returns true if the Flush is answered.
 */
bool flush_has_lost(struct qp *qp, struct irq_entry *e, struct qp_job *job);
/* Ask the owner for a job whose result is stored in requests.digest. */
void flush_ask(struct qp *qp, struct irq_entry *e, struct qp_job *job);
/* op_flush_join.c: let later Flushes join the write-back of the IRQ's head. Must be called before
 * the job is requested. */
void flush_join(struct qp *qp, struct qp_job *job);
/* Were the bytes of the head already written back, because it had joined an earlier Flush? If so,
 * the call reduces the number of joined Flushes by 1. */
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
