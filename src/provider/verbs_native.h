/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_native.h -- flush and atomic write as devices do them, through rdma-core's extended QPs.
 *
 * A QP is created with these operations if the device reports them; the QP's own table then shows
 * which it has. rdma-core can post an atomic write from release 44 on and a flush from 45 on, which
 * is determined when this is compiled. Work requests are posted to such a QP through the plain
 * interface, too.
 */
#ifndef PROVIDER_VERBS_NATIVE_H
#define PROVIDER_VERBS_NATIVE_H

#include "provider/provider.h"

int verbs_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
/*
 * The peer's capabilities, VEXT_CAP_*. Devices do not report them, so assume that the peer has the
 * same device.
 */
uint32_t verbs_qp_caps(struct ibv_qp *qp);
int verbs_post_list(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted);

#endif
