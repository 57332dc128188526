/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c -- connections: each connection keeps the order of its messages. A cut connection loses all
 * messages after some time, and its two ends notice the loss at different times. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void conn_add_msg(struct world *w, uint32_t conn, const struct msg *m, sim_fn *fn,
			 uint64_t *last)
{
	struct msg *copy = malloc(sizeof(*copy));
	uint64_t at = w->now + sim_delay(w);

	if (!copy)
		abort();
	*copy = *m;
	*last = at > *last ? at : *last + 1;
	sched_add(w, *last - w->now, fn, 0, 0, conn, copy);
}

static void conn_deliver(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct host *h = &w->host[c->to];
	struct msg *m = e->data;

	if (h->daemon_uid == 0 || h->daemon_uid != c->daemon_uid || w->now >= c->cut_fwd)
		return;
	/* This host has already cut the connection, so ignore the message. */
	if (!c->dst_open && !(m->type == MSG_OPEN && !c->granted))
		return;
	if (m->type == MSG_CLOSE)
		daemon_on_closed(w, h, (uint32_t)e->arg);
	else
		daemon_on_msg(w, h, (uint32_t)e->arg, m);
	host_settle(w, h);
}

static void conn_deliver_answer(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct lib *lib = lib_find(w, c->from, c->lib_uid);

	if (!lib || !c->src_open || w->now >= c->cut_back)
		return;
	lib_on_msg(w, lib, (uint32_t)e->arg, e->data);
	lib = lib_find(w, c->from, w->conns[e->arg].lib_uid);
	if (lib)
		lib_run(w, lib);
	host_settle(w, &w->host[w->conns[e->arg].from]);
}

static void conn_lost_src(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct lib *lib = lib_find(w, c->from, c->lib_uid);

	if (!lib || !c->src_open)
		return;
	c->src_open = false;
	lib_on_conn_lost(w, lib, (uint32_t)e->arg);
	lib = lib_find(w, w->conns[e->arg].from, w->conns[e->arg].lib_uid);
	if (lib)
		lib_run(w, lib);
	host_settle(w, &w->host[w->conns[e->arg].from]);
}

static void conn_lost_dst(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct host *h = &w->host[c->to];

	if (h->daemon_uid && h->daemon_uid == c->daemon_uid && c->dst_open)
		daemon_on_closed(w, h, (uint32_t)e->arg);
}

uint32_t conn_open(struct world *w, struct lib *lib, uint8_t to, enum member_kind kind)
{
	uint32_t i = w->conn_count++;
	struct msg m = {.type = MSG_OPEN, .epoch = lib->p.rec.view.epoch};
	bool is_cut = lib->host != to && w->now < w->cut_until[lib->host][to];

	if (w->conn_count > w->conn_room) {
		w->conn_room = w->conn_room ? 2 * w->conn_room : 256;
		w->conns = realloc(w->conns, w->conn_room * sizeof(*w->conns));
		if (!w->conns)
			abort();
	}
	w->conns[i] = (struct conn){.lib_uid = lib->uid,
				    .daemon_uid = w->host[to].daemon_uid,
				    .from = (uint8_t)lib->host,
				    .to = to,
				    .member_id = lib->p.rec.config.members[to].id,
				    .kind = kind,
				    .epoch = m.epoch,
				    .src_open = true,
				    .cut_fwd = NEVER,
				    .cut_back = NEVER};
	if (is_cut || w->host[to].daemon_uid == 0) {
		w->conns[i].cut_fwd = 0;
		sched_add(w, sim_between(w, MS, 100 * MS), conn_lost_src, 0, 0, i, NULL);
	} else {
		conn_add_msg(w, i, &m, conn_deliver, &w->conns[i].fwd_at);
	}
	return i;
}

void conn_send(struct world *w, uint32_t conn, const struct msg *m)
{
	if (w->conns[conn].src_open)
		conn_add_msg(w, conn, m, conn_deliver, &w->conns[conn].fwd_at);
}

void conn_answer(struct world *w, uint32_t conn, const struct msg *m)
{
	conn_add_msg(w, conn, m, conn_deliver_answer, &w->conns[conn].back_at);
}

void conn_close(struct world *w, uint32_t conn)
{
	struct msg m = {.type = MSG_CLOSE};

	conn_send(w, conn, &m);
	w->conns[conn].src_open = false;
}

void conn_cut(struct world *w, uint32_t conn)
{
	struct conn *c = &w->conns[conn];
	uint64_t at = w->now + sim_between(w, 0, 500);
	bool half = sim_chance(w, 200); /* cut only one direction, for some time */

	if (c->cut_fwd != NEVER)
		return;
	c->cut_fwd = at;
	c->cut_back = half ? at + sim_between(w, 0, 200 * MS) : at;
	if (half && sim_chance(w, 500)) {
		uint64_t fwd = c->cut_fwd;

		c->cut_fwd = c->cut_back;
		c->cut_back = fwd;
	}
	if (w->mode == SIM_NO_LIVENESS)
		return;
	sched_add(w, sim_between(w, MS, 250 * MS), conn_lost_src, 0, 0, conn, NULL);
	sched_add(w, sim_between(w, MS, sim_chance(w, 200) ? 1500 * MS : 250 * MS), conn_lost_dst,
		  0, 0, conn, NULL);
}

/* From now on no message on this connection arrives. The two ends notice this after the liveness
 * limit. */
void conn_silence(struct world *w, uint32_t conn)
{
	w->conns[conn].cut_fwd = w->now;
	sched_add(w, sim_between(w, 300 * MS, 1500 * MS), conn_lost_src, 0, 0, conn, NULL);
	sched_add(w, sim_between(w, 300 * MS, 1500 * MS), conn_lost_dst, 0, 0, conn, NULL);
}

void net_cut(struct world *w, uint8_t a, uint8_t b, uint64_t until)
{
	w->cut_until[a][b] = w->cut_until[b][a] = until;
	for (uint32_t i = 0; i < w->conn_count; i++) {
		struct conn *c = &w->conns[i];

		if ((c->from == a && c->to == b) || (c->from == b && c->to == a))
			conn_cut(w, i);
	}
}

/* The process, or its host, has ended: its unsent messages are lost, too. */
void net_lib_gone(struct world *w, uint32_t lib_uid, bool abrupt)
{
	for (uint32_t i = 0; i < w->conn_count; i++) {
		struct conn *c = &w->conns[i];

		if (c->lib_uid != lib_uid || !c->src_open)
			continue;
		if (abrupt && c->cut_fwd == NEVER && sim_chance(w, 500)) {
			c->cut_fwd = w->now + sim_between(w, 0, 300);
			c->src_open = false;
			sched_add(w, sim_between(w, MS, 50 * MS), conn_lost_dst, 0, 0, i, NULL);
		} else {
			conn_close(w, i);
		}
	}
}

/* From now on the link of this connection is slow, so messages arrive late. */
void conn_stall(struct world *w, uint32_t conn, uint64_t delay)
{
	if (w->conns[conn].fwd_at < w->now + delay)
		w->conns[conn].fwd_at = w->now + delay;
}

void net_daemon_gone(struct world *w, uint32_t daemon_uid)
{
	for (uint32_t i = 0; i < w->conn_count; i++) {
		struct conn *c = &w->conns[i];

		if (c->daemon_uid != daemon_uid)
			continue;
		c->dst_open = false;
		if (c->src_open)
			sched_add(w, sim_between(w, 100, 100 * MS), conn_lost_src, 0, 0, i, NULL);
	}
}
