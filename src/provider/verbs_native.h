/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_native.h -- flush and atomic write as devices do them, through rdma-core's extended QPs.
 *
 * A QP gets them when the device says that it has them; afterwards the QP itself tells. rdma-core
 * can post an atomic write from release 44 on and a flush from 45 on, which is found out when this
 * is compiled. A QP is asked for through the plain interface as well, also between the two.
 */
#ifndef PROVIDER_VERBS_NATIVE_H
#define PROVIDER_VERBS_NATIVE_H

#include "provider/provider.h"

int verbs_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
/* VEXT_CAP_*. There is no word of the peer: it is taken to be such a device as this one. */
uint32_t verbs_qp_caps(struct ibv_qp *qp);
int verbs_post_list(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted);

#endif
