/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_native.h -- posts flushes and atomic writes that the device itself executes, through
 * rdma-core's extended QPs.
 *
 * If the device reports these operations, a QP is created with them; the function pointers in the
 * QP then show which operations it has. rdma-core can post an atomic write from release 44 on and a
 * flush from release 45 on; the release is determined when verbs_native.c is compiled. Work
 * requests are posted to such a QP through the plain interface, too.
 */
#ifndef PROVIDER_VERBS_NATIVE_H
#define PROVIDER_VERBS_NATIVE_H

#include "provider/provider.h"

int verbs_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
/*
 * Returns the peer's capabilities as VEXT_CAP_* flags. Devices do not report them, so they are
 * assumed to be those of this end's device.
 */
uint32_t verbs_qp_caps(struct ibv_qp *qp);
int verbs_post_list(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted);

#endif
