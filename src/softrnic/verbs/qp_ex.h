/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_ex.h -- queue pairs whose work requests are built by calls (ibv_wr_...()). */
#ifndef VERBS_QP_EX_H
#define VERBS_QP_EX_H

#include <infiniband/verbs.h>
#include <stdint.h>

/*
 * What `ex` asks for: *attr, and the operations that calls will build (0: none). 0, or EOPNOTSUPP for
 * a feature that this device lacks. Only members that comp_mask names are looked at.
 */
int qp_ex_attr(const struct ibv_qp_init_attr_ex *ex, struct ibv_qp_init_attr *attr, uint64_t *ops);
/* Of a queue pair that was just made, with what was granted to it. 0 or -ENOMEM. No operations:
 * nothing is done. */
int qp_ex_begin(struct ibv_qp *ibv, uint64_t ops, const struct ibv_qp_cap *cap);
/* Before it is deleted; of any queue pair. */
void qp_ex_end(struct ibv_qp *ibv);

#endif
