/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_attr.h -- the attributes of a plain queue pair: their values, and what is stored. Pure. */
#ifndef VERBS_QP_ATTR_H
#define VERBS_QP_ATTR_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Are the values of all attributes in `mask` ones that this device can have? */
bool qp_attr_is_valid(const struct ibv_qp_attr *attr, int mask);
/* Copy those attributes; the states are not among them. */
void qp_attr_store(struct ibv_qp_attr *to, const struct ibv_qp_attr *attr, int mask);

#endif
