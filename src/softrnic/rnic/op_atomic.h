/* SPDX-License-Identifier: BSD-3-Clause */
/* op_atomic.h -- what the operations on one word have in common at the target. */
#ifndef RNIC_OP_ATOMIC_H
#define RNIC_OP_ATOMIC_H

#include "softrnic/rnic/qp_impl.h"

/* Executes the operation on the word and fills in e->answer. 0 or -EFAULT: the memory vanished. */
typedef int atomic_execute_fn(uint64_t *word, struct irq_entry *e);

/*
 * The peer may have sent the atomic after a Flush without waiting for that. An atomic that
 * announces durable data must not be visible if the data are not durable, so a failed Flush is
 * reported first. False: refused.
 */
bool atomic_may_run(struct qp *qp);
/*
 * Execute the operation on the word at `to` of this STag, for which the peer needs the right; or
 * refuse the request.
 */
void atomic_run(struct qp *qp, struct irq_entry *e, uint32_t stag, uint64_t to, int access,
		atomic_execute_fn *execute);

#endif
