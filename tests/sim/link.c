/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reconnect.h"

#define ARRIVAL_OF_END UINT64_MAX
/* upper limit of the delay after which a thread without a processor notices a RST */
#define RESET_NOTICED_NS (20 * NSEC_PER_MS)

static void pipe_open(struct pipe *p, size_t window)
{
	uint8_t *ring = p->ring;
	size_t room = p->room;

	if (window > room) {
		room = window;
		ring = realloc(ring, room);
		if (!ring)
			abort();
	}
	*p = (struct pipe){.ring = ring,
			   .room = room,
			   .window = window,
			   .end = PIPE_NEVER,
			   .cut_at = PIPE_NEVER,
			   .flip_at = PIPE_NEVER};
}

void link_open(struct link *l, size_t window)
{
	for (int i = 0; i < 2; i++) {
		pipe_open(&l->pipe[i], window);
		pipe_open(&l->ring[i], window);
		l->sends_ring[i] = l->reads_ring[i] = false;
		l->closed[i] = false;
		l->error[i] = 0;
		l->resets[i] = false;
		atomic_init(&l->given_up[i], 0);
	}
	l->up = true;
	l->silent = false;
}

void link_fini(struct link *l)
{
	free(l->pipe[0].ring);
	free(l->pipe[1].ring);
	free(l->ring[0].ring);
	free(l->ring[1].ring);
	*l = (struct link){0};
}

static struct pipe *link_out(struct link *l, int node)
{
	return l->sends_ring[node] ? &l->ring[node] : &l->pipe[node];
}

static const struct pipe *link_in(const struct link *l, int node)
{
	return l->reads_ring[node] ? &l->ring[1 - node] : &l->pipe[1 - node];
}

void link_switch_tx(struct link *l, int node)
{
	struct pipe *from = &l->pipe[node], *to = &l->ring[node];

	to->written = to->arrived = to->taken = from->written;
	to->cut_at = from->cut_at;
	to->cut_is_reset = from->cut_is_reset;
	to->flip_at = from->flip_at;
	to->flip_mask = from->flip_mask;
	l->sends_ring[node] = true;
}

void link_switch_rx(struct link *l, int node)
{
	l->reads_ring[node] = true;
}

size_t link_readable(const struct link *l, int node)
{
	const struct pipe *p = link_in(l, node);

	return l->up && !l->closed[node] ? p->arrived - p->taken : 0;
}

size_t link_writable(const struct link *l, int node)
{
	const struct pipe *p = l->sends_ring[node] ? &l->ring[node] : &l->pipe[node];

	return l->up && !l->closed[node] ? p->window - (p->written - p->taken) : 0;
}

bool link_at_end(const struct link *l, int node)
{
	const struct pipe *p = &l->pipe[1 - node];

	return l->up && !l->closed[node] && p->end_arrived && p->taken == p->end &&
	       link_readable(l, node) == 0;
}

static uint64_t link_arrival_time(struct sim *sim, struct pipe *p)
{
	uint64_t at = sim->world->now + prng_below(&sim->world->rng, sim->sc.latency_ns + 1);

	if (at < p->last_arrival_ns)
		at = p->last_arrival_ns;
	p->last_arrival_ns = at;
	return at;
}

static void link_schedule(struct sim *sim, uint64_t at, enum event_kind kind, int node,
			  uint64_t arg)
{
	if (!sim->link.silent)
		sim_at(sim, at, kind, node, arg);
}

void link_read(struct link *l, int node, const struct iovec *iov, int n, size_t len)
{
	struct pipe *p = (struct pipe *)link_in(l, node);

	for (int i = 0; i < n && len > 0; i++) {
		uint8_t *to = iov[i].iov_base;
		size_t left = iov[i].iov_len < len ? iov[i].iov_len : len;

		len -= left;
		while (left > 0) {
			size_t at = p->taken % p->room;
			size_t part = left < p->room - at ? left : p->room - at;

			memcpy(to, p->ring + at, part);
			to += part;
			p->taken += part;
			left -= part;
		}
	}
}

void link_peek(const struct link *l, int node, uint8_t *to, size_t len)
{
	const struct pipe *p = link_in(l, node);

	for (size_t i = 0; i < len; i++)
		to[i] = p->ring[(p->taken + i) % p->room];
}

void link_drop(struct link *l, int node, size_t len)
{
	((struct pipe *)link_in(l, node))->taken += len;
}

static void pipe_append(struct pipe *p, const uint8_t *from, size_t len)
{
	while (len > 0) {
		size_t at = p->written % p->room;
		size_t part = len < p->room - at ? len : p->room - at;

		memcpy(p->ring + at, from, part);
		from += part;
		p->written += part;
		len -= part;
	}
}

static void link_flip(struct sim *sim, struct pipe *p, uint64_t from)
{
	if (p->flip_at < from || p->flip_at >= p->written)
		return;
	p->ring[p->flip_at % p->room] ^= p->flip_mask;
	sim->fault_hit = true;
}

/* Lose the bytes after the cut. A RST reports the loss to the writer later. */
static void link_cut(struct sim *sim, int node)
{
	struct pipe *p = link_out(&sim->link, node);

	if (p->written < p->cut_at || sim->link.pipe[node].end != PIPE_NEVER)
		return;
	sim->fault_hit = true;
	if (p->cut_is_reset) {
		link_reset(sim);
		return;
	}
	p->written = p->cut_at;
	p->arrived = p->arrived < p->written ? p->arrived : p->written;
	link_shutdown(sim, node);
	link_schedule(sim, link_arrival_time(sim, p), EV_RESET, node, EPIPE);
}

void link_write(struct sim *sim, int node, const struct iovec *iov, int n, size_t len)
{
	const struct pipe *tcp = &sim->link.pipe[node];
	struct pipe *p = link_out(&sim->link, node);
	uint64_t from = p->written;

	if (tcp->end != PIPE_NEVER) /* the peer's port is closed, so the peer sends a RST */
		return;
	for (int i = 0; i < n && len > 0; i++) {
		size_t part = iov[i].iov_len < len ? iov[i].iov_len : len;

		pipe_append(p, iov[i].iov_base, part);
		len -= part;
	}
	if (sim->sc.fault == FAULT_DEREG && sim->sc.fault_node == node &&
	    from < sim->sc.fault_pos && p->written >= sim->sc.fault_pos)
		sim_at(sim, sim->world->now, EV_DEREG, node, 0);
	link_flip(sim, p, from);
	link_cut(sim, node);
	if (p != tcp) {
		p->arrived = p->written;
		node_pump_soon(&sim->node[1 - node]);
		return;
	}
	if (p->end == PIPE_NEVER && sim->link.closed[1 - node])
		link_schedule(sim, link_arrival_time(sim, p), EV_RESET, node, EPIPE);
	if (p->written > from)
		link_schedule(sim, link_arrival_time(sim, p), EV_ARRIVE, 1 - node, p->written);
}

void link_shutdown(struct sim *sim, int node)
{
	struct pipe *p = &sim->link.pipe[node];

	if (p->end != PIPE_NEVER)
		return;
	p->end = p->written;
	link_schedule(sim, link_arrival_time(sim, p), EV_ARRIVE, 1 - node, ARRIVAL_OF_END);
}

/* Set the word "given up" in the rings, which is immediately visible to the peer. A process that
 * dies does not set the word. */
static void link_give_up(struct sim *sim, int node)
{
	if (!sim->link.sends_ring[node] || sim->node[node].killed ||
	    scenario_lacks(&sim->sc, SIM_NO_MARK))
		return;
	atomic_store(&sim->link.given_up[node], 1);
}

/* Send a RST to the other end. If this end uses rings, the thread that notices the RST is not the
 * ring's reader, so it notices the RST later. */
static void link_send_reset(struct sim *sim, int node)
{
	struct reconnect *r = sim->world->reconnect;
	uint64_t at = link_arrival_time(sim, &sim->link.pipe[node]);

	if (r && at > r->quiet_at)
		r->quiet_at = at;
	if (sim->link.reads_ring[1 - node] && !sim->node[node].killed)
		at += prng_below(&sim->world->rng, RESET_NOTICED_NS);
	link_schedule(sim, at, EV_RESET, 1 - node, ECONNRESET);
}

/* The kernel drops the node's unsent bytes. Bytes in flight can still arrive before the RST, and
 * even if the RST is lost. A ring keeps the bytes that were written to it. */
void link_abort(struct sim *sim, int node)
{
	struct reconnect *r = sim->world->reconnect;
	struct pipe *p = &sim->link.pipe[node];
	uint64_t on_way = p->written - p->arrived;

	sim->link.closed[node] = true;
	link_give_up(sim, node);
	if (r && r->stopped && !r->barrier)
		on_way = 0;
	p->written = p->arrived + prng_below(&sim->world->rng, on_way + 1);
	if (!r || !reconnect_loses_reset(sim))
		link_send_reset(sim, node);
}

/* On TCP, a close with unread bytes sends a RST, which can overtake bytes that the peer has not
 * read. */
void link_close(struct sim *sim, int node)
{
	struct link *l = &sim->link;

	if (l->closed[node])
		return;
	if (l->resets[node]) {
		link_abort(sim, node);
		return;
	}
	if (link_readable(l, node) > 0) {
		link_schedule(
			sim, sim->world->now + prng_below(&sim->world->rng, sim->sc.latency_ns + 1),
			EV_RESET, 1 - node, ECONNRESET);
	} else {
		link_shutdown(sim, node);
	}
	l->closed[node] = true;
}

void link_reset(struct sim *sim)
{
	for (int i = 0; i < 2; i++)
		link_schedule(
			sim, sim->world->now + prng_below(&sim->world->rng, sim->sc.latency_ns + 1),
			EV_RESET, i, ECONNRESET);
}

void link_on_arrival(struct link *l, int node, uint64_t pos)
{
	struct pipe *p = &l->pipe[1 - node];

	if (pos == ARRIVAL_OF_END)
		p->end_arrived = true;
	else if (pos > p->arrived)
		p->arrived = pos < p->written ? pos : p->written;
}
