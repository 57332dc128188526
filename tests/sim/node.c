/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c -- life of an end. node_io.c drives it, node_events.c has what happens to it. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "workload.h"

static void on_stream_event(void *owner, enum cm_stream_event event, int status)
{
	struct node *n = owner;

	if (event == CM_EV_REDIAL)
		n->redial = true;
	else if (!n->stopping)
		workload_on_event(n, event, status);
}

/* The SRQ has receives again: any thread may say so, without the QP's lock. */
static void on_kick(void *owner)
{
	struct node *n = owner;

	n->kicked = true;
	node_pump_soon(n);
}

static void on_get(void *owner)
{
}

static void on_async(void *owner, enum ibv_event_type event)
{
}

static void on_overrun(struct cq *cq)
{
	struct node *n = cq->ibv.cq_context;

	n->overrun = n->sim->fault_hit = true;
}

static void make_queues(struct node *n, const struct scenario *sc)
{
	uint32_t send = sc->send_depth[n->index], recv = sc->recv_depth[n->index];
	uint32_t room = 2 * MODEL_OPS + send + recv;

	memset(&n->send_cq, 0, sizeof(n->send_cq));
	memset(&n->recv_cq, 0, sizeof(n->recv_cq));
	memset(&n->srq, 0, sizeof(n->srq));
	n->send_cq.ibv.cq_context = n;
	n->send_cq.overrun = on_overrun;
	if (sc->fault == FAULT_OVERRUN && sc->fault_node == n->index)
		room = 1 + (uint32_t)prng_below(&n->sim->rng, 4);
	if (cq_init(&n->send_cq, room) || cq_init(&n->recv_cq, 2 * recv + 64) ||
	    srq_init(&n->srq, recv, sc->recv_sge))
		abort();
}

static void make_qp(struct node *n, const struct scenario *sc)
{
	struct qp_config cfg = {
		.mrs = n->mrs,
		.pd = &n->pd,
		.send_cq = &n->send_cq,
		.recv_cq = sc->one_cq[n->index] ? &n->send_cq : &n->recv_cq,
		.srq = sc->use_srq[n->index] ? &n->srq : NULL,
		.qp_num = (uint32_t)n->index + 1,
		.cap = {.max_send_wr = sc->send_depth[n->index],
			.max_recv_wr = sc->recv_depth[n->index],
			.max_send_sge = sc->send_sge,
			.max_recv_sge = sc->recv_sge,
			.max_inline_data = sc->inline_max},
		.kick = on_kick,
		.get = on_get,
		.async = on_async,
		.owner = n,
	};

	if (qp_new(&cfg, &n->qp))
		abort();
}

void node_open_stream(struct node *n)
{
	const struct scenario *sc = &n->sim->sc;
	struct cm_config cfg = {
		.role = n->index == 0 ? CM_INITIATOR : CM_RESPONDER,
		.crc = sc->wish_crc[n->index],
		.offer_consent = sc->offer_consent[n->index],
		.user_flushes = sc->user_flushes[n->index],
		.p2p = sc->p2p,
		.revision = sc->revision,
		.connect_ns = SIM_CONNECT_NS,
		.request_ns = SIM_CONNECT_NS,
		.drain_ns = SIM_DRAIN_NS,
		.event = on_stream_event,
		.owner = n,
	};

	cm_stream_delete(n->stream);
	if (cm_stream_new(&cfg, &n->stream))
		abort();
	cm_stream_set_qp(n->stream, n->qp);
	n->deadline = CLOCK_NEVER;
}

/* Everything but the memory, which is laid out by the plan, and what outlives a run. */
void node_start(struct node *n, struct sim *sim, int index)
{
	struct node old = *n;

	memset(n, 0, sizeof(*n));
	n->sim = sim;
	n->index = index;
	n->peer = &sim->node[1 - index];
	n->mem = old.mem;
	n->model = old.model;
	n->rx_buf = old.rx_buf ? old.rx_buf : malloc(QP_RXBUF);
	n->tx_buf = old.tx_buf ? old.tx_buf : malloc(QP_TXBUF);
	n->wb_bytes = old.wb_bytes;
	n->wb_room = old.wb_room;
	if (!n->rx_buf || !n->tx_buf || mr_table_new(&n->mrs))
		abort();
	make_queues(n, &sim->sc);
	make_qp(n, &sim->sc);
	node_open_stream(n);
}

void node_stop(struct node *n)
{
	n->stopping = true;
	if (n->wb_running)
		qp_on_writeback(n->qp, 0);
	cm_stream_set_qp(n->stream, NULL);
	cm_stream_delete(n->stream);
	qp_delete(n->qp);
	if (memory_fini(&n->mem)) {
		mr_table_delete(n->mrs);
	} else {
		sim_violate(n->sim, "node %d: a region is still held when the QP is gone",
			    n->index);
	}
	srq_fini(&n->srq);
	cq_fini(&n->send_cq);
	cq_fini(&n->recv_cq);
}

void node_free(struct node *n)
{
	free(n->rx_buf);
	free(n->tx_buf);
	free(n->wb_bytes);
	memory_free(&n->mem);
	model_free(&n->model);
}
