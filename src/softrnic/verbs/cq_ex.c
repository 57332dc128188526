/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_ex.c -- extended completion queues: a program takes one completion at a time, and reads the
 * members that it needs.
 *
 * The queue itself is an ordinary completion queue. The completion that the program reads is a copy
 * in struct vcq (`current`).
 */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

#define CQX_WC_FLAGS                                                                               \
	((uint64_t)IBV_WC_STANDARD_FLAGS | (uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
#define CQX_INIT_MASK ((uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS | (uint32_t)IBV_CQ_INIT_ATTR_MASK_PD)

static struct vcq *vcq_of(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct vcq, cq.ex);
}

/* --- taking completions ------------------------------------------------------------------- */

static void cqx_lock(struct vcq *cq)
{
	if (!cq->one_thread)
		pthread_mutex_lock(&cq->polling);
}

static void cqx_unlock(struct vcq *cq)
{
	if (!cq->one_thread)
		pthread_mutex_unlock(&cq->polling);
}

/* Convert `got`, the result of polling for one completion. Returns 0, ENOENT, or an errno value. */
static int cqx_judge(struct vcq *cq, int got)
{
	if (got < 1)
		return got ? -got : ENOENT;
	cq->cq.ex.status = cq->current.status;
	cq->cq.ex.wr_id = cq->current.wr_id;
	return 0;
}

static int cqx_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vcq *cq = vcq_of(ex);
	int got, err;

	if (attr->comp_mask)
		return EINVAL;
	cqx_lock(cq);
	if (cq->cq.now)
		got = vcq_poll_stamped(cq, &cq->current, &cq->current_at_ns);
	else
		got = verbs_poll_cq(&cq->cq.ibv, 1, &cq->current);
	err = cqx_judge(cq, got);
	if (err)
		cqx_unlock(cq);
	return err;
}

/* Take a completion that is already queued. The connections are not driven, because start_poll has
 * done that. */
static int cqx_next_poll(struct ibv_cq_ex *ex)
{
	struct vcq *cq = vcq_of(ex);

	return cqx_judge(cq, cq_poll_stamped(&cq->cq, &cq->current, &cq->current_at_ns));
}

static void cqx_end_poll(struct ibv_cq_ex *ex)
{
	cqx_unlock(vcq_of(ex));
}

/* --- reading the current completion ------------------------------------------------------- */

#define CQX_READ(ret, name, member)                                                                \
	static ret cqx_read_##name(struct ibv_cq_ex *ex)                                           \
	{                                                                                          \
		return vcq_of(ex)->member;                                                         \
	}
CQX_READ(enum ibv_wc_opcode, opcode, current.opcode)
CQX_READ(uint32_t, vendor_err, current.vendor_err)
CQX_READ(uint32_t, byte_len, current.byte_len)
/* immediate data, or the invalidated rkey, which is in the same union */
CQX_READ(__be32, imm_data, current.imm_data)
CQX_READ(uint32_t, qp_num, current.qp_num)
CQX_READ(uint32_t, src_qp, current.src_qp)
CQX_READ(unsigned int, wc_flags, current.wc_flags)
CQX_READ(uint32_t, slid, current.slid)
CQX_READ(uint8_t, sl, current.sl)
CQX_READ(uint8_t, dlid_path_bits, current.dlid_path_bits)
CQX_READ(uint64_t, completion_ts, current_at_ns)

static void cqx_fill(struct ibv_cq_ex *ex)
{
	ex->start_poll = cqx_start_poll;
	ex->next_poll = cqx_next_poll;
	ex->end_poll = cqx_end_poll;
	ex->read_opcode = cqx_read_opcode;
	ex->read_vendor_err = cqx_read_vendor_err;
	ex->read_byte_len = cqx_read_byte_len;
	ex->read_imm_data = cqx_read_imm_data;
	ex->read_qp_num = cqx_read_qp_num;
	ex->read_src_qp = cqx_read_src_qp;
	ex->read_wc_flags = cqx_read_wc_flags;
	ex->read_slid = cqx_read_slid;
	ex->read_sl = cqx_read_sl;
	ex->read_dlid_path_bits = cqx_read_dlid_path_bits;
}

/* --- creation ------------------------------------------------------------------------------- */

/* Check the attributes. The flag for a queue that overruns without an error is refused, because
 * such a queue would lose completions. */
static int cqx_check(const struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if (attr->comp_mask & ~CQX_INIT_MASK || attr->wc_flags & ~CQX_WC_FLAGS ||
	    flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return EOPNOTSUPP;
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !attr->parent_domain ? EINVAL : 0;
}

struct ibv_cq_ex *softrnic_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr)
{
	int err = cqx_check(attr);
	struct vcq *cq;

	if (err) {
		errno = err;
		return NULL;
	}
	cq = vcq_new(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	cqx_fill(&cq->cq.ex);
	cq->one_thread = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) {
		cq->cq.ex.read_completion_ts = cqx_read_completion_ts;
		cq->cq.now = clock_now_ns;
	}
	return &cq->cq.ex;
}

/* Read the clock that stamps completions. It counts nanoseconds in one number. */
int softrnic_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values)
{
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){.tv_nsec = (long)clock_now_ns()};
	return 0;
}
