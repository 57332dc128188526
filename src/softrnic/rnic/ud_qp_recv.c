/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_qp_recv.c -- receives of queue pairs for datagrams, and the messages that fill them.
 *
 * Any host can send a packet, so no packet may fail the queue pair. A packet that does not fit is
 * dropped and counted, and the receive stays for the next message.
 */
#include <errno.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/ud_qp_impl.h"

int ud_recv_init(struct ud_qp *qp)
{
	if (qp->cfg.srq)
		return 0;
	return rq_init(&qp->rq, qp->cfg.cap.max_recv_wr, qp->cfg.cap.max_recv_sge);
}

void ud_recv_fini(struct ud_qp *qp)
{
	rq_fini(&qp->rq);
}

static void ud_recv_flush_one(struct ud_qp *qp, uint64_t wr_id)
{
	struct ibv_wc wc = {.wr_id = wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};

	ud_complete(qp, qp->cfg.recv_cq, &wc, false, NULL);
}

void ud_recv_flush(struct ud_qp *qp)
{
	if (qp->has_taken) {
		qp->has_taken = false;
		ud_recv_flush_one(qp, qp->taken.wr_id);
	}
	while (rq_take(&qp->rq, &qp->taken))
		ud_recv_flush_one(qp, qp->taken.wr_id);
}

void ud_recv_drop(struct ud_qp *qp)
{
	qp->has_taken = false;
	while (rq_take(&qp->rq, &qp->taken))
		;
}

static int ud_recv_post_one(struct ud_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->cfg.srq || qp->ibv.state == IBV_QPS_RESET)
		return EINVAL;
	if (qp->ibv.state != IBV_QPS_ERR)
		return rq_post(&qp->rq, wr);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cfg.cap.max_recv_sge)
		return EINVAL;
	ud_recv_flush_one(qp, wr->wr_id);
	return 0;
}

int ud_qp_post_recv(struct ud_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = ud_recv_post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	return err;
}

/* --- messages ------------------------------------------------------------------------------- */

static bool ud_recv_take(struct ud_qp *qp)
{
	if (qp->has_taken)
		return true;
	/* A message that finds no receive is dropped, so the queue pair does not wait in the SRQ's
	 * list. */
	qp->has_taken = qp->cfg.srq ? srq_take(qp->cfg.srq, &qp->taken, NULL)
				    : rq_take(&qp->rq, &qp->taken);
	return qp->has_taken;
}

/* Does the queue pair accept a message now? */
static bool ud_recv_is_ready(struct ud_qp *qp, const struct ud_header *h)
{
	switch (qp->ibv.state) {
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		break;
	default:
		qp->counters.not_ready++;
		return false;
	}
	if (h->qkey == qp->qkey)
		return true;
	qp->counters.bad_qkey++;
	return false;
}

/* A position in the receive's memory, which is filled from its beginning. */
struct ud_place {
	const struct rq_wr *wr;
	/* index of the SGE that is being filled, and the number of bytes in it */
	uint32_t sge, used;
};

static int ud_place_piece(struct ud_qp *qp, const struct ibv_sge *sge, uint64_t at,
			  const uint8_t *bytes, uint32_t len)
{
	struct mr *mr;
	void *to;
	int err;

	if (mr_hold(qp->cfg.mrs, qp->cfg.pd, sge->lkey, sge->addr + at, len, IBV_ACCESS_LOCAL_WRITE,
		    &mr, &to) != MR_OK)
		return -EFAULT;
	err = place(to, bytes, len);
	mr_release(mr);
	return err;
}

/* Write bytes to the receive. The caller has checked that they fit. Returns 0, or -EFAULT if memory
 * is gone or not registered. */
static int ud_place(struct ud_qp *qp, struct ud_place *p, const uint8_t *bytes, size_t len)
{
	int err = 0;

	while (len && !err) {
		const struct ibv_sge *sge = &p->wr->sge[p->sge];
		uint32_t room = sge->length - p->used;
		uint32_t n = len < room ? (uint32_t)len : room;

		if (n)
			err = ud_place_piece(qp, sge, p->used, bytes, n);
		bytes += n;
		len -= n;
		p->used += n;
		if (p->used == sge->length) {
			p->sge++;
			p->used = 0;
		}
	}
	return err;
}

static int ud_place_message(struct ud_qp *qp, const struct ud_path *path, const uint8_t *payload,
			    size_t len)
{
	struct ud_place p = {.wr = &qp->taken};
	uint8_t grh[UD_GRH_LEN];
	int err;

	ud_grh_encode(grh, path, len);
	err = ud_place(qp, &p, grh, sizeof(grh));
	return err ? err : ud_place(qp, &p, payload, len);
}

/*
 * Values of wc.sl. RoCE has no service level at the receiver. Some cards use the field to report
 * which header is in the 40 bytes of the GRH, and UCX 1.13 drops each message whose completion
 * lacks this value.
 */
enum { SL_IPV6 = 1, SL_IPV4 = 2 };

static void ud_recv_complete(struct ud_qp *qp, const struct ud_header *h,
			     const struct ud_path *path, size_t len)
{
	struct ibv_wc wc = {
		.wr_id = qp->taken.wr_id,
		.opcode = IBV_WC_RECV,
		.byte_len = (uint32_t)(UD_GRH_LEN + len),
		.src_qp = h->from_qpn,
		.wc_flags = IBV_WC_GRH,
		.sl = ud_gid_is_ipv4(path->from) ? SL_IPV4 : SL_IPV6,
	};

	if (h->opcode == UD_SEND_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = h->imm;
	}
	qp->has_taken = false;
	qp->counters.sends_in++;
	ud_complete(qp, qp->cfg.recv_cq, &wc, h->solicited, NULL);
}

/* The receive names memory that is not accessible. This is an error of the program, so the queue
 * pair fails. */
static void ud_recv_fail(struct ud_qp *qp)
{
	struct ibv_wc wc = {
		.wr_id = qp->taken.wr_id,
		.status = IBV_WC_LOC_PROT_ERR,
		.opcode = IBV_WC_RECV,
		.vendor_err = EFAULT,
	};

	qp->has_taken = false;
	ud_complete(qp, qp->cfg.recv_cq, &wc, false, NULL);
	ud_qp_move(qp, IBV_QPS_ERR, false);
}

void ud_qp_receive(struct ud_qp *qp, const struct ud_header *h, const struct ud_path *path,
		   const uint8_t *payload, size_t len)
{
	if (!ud_recv_is_ready(qp, h))
		return;
	if (!ud_recv_take(qp))
		qp->counters.no_receive++;
	else if (rq_wr_room(&qp->taken) < UD_GRH_LEN + len)
		qp->counters.too_long++;
	else if (ud_place_message(qp, path, payload, len))
		ud_recv_fail(qp);
	else
		ud_recv_complete(qp, h, path, len);
}
