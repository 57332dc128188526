/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_ex.h -- queue pairs whose work requests the ibv_wr_...() calls build. */
#ifndef VERBS_QP_EX_H
#define VERBS_QP_EX_H

#include <infiniband/verbs.h>
#include <stdint.h>

/*
 * Read the program's request `ex`: *attr, and *ops, the operations that calls will build (0: none).
 * Members outside comp_mask are ignored. Returns 0, or EOPNOTSUPP for a feature that this device
 * lacks.
 */
int qp_ex_attr(const struct ibv_qp_init_attr_ex *ex, struct ibv_qp_init_attr *attr, uint64_t *ops);
/* Set up the calls of a new queue pair, with its granted capabilities. Without operations this does
 * nothing. Returns 0 or -ENOMEM. */
int qp_ex_begin(struct ibv_qp *ibv, uint64_t ops, const struct ibv_qp_cap *cap);
/* To be called before the deletion of any queue pair. */
void qp_ex_end(struct ibv_qp *ibv);

#endif
