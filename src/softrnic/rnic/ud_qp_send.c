/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_qp_send.c -- posted Sends of queue pairs for datagrams, and their packets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/safecopy.h"
#include "softrnic/rnic/ud_qp_impl.h"

#define UD_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
/* if a request's key has this bit, the queue pair's own key is used instead */
#define UD_QKEY_OWN 0x80000000u

int ud_send_init(struct ud_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->cfg.cap;
	size_t sges = cap->max_send_sge * sizeof(struct ibv_sge);
	size_t tail = sges > cap->max_inline_data ? sges : cap->max_inline_data;

	qp->sq.depth = cap->max_send_wr;
	qp->sq.stride = (sizeof(struct ud_wr) + tail + 15) & ~(size_t)15;
	if (!qp->sq.depth)
		return 0;
	qp->sq.slots = calloc(qp->sq.depth, qp->sq.stride);
	return qp->sq.slots ? 0 : -ENOMEM;
}

void ud_send_fini(struct ud_qp *qp)
{
	free(qp->sq.slots);
	qp->sq.slots = NULL;
	free(qp->stage.bytes);
	qp->stage.bytes = NULL;
}

/* Number of free slots. As with other queue pairs, a slot becomes free when its completion is
 * polled. */
static uint32_t ud_sq_room(const struct ud_sq *sq)
{
	uint64_t used =
		sq->tail - sq->head + atomic_load_explicit(&sq->uncollected, memory_order_relaxed);

	return used < sq->depth ? (uint32_t)(sq->depth - used) : 0;
}

/* --- completing ----------------------------------------------------------------------------- */

/* Complete the first request and remove it from the queue. */
static void ud_send_end(struct ud_qp *qp, enum ibv_wc_status status, uint32_t vendor_err)
{
	const struct ud_wr *w = ud_sq_at(&qp->sq, qp->sq.head++);
	struct ibv_wc wc = {
		.wr_id = w->wr_id,
		.status = status,
		.opcode = IBV_WC_SEND,
		.vendor_err = vendor_err,
		.byte_len = w->length,
	};

	if (w->signaled || status != IBV_WC_SUCCESS)
		ud_complete(qp, qp->cfg.send_cq, &wc, false, &qp->sq.uncollected);
}

void ud_send_flush(struct ud_qp *qp)
{
	while (qp->sq.head != qp->sq.tail)
		ud_send_end(qp, IBV_WC_WR_FLUSH_ERR, 0);
}

/* --- posting -------------------------------------------------------------------------------- */

static int ud_check_state(const struct ud_qp *qp)
{
	switch (qp->ibv.state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
		return 0;
	default:
		return EINVAL;
	}
}

static uint64_t ud_length(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

static int ud_check(const struct ud_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_qp_cap *cap = &qp->cfg.cap;
	uint32_t max = wr->send_flags & IBV_SEND_INLINE ? cap->max_inline_data : UD_PAYLOAD_MAX;

	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return EINVAL;
	if (wr->send_flags & ~(unsigned)UD_FLAGS || !wr->wr.ud.ah ||
	    wr->wr.ud.remote_qpn > UD_QPN_MAX)
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge)
		return EINVAL;
	return ud_length(wr) > max || ud_length(wr) > UD_PAYLOAD_MAX ? EINVAL : 0;
}

static void ud_copy_payload(struct ud_wr *w, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)w->sge;

	if (!w->is_inline) {
		w->num_sge = (uint32_t)wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++)
			w->sge[i] = wr->sg_list[i];
		return;
	}
	w->num_sge = 0;
	for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
		if (wr->sg_list[i].length)
			memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
}

static void ud_take(struct ud_qp *qp, const struct ibv_send_wr *wr)
{
	struct ud_wr *w = ud_sq_at(&qp->sq, qp->sq.tail++);
	bool own = wr->wr.ud.remote_qkey & UD_QKEY_OWN;

	w->wr_id = wr->wr_id;
	w->path = container_of(wr->wr.ud.ah, struct ud_ah, ibv)->path;
	w->qpn = wr->wr.ud.remote_qpn;
	w->qkey = own ? qp->qkey : wr->wr.ud.remote_qkey;
	w->has_imm = wr->opcode == IBV_WR_SEND_WITH_IMM;
	w->imm = w->has_imm ? wr->imm_data : 0;
	w->length = (uint32_t)ud_length(wr);
	w->signaled = qp->cfg.sq_sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	w->solicited = wr->send_flags & IBV_SEND_SOLICITED;
	w->is_inline = wr->send_flags & IBV_SEND_INLINE;
	ud_copy_payload(w, wr);
}

static void ud_settle(struct ud_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_ERR || qp->ibv.state == IBV_QPS_SQE)
		ud_send_flush(qp);
}

int ud_qp_post_send(struct ud_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = ud_check_state(qp);

	for (; !err && wr; wr = wr->next) {
		err = ud_check(qp, wr);
		if (!err && !ud_sq_room(&qp->sq))
			err = ENOMEM;
		if (err)
			break;
		ud_take(qp, wr);
	}
	if (err)
		*bad = wr;
	ud_settle(qp);
	return err;
}

int ud_qp_post_list(struct ud_qp *qp, const struct vext_wr *wrs, int n)
{
	int err = n < 0 ? EINVAL : ud_check_state(qp);

	for (int i = 0; i < n && !err; i++)
		err = wrs[i].op == VEXT_OP_VERBS ? ud_check(qp, &wrs[i].wr) : EINVAL;
	if (!err && (uint32_t)n > ud_sq_room(&qp->sq))
		err = ENOMEM;
	for (int i = 0; i < n && !err; i++)
		ud_take(qp, &wrs[i].wr);
	ud_settle(qp);
	return err;
}

/* --- packets -------------------------------------------------------------------------------- */

static bool ud_copy_sge(struct ud_qp *qp, const struct ibv_sge *sge, uint8_t *to)
{
	struct mr *mr;
	void *from;
	int err;

	if (!sge->length)
		return true;
	if (mr_hold(qp->cfg.mrs, qp->cfg.pd, sge->lkey, sge->addr, sge->length, 0, &mr, &from) !=
	    MR_OK)
		return false;
	err = safecopy(to, from, sge->length);
	mr_release(mr);
	return !err;
}

static bool ud_copy(struct ud_qp *qp, const struct ud_wr *w, uint8_t *to)
{
	if (w->is_inline)
		memcpy(to, w->sge, w->length);
	for (uint32_t i = 0; i < w->num_sge; to += w->sge[i++].length)
		if (!ud_copy_sge(qp, &w->sge[i], to))
			return false;
	return true;
}

void ud_qp_stage(struct ud_qp *qp)
{
	const struct ud_sq *sq = &qp->sq;

	if (qp->ibv.state != IBV_QPS_RTS || sq->head == sq->tail || qp->stage.next == sq->head + 1)
		return;
	if (!qp->stage.bytes)
		qp->stage.bytes = malloc(UD_PAYLOAD_MAX);
	if (!qp->stage.bytes)
		return;
	qp->stage.failed = !ud_copy(qp, ud_sq_at(sq, sq->head), qp->stage.bytes);
	qp->stage.next = sq->head + 1;
}

static bool ud_is_staged(const struct ud_qp *qp)
{
	return qp->stage.next == qp->sq.head + 1;
}

/* Put the payload into the packet. The staged request is the first one. */
static bool ud_put_payload(struct ud_qp *qp, const struct ud_wr *w, uint8_t *to)
{
	if (!ud_is_staged(qp))
		return ud_copy(qp, w, to);
	memcpy(to, qp->stage.bytes, qp->stage.failed ? 0 : w->length);
	return !qp->stage.failed;
}

static void ud_put_header(const struct ud_qp *qp, const struct ud_wr *w, struct ud_packet *p)
{
	struct ud_header h = {
		.opcode = w->has_imm ? UD_SEND_IMM : UD_SEND,
		.solicited = w->solicited,
		.asks = p->asks,
		.serial = p->serial,
		.from_qpn = qp->cfg.qp_num,
		.to_qpn = w->qpn,
		.qkey = w->qkey,
		.imm = w->imm,
	};

	(void)ud_header_encode(p->bytes, UD_HEADER_LEN, &h);
}

/* Build the packet of a request. Returns 0, -EAGAIN if the packet must wait for its peer's credit,
 * or -EFAULT if the request's memory is not accessible. */
static int ud_build(struct ud_qp *qp, const struct ud_wr *w, struct ud_flows *flows, uint64_t now,
		    struct ud_packet *p)
{
	p->path = w->path;
	p->port = ud_port_of(w->qpn);
	p->len = UD_HEADER_LEN + w->length;
	if (!ud_flows_take(flows, p, now))
		return -EAGAIN;
	ud_put_header(qp, w, p);
	if (ud_put_payload(qp, w, p->bytes + UD_HEADER_LEN))
		return 0;
	ud_flows_give_back(flows, p);
	return -EFAULT;
}

/* A request whose memory is not accessible fails only after all requests before it are sent. */
int ud_qp_gather(struct ud_qp *qp, struct ud_flows *flows, uint64_t now, struct ud_packet *packets,
		 int max)
{
	struct ud_sq *sq = &qp->sq;
	int n = 0, err = 0;

	if (qp->ibv.state != IBV_QPS_RTS)
		return 0;
	if (ud_is_staged(qp) && max > 1)
		max = 1;
	while (n < max && sq->head + (unsigned)n != sq->tail) {
		err = ud_build(qp, ud_sq_at(sq, sq->head + (unsigned)n), flows, now, &packets[n]);
		if (err)
			break;
		n++;
	}
	if (n || !err)
		return n;
	if (err != -EFAULT)
		return err;
	/* Memory of this end is not accessible: fail the first request. Receives continue in state
	 * SQE. */
	qp->ibv.state = IBV_QPS_SQE;
	ud_send_end(qp, IBV_WC_LOC_PROT_ERR, EFAULT);
	ud_send_flush(qp);
	return 0;
}

void ud_qp_sent(struct ud_qp *qp, int n)
{
	qp->counters.sends_out += (unsigned)n;
	while (n-- > 0 && qp->sq.head != qp->sq.tail)
		ud_send_end(qp, IBV_WC_SUCCESS, 0);
}
