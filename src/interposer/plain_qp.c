/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp.c -- queue pairs that programs make by verbs without rdma_cm. Also destroys queue pairs
 * of rdma_cm, because a program may destroy any queue pair by verbs.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	OPS_SCOPE ops = ops_of(pd->context);
	struct ibv_qp *qp;

	if (ops->is_rdma_core)
		return ops->verbs.create_qp(pd, attr);
	qp = softrnic_create_plain_qp(pd, attr);
	if (qp)
		shim_id_forget_qp(qp); /* an earlier queue pair may have had this address */
	return qp;
}

/* Function pointer in contexts: see plain_qp_adopt(). */
static struct ibv_qp *plain_qp_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = softrnic_create_plain_qp_ex(ctx, attr);

	if (qp)
		shim_id_forget_qp(qp); /* an earlier queue pair may have had this address */
	return qp;
}

struct ibv_context *plain_qp_adopt(struct ibv_context *ctx)
{
	if (ctx)
		verbs_get_ctx(ctx)->create_qp_ex = plain_qp_create_ex;
	return ctx;
}

static void plain_qp_explain_once(atomic_bool *explained, const char *text)
{
	if (!atomic_exchange(explained, true))
		fprintf(stderr, "softrnic: %s; see softrnic-verbs(7)\n", text);
}

void plain_qp_explain(int err, const struct ibv_qp_attr *attr, int mask)
{
	static atomic_bool no_gid, no_meeting;

	if (err == EOPNOTSUPP && mask & IBV_QP_STATE)
		plain_qp_explain_once(
			&no_meeting,
			"queue pairs without rdma_cm need the device that looks like "
			"RoCE: run it without --iwarp (SOFTRNIC_IDENTITY=roce), or use "
			"the program's option for rdma_cm (perftest -R, qperf -cm1)");
	else if (err == EINVAL && mask & IBV_QP_AV && !attr->ah_attr.is_global)
		plain_qp_explain_once(&no_gid, "the peer is named by its LID alone, which Ethernet "
					       "does not have: use the program's option for a GID "
					       "index (ibv_rc_pingpong -g 0), with the index of "
					       "a row that is not empty");
}

/* A queue pair that has already ended with its id is not accessed here. */
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
	if (!s && softrnic_is_plain_qp(qp))
		return softrnic_destroy_plain_qp(qp);
	if (s)
		shim_qp_destroy(s);
	return 0;
}
