/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_attr.h -- checks and stores the attributes of a plain queue pair. Pure. */
#ifndef VERBS_QP_ATTR_H
#define VERBS_QP_ATTR_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Does this device support the values of all attributes in `mask`? */
bool qp_attr_is_valid(const struct ibv_qp_attr *attr, int mask);
/* Copy the attributes in `mask`, except the states. */
void qp_attr_store(struct ibv_qp_attr *to, const struct ibv_qp_attr *attr, int mask);

#endif
