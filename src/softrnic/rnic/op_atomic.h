/* SPDX-License-Identifier: BSD-3-Clause */
/* op_atomic.h -- the common part of the operations on one word, for the end that executes them. */
#ifndef RNIC_OP_ATOMIC_H
#define RNIC_OP_ATOMIC_H

#include "softrnic/rnic/qp_impl.h"

/* Execute the operation on the word and fill in e->answer. Returns 0, or -EFAULT if the memory has
 * vanished. */
typedef int atomic_execute_fn(uint64_t *word, struct irq_entry *e);

/*
 * If an earlier Flush failed, refuses the atomic and returns false. The peer is allowed to send an
 * atomic directly after a Flush, without waiting for the Flush's answer. Such an atomic can
 * announce that data are durable, so it must not be executed if they are not durable.
 */
bool atomic_may_run(struct qp *qp);
/* Execute the operation on the word at offset `to` of this STag, or refuse the request. The STag
 * must grant the right `access`. */
void atomic_run(struct qp *qp, struct irq_entry *e, uint32_t stag, uint64_t to, int access,
		atomic_execute_fn *execute);

#endif
