/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_qp.h -- queue pairs for datagrams, made by verbs without rdma_cm. Each queue pair belongs to a
 * port (io/ud_port.h), which sends and receives its packets. */
#ifndef VERBS_UD_QP_H
#define VERBS_UD_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs_ext/verbs_ext.h"

static inline bool vud_is(const struct ibv_qp *ibv)
{
	return ibv->qp_type == IBV_QPT_UD;
}

/* Create a queue pair. *cap receives the granted capabilities. Returns NULL and sets errno on
 * failure. */
struct ibv_qp *vud_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t ops,
		       struct ibv_qp_cap *cap);
void vud_delete(struct ibv_qp *ibv);

/* These functions implement the calls with the same names in verbs and softrnic.h. */
int vud_modify(struct ibv_qp *ibv, const struct ibv_qp_attr *attr, int mask);
int vud_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
int vud_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vud_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vud_post_list(struct ibv_qp *ibv, const struct vext_wr *wrs, int n, int *posted);
int vud_counters(struct ibv_qp *ibv, const char *const **names, uint64_t *values, int max);

#endif
