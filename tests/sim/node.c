/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c -- creates a node (one side of a simulated connection) and shuts it down. node_io.c has a
 * node's input and output, node_events.c a node's timed events. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "origin.h"
#include "rings.h"
#include "sim.h"
#include "workload.h"

/* Any thread calls this when the SRQ has receives again, without holding the QP's lock. */
static void on_qp_notify(void *owner)
{
	struct node *n = owner;

	n->resumed = true;
	n->resumed_at = n->sim->world->now;
	if (n->sim->sc.srq_notice_ns)
		n->resumed_at += prng_below(&n->sim->world->rng, n->sim->sc.srq_notice_ns);
	sim_at(n->sim, n->resumed_at, EV_PUMP, n->index, 0);
}

static void on_get(void *owner)
{
}

static void on_async(void *owner, enum ibv_event_type event)
{
}

static void on_failing(void *owner)
{
	origin_give_up(owner);
}

static void on_overrun(struct cq *cq)
{
	struct node *n = cq->ibv.cq_context;

	n->overrun = n->sim->fault_hit = true;
	inbox_lose(n->box);
}

static void on_notify(struct cq *cq)
{
	struct node *n = cq->ibv.cq_context;

	n->notified = true;
}

struct cq *node_recv_cq(struct node *n)
{
	return n->sim->sc.one_cq[n->index] ? &n->send_cq : &n->recv_cq;
}

static void make_queues(struct node *n, const struct scenario *sc)
{
	uint32_t send = sc->send_depth[n->index];
	uint32_t room = 2 * MODEL_OPS + send + n->box->depth;

	memset(&n->send_cq, 0, sizeof(n->send_cq));
	memset(&n->recv_cq, 0, sizeof(n->recv_cq));
	n->send_cq.ibv.cq_context = n->recv_cq.ibv.cq_context = n;
	n->send_cq.overrun = on_overrun;
	node_recv_cq(n)->notify = on_notify;
	if (sc->fault == FAULT_OVERRUN && sc->fault_node == n->index)
		room = 1 + (uint32_t)prng_below(&n->sim->world->rng, 4);
	if (cq_init(&n->send_cq, room) || cq_init(&n->recv_cq, 2 * n->box->depth + 64))
		abort();
}

static void make_qp(struct node *n, const struct scenario *sc)
{
	struct qp_config cfg = {
		.mrs = n->host->mrs,
		.pd = &n->host->pd,
		.send_cq = &n->send_cq,
		.recv_cq = node_recv_cq(n),
		.srq = n->box->has_srq ? &n->box->srq : NULL,
		.qp_num = 2 * n->sim->index + (uint32_t)n->index + 1,
		.cap = {.max_send_wr = sc->send_depth[n->index],
			.max_recv_wr = sc->recv_depth[n->index],
			.max_send_sge = sc->send_sge,
			.max_recv_sge = sc->recv_sge,
			.max_inline_data = sc->inline_max},
		.peer_rfc7306 = sc->assumes_7306,
		.strict_persist = sc->strict[n->index],
		.acks = sc->acks[n->index],
		.unreliable = sc->unreliable,
		.notify = on_qp_notify,
		.get = on_get,
		.async = on_async,
		.failing = on_failing,
		.alarm = scenario_lacks(sc, SIM_NO_LOOK) ? NULL : &n->alarm,
		.is_over = scenario_lacks(sc, SIM_NO_LOOK) ? NULL : node_is_over,
		.owner = n,
	};

	if (qp_new(&cfg, &n->qp))
		abort();
}

/*
 * Use the engine's own function, so that the ends have only settings that the product can produce.
 * One case is configured directly: the second or third request, which the engine sends after a peer
 * has closed the connection.
 */
static struct stream_config make_config(struct node *n, const struct scenario *sc)
{
	enum stream_role role = n->index == 0 ? STREAM_INITIATOR : STREAM_RESPONDER;
	struct stream_config cfg =
		stream_config_of(role, sc->want_crc[n->index], sc->offer_consent[n->index]);

	cfg.p2p = sc->p2p;
	cfg.revision = sc->revision;
	cfg.connect_ns = cfg.request_ns = SIM_CONNECT_NS;
	cfg.drain_ns = sc->drain_ns ? sc->drain_ns : SIM_DRAIN_NS;
	cfg.liveness_ns = sc->liveness_ns[n->index] ? sc->liveness_ns[n->index] : SIM_LIVENESS_NS;
	cfg.rings = sc->rings ? RINGS_VERSION : 0;
	origin_prepare(n, &cfg);
	cfg.host = &node_host;
	cfg.owner = n;
	return cfg;
}

void node_open_stream(struct node *n)
{
	const struct scenario *sc = &n->sim->sc;
	struct stream_config cfg = make_config(n, sc);
	struct stream_update u;

	if (n->stream)
		stream_detach_qp(n->stream, &u);
	stream_delete(n->stream);
	if (stream_new(&cfg, &n->stream) ||
	    (sc->announces[n->index] && stream_set_user_flushes(n->stream, true)))
		abort();
	if (sc->unreliable) /* UC queue pairs connect only without rdma_cm */
		stream_set_meets(n->stream);
	stream_attach_qp(n->stream, n->qp);
	n->deadline = CLOCK_NEVER;
}

/* Reset the node, except for the memory, which the plan lays out, and the members that outlive a
 * run. */
void node_start(struct node *n, struct sim *sim, int index)
{
	struct node old = *n;

	memset(n, 0, sizeof(*n));
	n->sim = sim;
	n->index = index;
	n->peer = &sim->node[1 - index];
	n->host = &sim->world->host[index];
	n->own_mem = old.own_mem;
	n->mem = &n->own_mem;
	n->model = old.model;
	n->buf[STREAM_BUF_RX] = old.buf[STREAM_BUF_RX] ? old.buf[STREAM_BUF_RX] : malloc(QP_RXBUF);
	n->buf[STREAM_BUF_TX] = old.buf[STREAM_BUF_TX] ? old.buf[STREAM_BUF_TX] : malloc(QP_TXBUF);
	n->job.bytes = old.job.bytes;
	n->job.room = old.job.room;
	list_init(&n->job.waits);
	if (!n->buf[STREAM_BUF_RX] || !n->buf[STREAM_BUF_TX])
		abort();
	inbox_init(&n->own_box, n);
	n->box = &n->own_box;
}

void node_open(struct node *n)
{
	make_queues(n, &n->sim->sc);
	make_qp(n, &n->sim->sc);
	node_open_stream(n);
}

bool node_is_acknowledged(const struct node *n)
{
	const struct ext_hello *peer = n->qp ? qp_peer_hello(n->qp) : NULL;

	return n->sim->sc.acks[n->index] && peer && peer->acks;
}

/* The memory of a destroyed queue pair can be reused, so no job must still use this memory. */
static void check_let_go(struct node *n)
{
	for (int i = 0; i < AREA_COUNT; i++) {
		const struct mr *mr = n->mem->area[i].mr;

		if (mr && mr->holds > 0 && !(i == AREA_RECV && n->own_box.shared))
			sim_violate(n->sim, "node %d: a region is held by a destroyed queue pair",
				    n->index);
	}
	if (n->lent[STREAM_BUF_RX] || n->lent[STREAM_BUF_TX])
		sim_violate(n->sim, "node %d: a destroyed queue pair keeps a buffer", n->index);
}

void node_destroy_qp(struct node *n)
{
	struct sim *sim = n->sim;
	struct stream_update u;

	if (n->job.running) {
		sim_at(sim, sim->world->now + 1000, EV_CUT, n->index, 0);
		return;
	}
	sim->fault_hit = n->destroyed = true;
	qp_delete(stream_detach_qp(n->stream, &u));
	inbox_lose(n->box);
	n->qp = NULL;
	check_let_go(n);
	memset(n->buf[STREAM_BUF_RX], 0xdd, QP_RXBUF);
	memset(n->buf[STREAM_BUF_TX], 0xdd, QP_TXBUF);
	node_perform(n, &u);
}

void node_stop(struct node *n)
{
	struct stream_update u;

	n->stopping = true;
	if (n->job.running)
		stream_job_end(n->stream, 0, n->sim->world->now, &u);
	qp_delete(stream_detach_qp(n->stream, &u));
	stream_delete(n->stream);
	n->stream = NULL;
	n->qp = NULL;
	cq_fini(&n->send_cq);
	cq_fini(&n->recv_cq);
}

void node_free(struct node *n)
{
	free(n->buf[STREAM_BUF_RX]);
	free(n->buf[STREAM_BUF_TX]);
	free(n->job.bytes);
	memory_free(&n->own_mem);
	model_free(&n->model);
}
