/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp.c -- queue pairs made by verbs alone.
 *
 * iWARP queue pairs are connected by rdma_cm alone. In the software RNIC each belongs to an id, so
 * one that is made by verbs alone has an id that no program sees. As on any iWARP device, it can be
 * made and queried, but never leaves its first state.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* An id has a device once it is bound, whatever the address. */
static int plain_qp_open(struct shim_id *s, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	s->hidden = true;
	if (softrnic_bind_addr(s->inner, (struct sockaddr *)&any))
		return -1;
	shim_id_sync(s);
	return shim_qp_create_plain(s, pd, attr);
}

static struct ibv_qp *plain_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct shim_id *s;
	int err;

	if (!attr->send_cq || !attr->recv_cq)
		return REFUSE_NUL(EINVAL);
	s = shim_id_create(NULL, NULL, RDMA_PS_TCP);
	if (!s)
		return NULL;
	if (!plain_qp_open(s, pd, attr))
		return s->pub.qp;
	err = errno;
	shim_id_destroy(s);
	return REFUSE_NUL(err);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	OPS_SCOPE ops = ops_of(pd->context);

	return ops->is_rdma_core ? ops->verbs.create_qp(pd, attr) : plain_qp_new(pd, attr);
}

/*
 * The one message that is printed unasked: programs report only "Failed to modify QP", without the
 * reason.
 */
void plain_qp_explain(const struct ibv_qp *qp)
{
	static atomic_bool explained;
	const struct shim_id *s = shim_id_with_qp(qp);

	if (s && s->hidden && !atomic_exchange(&explained, true))
		fputs("softrnic: queue pairs without rdma_cm are not supported here: use the program's "
		      "option for it (perftest -R, qperf -cm1); see softrnic-verbs(7)\n",
		      stderr);
}

/* A queue pair that ended with its id must not be accessed. */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	OPS_SCOPE ops = &softrnic_ops;
	struct shim_id *s;

	if (shim_id_forget_qp(qp))
		return 0;
	ops = ops_of(qp->context);
	if (ops->is_rdma_core)
		return ops->verbs.destroy_qp(qp);
	s = shim_id_with_qp(qp);
	if (s && s->hidden)
		shim_id_destroy(s);
	else if (s)
		shim_qp_destroy(s);
	return 0;
}
