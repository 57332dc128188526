/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

_Static_assert(sizeof(struct qp) < 8192, "an idle QP is small; its rings come on top");

/* --- state -------------------------------------------------------------------------------- */

static const char *qp_state_str(enum ibv_qp_state state)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",     [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return names[state];
}

void qp_set_state(struct qp *qp, enum ibv_qp_state state, const char *why)
{
	LOG_DEBUG("qp %u: %s -> %s (%s)", qp->cfg.qp_num, qp_state_str(qp->state),
		  qp_state_str(state), why);
	qp->state = state;
	if (!qp->cfg.plain || state == IBV_QPS_ERR)
		qp->ibv.state = state;
}

void qp_move(struct qp *qp, enum ibv_qp_state state, bool notify_drained)
{
	assert(qp->cfg.plain && !qp_is_failed(qp));
	LOG_DEBUG("qp %u: moved from %s to %s", qp->cfg.qp_num, qp_state_str(qp->ibv.state),
		  qp_state_str(state));
	if (state != IBV_QPS_SQD) {
		qp->sq.stop = SQ_NO_STOP;
		qp->notify_drained = false;
	} else if (qp->ibv.state != IBV_QPS_SQD) {
		qp_sq_pause(qp, notify_drained);
	}
	qp->ibv.state = state;
}

bool qp_is_draining(const struct qp *qp)
{
	return qp->ibv.state == IBV_QPS_SQD && !sq_is_drained(&qp->sq);
}

static int qp_right(unsigned access, int right)
{
	return access & (unsigned)right ? right : right | QP_DENIED;
}

void qp_permit(struct qp *qp, unsigned access)
{
	qp->rights = (struct qp_rights){
		.write = qp_right(access, IBV_ACCESS_REMOTE_WRITE),
		.read = qp_right(access, IBV_ACCESS_REMOTE_READ),
		.atomic = qp_right(access, IBV_ACCESS_REMOTE_ATOMIC),
	};
}

enum ibv_qp_state qp_state(const struct qp *qp)
{
	return qp->ibv.state;
}

bool qp_is_failed(const struct qp *qp)
{
	return qp->state == IBV_QPS_ERR;
}

void qp_drain(struct qp *qp)
{
	if (qp->state == IBV_QPS_RTS)
		qp_set_state(qp, IBV_QPS_SQD, "drain");
}

int qp_start(struct qp *qp, const struct qp_stream *stream)
{
	uint32_t most = qp->cfg.unreliable ? 0 : RNIC_MAX_RD_ATOM;

	if (qp->state != IBV_QPS_INIT)
		return -EINVAL;
	irq_init(&qp->irq, stream->ird < most ? stream->ird : most);
	qp->stream = *stream;
	qp->counters.crc = stream->crc;
	qp->orq.ord = stream->ord < most ? stream->ord : most;
	qp->tx.mulpdu = stream->consent ? MPA_ULPDU_MAX : mpa_mulpdu(stream->mss, stream->markers);
	qp->tx.held = stream->hold_tx;
	qp->tx.rtr_due = stream->rtr_out != QP_RTR_NONE;
	qp->rtr_in = stream->rtr_in;
	hello_begin(qp);
	qp_set_state(qp, IBV_QPS_RTS, "start");
	qp_rx_resume(qp); /* bytes may already be in the buffer */
	return 0;
}

/* --- creation and end --------------------------------------------------------------------- */

static void qp_init_ibv(struct qp *qp)
{
	qp->ibv = (struct ibv_qp){
		.context = qp->cfg.pd->context,
		.pd = qp->cfg.pd,
		.send_cq = &qp->cfg.send_cq->ibv,
		.recv_cq = &qp->cfg.recv_cq->ibv,
		.srq = qp->cfg.srq ? &qp->cfg.srq->ibv : NULL,
		.handle = qp->cfg.qp_num,
		.qp_num = qp->cfg.qp_num,
		.state = qp->cfg.plain ? IBV_QPS_RESET : IBV_QPS_INIT,
		.qp_type = qp->cfg.unreliable ? IBV_QPT_UC : IBV_QPT_RC,
	};
}

static const atomic_uint qp_no_alarm;

void qp_watch_given_up(struct qp *qp, const atomic_uint *word)
{
	qp->rx.given_up = word ? word : &qp_no_alarm;
}

void qp_msn_init(struct qp *qp)
{
	for (int q = 0; q < DDP_QN_COUNT; q++)
		qp->tx.msn[q] = qp->rx.msn[q] = DDP_FIRST_MSN;
}

static atomic_uint_fast64_t qp_ids = 1;

int qp_new(const struct qp_config *cfg, struct qp **out)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return -ENOMEM;
	qp->cfg = *cfg;
	qp->id = atomic_fetch_add(&qp_ids, 1);
	if (!qp->cfg.alarm)
		qp->cfg.alarm = &qp_no_alarm;
	qp_watch_given_up(qp, NULL);
	qp->state = IBV_QPS_INIT;
	qp_permit(qp, qp->cfg.plain ? 0 : RNIC_REMOTE_ACCESS);
	qp_init_ibv(qp);
	qp_msn_init(qp);
	park_init(&qp->recv.park);
	err = sq_init(&qp->sq, &qp->cfg.cap);
	if (!err)
		err = qp_recv_init(qp);
	if (err) {
		qp_delete(qp);
		return err;
	}
	*out = qp;
	return 0;
}

/* Frees everything except the memory of the QP itself. */
static void qp_release(struct qp *qp)
{
	assert(qp->requests.state != REQUEST_RUNNING);
	qp_rx_fini(qp);
	qp_tx_shut(qp);
	qp_requests_stop(qp);
	qp_recv_fini(qp);
	irq_fini(&qp->irq);
	sq_fini(&qp->sq);
	dirty_fini(&qp->dirty);
	dirty_fini(&qp->requests.all);
	origin_fini(qp);
	cq_purge(qp->cfg.send_cq, qp->cfg.qp_num);
	cq_purge(qp->cfg.recv_cq, qp->cfg.qp_num);
}

void qp_delete(struct qp *qp)
{
	if (!qp)
		return;
	qp_release(qp);
	free(qp);
}

/* The face, which is before `cfg`, is kept and not rewritten, because the program may read it at the
 * same time. */
void qp_replace(struct qp *qp, struct qp *fresh)
{
	const size_t kept = offsetof(struct qp, cfg);

	qp_release(qp);
	memcpy((char *)qp + kept, (char *)fresh + kept, sizeof(*qp) - kept);
	free(fresh);
	park_init(&qp->recv.park); /* an empty list points to itself */
	qp->ibv.state = IBV_QPS_RESET;
}

/* --- accessors ---------------------------------------------------------------------------- */

void qp_set_taker(struct qp *qp, struct cq_taker *taker)
{
	qp->taker = taker;
}

struct ibv_qp *qp_ibv(struct qp *qp)
{
	return &qp->ibv;
}

struct qp *qp_of(struct ibv_qp *ibv)
{
	return container_of(ibv, struct qp, ibv);
}

void *qp_owner(const struct qp *qp)
{
	return qp->cfg.owner;
}

const struct qp_config *qp_config(const struct qp *qp)
{
	return &qp->cfg;
}

const struct qp_counters *qp_counters(const struct qp *qp)
{
	return &qp->counters;
}

bool qp_has_received(const struct qp *qp)
{
	return qp->rx.any;
}

const struct terminate *qp_terminate(const struct qp *qp, bool *sent)
{
	if (sent)
		*sent = qp->has_term && qp->term_sent_by_us;
	return qp->has_term ? &qp->term : NULL;
}

uint32_t qp_caps(const struct qp *qp)
{
	bool asks = qp->orq.ord > 0;
	uint32_t caps = 0;

	if (qp->stream.consent)
		caps |= VEXT_CAP_SOFTRNIC;
	if (asks)
		caps |= qp->hello.caps;
	if (qp_level(qp) >= RDMAP_LEVEL_7306)
		caps |= VEXT_CAP_IMM | (asks ? VEXT_CAP_ATOMICS : 0);
	return caps;
}
