/* SPDX-License-Identifier: BSD-3-Clause */
/* op_atomic.h -- the common part of operations on one word, at the target. */
#ifndef RNIC_OP_ATOMIC_H
#define RNIC_OP_ATOMIC_H

#include "softrnic/rnic/qp_impl.h"

/* Execute the operation on the word and fill in e->answer. Returns 0 or -EFAULT: the memory
 * vanished. */
typedef int atomic_execute_fn(uint64_t *word, struct irq_entry *e);

/*
 * The peer may send an atomic right after a Flush, without waiting for its answer. If the atomic
 * announces durable data, it must not be visible before the data are durable, so a failed Flush is
 * reported first. Returns false if the atomic is refused.
 */
bool atomic_may_run(struct qp *qp);
/* Execute the operation on the word at `to` of this STag, or refuse the request. The peer needs the
 * right `access`. */
void atomic_run(struct qp *qp, struct irq_entry *e, uint32_t stag, uint64_t to, int access,
		atomic_execute_fn *execute);

#endif
