/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Query: finds the durability class of a range. A Flush of the range cannot achieve a better class.
 */
#include <errno.h>

#include "softrnic/rnic/op_flush.h"

static bool query_check(const struct ibv_send_wr *wr)
{
	return op_vext(wr)->result && op_vext(wr)->len > 0;
}

static void query_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	ext_fill_range(slot, wr);
	slot->result = op_vext(wr)->result;
}

static bool query_build(struct qp *qp, struct sq_wr *wr)
{
	return ext_build_range(qp, wr, EXT_QUERY);
}

static int query_take_answer(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			     struct rcursor *rest)
{
	if (!ext_is_durability(answer->ext.detail))
		return -EBADMSG;
	*(uint32_t *)wr->result = answer->ext.detail;
	return 0;
}

static void query_begin(struct qp *qp, struct irq_entry *e)
{
	struct qp_job job = {.kind = QP_JOB_CLASS};

	if (!ext_query_is_valid(&e->msg.range))
		ext_refuse(qp);
	else if (flush_hold(qp, e, RNIC_REMOTE_ACCESS, &job))
		flush_ask(qp, e, &job);
}

static void query_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		flush_failed(qp, e, status);
	else
		flush_ready(qp, e, EXT_OK, (int)qp->requests.digest.durability);
}

const struct qp_op op_query = {
	.wc = VEXT_WC_QUERY,
	.level = RDMAP_LEVEL_OURS,
	.cap = VEXT_CAP_QUERY,
	.is_request = true,
	.check = query_check,
	.fill = query_fill,
	.build = query_build,
	.message = &ext_range_rx,
	.answer = &ext_answer_rx,
	.take_answer = query_take_answer,
	.begin = query_begin,
	.on_job = query_on_job,
	.on_detach = flush_on_detach,
	.build_answer = ext_build_answer,
};
