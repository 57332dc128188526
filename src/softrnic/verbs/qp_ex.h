/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_ex.h -- queue pairs whose work requests are built by the calls ibv_wr_...(). */
#ifndef VERBS_QP_EX_H
#define VERBS_QP_EX_H

#include <infiniband/verbs.h>
#include <stdint.h>

/*
 * Read the attributes `ex` of a program: *attr gets the plain attributes, and *ops the operations
 * that the calls ibv_wr_...() will build (0: none). Members outside comp_mask are ignored. Returns
 * 0, or EOPNOTSUPP for a feature that this device lacks.
 */
int qp_ex_attr(const struct ibv_qp_init_attr_ex *ex, struct ibv_qp_init_attr *attr, uint64_t *ops);
/* Set up the calls of a new queue pair. `cap` are its granted capabilities. If ops is 0, this does
 * nothing. Returns 0 or -ENOMEM. */
int qp_ex_begin(struct ibv_qp *ibv, uint64_t ops, const struct ibv_qp_cap *cap);
/* Must be called before any queue pair is deleted. */
void qp_ex_end(struct ibv_qp *ibv);

#endif
