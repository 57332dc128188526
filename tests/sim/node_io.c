/* SPDX-License-Identifier: BSD-3-Clause */
/* node_io.c -- the functions that an end provides to its stream: read, send, shut, close, dial
 * again. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "origin.h"
#include "reconnect.h"
#include "rings.h"
#include "sim.h"
#include "windows.h"
#include "workload.h"

/* Bytes of the MPA length and the header of a Write: an end that has sent them has finished its
 * start-up. */
#define FPDU_BEGUN 16

static size_t iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

static size_t node_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns how many of `max` bytes the link accepts now. */
static size_t node_part_of(struct sim *sim, size_t max)
{
	return (size_t)prng_between(&sim->world->rng, 1, node_min(max, sim->sc.chunk_max));
}

static bool node_is_within(const void *p, const void *start, size_t len)
{
	return (uintptr_t)p - (uintptr_t)start < len;
}

/* Returns true if the memory of a region is unmapped, so that recvmsg() and sendmsg() return
 * EFAULT. */
static bool node_is_unmapped(struct node *n, const struct iovec *iov, int count)
{
	struct sim *sim = n->sim;
	bool ours = false;

	if (sim->sc.fault != FAULT_UNMAP || sim->sc.fault_node != n->index ||
	    sim->world->now < sim->sc.fault_ns || sim->fault_hit)
		return false;
	for (int i = 0; i < count; i++)
		ours |= node_is_within(iov[i].iov_base, n->mem->cache, n->mem->size) ||
			node_is_within(iov[i].iov_base, memory_pool(), POOL_LEN);
	sim->fault_hit = ours;
	return ours;
}

/* --- functions for the stream --------------------------------------------------------------- */

static void *node_get_buf(void *owner, enum stream_buf kind)
{
	struct node *n = owner;

	if (n->lent[kind])
		sim_violate(n->sim, "node %d: a second buffer is asked for", n->index);
	n->lent[kind] = true;
	return n->buf[kind];
}

static void node_put_buf(void *owner, enum stream_buf kind, void *buf)
{
	((struct node *)owner)->lent[kind] = false;
}

/* The kernel acknowledges bytes even if its process has not read them. */
static uint64_t node_unacknowledged_ns(void *owner)
{
	const struct node *n = owner;
	const struct sim *sim = n->sim;
	const struct pipe *p = &sim->link.pipe[n->index];

	if (sim->world->reconnect)
		return reconnect_unacknowledged_ns(n);
	return sim->link.silent && p->written > p->arrived ? sim->world->now - sim->sc.fault_ns : 0;
}

static uint64_t node_now(void *owner)
{
	return ((struct node *)owner)->sim->world->now;
}

static bool node_may_touch(void *owner)
{
	return true;
}

static void node_on_event(void *owner, enum stream_event event, int status)
{
	struct node *n = owner;

	if (n->stopping)
		return;
	if (n->sim->world->reconnect)
		reconnect_on_stream_event(n, event, status);
	else if (n->sim->world->windows)
		windows_on_stream_event(n, event);
	else
		workload_on_event(n, event, status);
}

/* Returns the result of a receive call: the number of bytes, 0 at the end, or EAGAIN. */
static ssize_t read_some(struct node *n, const struct stream_rx *rx)
{
	struct sim *sim = n->sim;
	size_t avail = link_readable(&sim->link, n->index);
	size_t len = node_min(avail, iov_total(rx->iov, rx->n));

	if (avail > 0 && node_is_unmapped(n, rx->iov, rx->n))
		return -EFAULT;
	if (len > 0 && !prng_chance(&sim->world->rng, 3)) {
		len = node_part_of(sim, len);
		if (sim->world->reconnect)
			reconnect_may_stall(n, rx->iov[0].iov_base);
		link_read(&sim->link, n->index, rx->iov, rx->n, len);
		return (ssize_t)len;
	}
	if (avail == 0 && sim->link.error[n->index])
		return -sim->link.error[n->index];
	if (link_at_end(&sim->link, n->index) && !n->eof_seen) {
		n->eof_seen = true;
		return 0;
	}
	if (len > 0)
		node_pump_soon(n);
	return prng_chance(&sim->world->rng, 50) ? -EAGAIN : -EINTR;
}

/* With a link in shared memory the arrived bytes are parsed in place, and no byte after them must
 * be read. Returns how many bytes were taken. */
static size_t node_receive_in_place(struct node *n, struct stream_update *u)
{
	struct sim *sim = n->sim;
	size_t avail = link_readable(&sim->link, n->index), len, taken;
	unsigned copied = sim->link.reads_ring[n->index] ? 20
			  : sim->world->seed % 4 == 0    ? 30
							 : 100;
	uint8_t *bytes;

	if (avail == 0 || prng_chance(&sim->world->rng, copied))
		return 0;
	len = node_part_of(sim, avail);
	bytes = malloc(len);
	n->looked_at = sim->link.pipe[1 - n->index].taken + len;
	link_peek(&sim->link, n->index, bytes, len);
	/* with connections in a row, a node's run can get stuck in the middle */
	if (!sim->world->reconnect)
		rings_show(n, bytes, len);
	taken = stream_rx_in_place(n->stream, bytes, len);
	rings_show(n, NULL, 0);
	if (taken > 0)
		stream_in_place_end(n->stream, u);
	free(bytes);
	link_drop(&sim->link, n->index, taken);
	n->in_place_bytes += taken;
	return taken;
}

/* A reset after the peer's FIN is reported as EPIPE. The bytes before such a reset are still
 * placed. */
bool node_is_over(void *owner)
{
	const struct node *n = owner;

	return n->sim->link.error[n->index] == ECONNRESET;
}

static bool node_sees_end(struct node *n)
{
	if (scenario_lacks(&n->sim->sc, SIM_NO_LOOK))
		return false;
	return atomic_load(&n->alarm) && node_is_over(n);
}

/* Search for a Terminate like conn_find_terminate(), which does not search on a link in shared
 * memory. */
static void node_find_terminate(struct node *n, struct stream_update *u)
{
	struct sim *sim = n->sim;
	struct stream_rx rx;
	size_t len;

	while (!sim->link.reads_ring[n->index] && (len = link_readable(&sim->link, n->index)) > 0 &&
	       stream_rx_give_up(n->stream) && stream_rx_begin(n->stream, &rx, u)) {
		len = node_min(node_part_of(sim, len), iov_total(rx.iov, rx.n));
		link_read(&sim->link, n->index, rx.iov, rx.n, len);
		stream_rx_end(n->stream, (ssize_t)len, sim->world->now, u);
	}
}

/* Call recvmsg() once. Returns false if no more bytes can be read now. */
static bool node_receive(void *owner, struct stream_update *u)
{
	struct node *n = owner;
	struct sim *sim = n->sim;
	struct stream_rx rx;
	ssize_t got;

	if (!sim->link.up || sim->link.closed[n->index] || n->budget == 0)
		return false;
	if (node_sees_end(n)) {
		node_find_terminate(n, u);
		stream_rx_end(n->stream, -ECONNRESET, sim->world->now, u);
		return true;
	}
	if (!node_receive_in_place(n, u)) {
		if (!stream_rx_begin(n->stream, &rx, u))
			return false;
		got = read_some(n, &rx);
		stream_rx_end(n->stream, got, sim->world->now, u);
		if (got == -EAGAIN || got == -EINTR)
			return false;
	}
	n->budget--;
	node_run_atomics_early(n);
	node_ignore_read_flushes(n);
	node_acknowledge_early(n);
	return true;
}

/* Check that a responder without consent sends nothing before it has received an FPDU (RFC 5044
 * s7.1.2). */
static void check_first_word(struct node *n)
{
	const struct sim *sim = n->sim;
	uint64_t taken = sim->link.pipe[0].taken, said = sim->link.pipe[1].written;
	uint64_t seen = taken > n->looked_at ? taken : n->looked_at;

	if (n->index == 0 || sim->redials > 0 || !scenario_is_trusted(&sim->sc) ||
	    stream_agreed(n->stream)->consent)
		return;
	if (said > scenario_frame_len(&sim->sc, 1) &&
	    seen < scenario_frame_len(&sim->sc, 0) + FPDU_BEGUN)
		sim_violate(n->sim, "node 1 spoke first, to a peer that did not consent");
}

/* With a link in shared memory, write short messages directly into the link's memory. Returns the
 * number of bytes sent. */
static size_t node_send_in_place(struct node *n, size_t room, struct stream_update *u)
{
	struct sim *sim = n->sim;
	struct iovec iov;
	uint8_t *to;

	if (sim->sc.fault == FAULT_UNMAP || prng_chance(&sim->world->rng, 40))
		return 0;
	room = node_part_of(sim, room);
	/* a block that ends where the writable bytes end, so that a sanitizer reports a write past
	 * them */
	to = malloc(room);
	iov = (struct iovec){.iov_base = to, .iov_len = stream_tx_in_place(n->stream, to, room)};
	if (iov.iov_len > 0) {
		link_write(sim, n->index, &iov, 1, iov.iov_len);
		stream_tx_in_place_end(n->stream, iov.iov_len);
	}
	free(to);
	stream_look(n->stream, u);
	n->put_bytes += iov.iov_len;
	return iov.iov_len;
}

static bool node_send(void *owner, struct stream_update *u)
{
	struct node *n = owner;
	struct sim *sim = n->sim;
	struct iovec iov[QP_TX_IOV];
	size_t room = link_writable(&sim->link, n->index), len;
	int count;

	if (room == 0 || n->budget == 0 || sim->link.error[n->index])
		return false;
	if (node_send_in_place(n, room, u) > 0) {
		n->budget--;
		return true;
	}
	count = stream_tx_begin(n->stream, iov, u);
	if (count == 0)
		return false;
	n->budget--;
	if (node_is_unmapped(n, iov, count)) {
		stream_tx_end(n->stream, -EFAULT, u);
		return true;
	}
	len = node_part_of(sim, node_min(room, iov_total(iov, count)));
	link_write(sim, n->index, iov, count, len);
	check_first_word(n);
	stream_tx_end(n->stream, (ssize_t)len, u);
	return true;
}

static void node_fin(void *owner)
{
	struct node *n = owner;

	if (!n->sim->link.up || n->sim->link.closed[n->index])
		return;
	n->sim->link.resets[n->index] = false;
	link_shutdown(n->sim, n->index);
}

static void node_close(void *owner)
{
	struct node *n = owner;

	if (n->sim->link.up && !stream_is_orderly(n->stream))
		n->sim->link.resets[n->index] = !scenario_lacks(&n->sim->sc, SIM_GRACEFUL_CLOSE);
	if (n->sim->link.up)
		link_close(n->sim, n->index);
	if (n->sim->world->reconnect)
		origin_on_closed(n);
	n->ended = true;
}

/* The peer demands a request with fewer options: dial again, and make a new responder. */
static void node_redial(void *owner)
{
	struct sim *sim = ((struct node *)owner)->sim;

	link_close(sim, 0);
	sim->redials++;
	sim_at(sim, sim->world->now + sim->sc.latency_ns, EV_DIALED, 0, sim->redials);
}

static void node_set_deadline(void *owner, uint64_t at)
{
	struct node *n = owner;

	if (at == n->deadline)
		return;
	n->deadline = at;
	if (at != CLOCK_NEVER)
		sim_at(n->sim, at, EV_TIME, n->index, at);
}

const struct stream_host node_host = {
	.get_buf = node_get_buf,
	.put_buf = node_put_buf,
	.unacknowledged_ns = node_unacknowledged_ns,
	.now = node_now,
	.may_touch = node_may_touch,
	.event = node_on_event,
	.receive = node_receive,
	.send = node_send,
	.start_job = node_start_job,
	.stop_job = node_stop_job,
	.fin = node_fin,
	.close = node_close,
	.redial = node_redial,
	.step = rings_on_step,
	.origin = origin_fill,
	.fenced = origin_fenced,
	.identify = origin_identify,
	.set_deadline = node_set_deadline,
};

/* --- a run of the node ---------------------------------------------------------------------- */

/* Report a reset to the stream even if the stream receives no bytes. */
static void node_find_reset(struct node *n, struct stream_update *u)
{
	struct link *l = &n->sim->link;

	if (!l->up || l->closed[n->index] || !l->error[n->index] || u->todo & STREAM_DO_RECEIVE)
		return;
	stream_rx_end(n->stream, -l->error[n->index], n->sim->world->now, u);
	stream_perform(n->stream, u);
}

void node_perform(struct node *n, struct stream_update *u)
{
	struct sim *sim = n->sim;
	uint64_t peer_had = link_writable(&sim->link, n->peer->index);

	if (n->killed || n->paused_until > sim->world->now)
		return;
	/* Another thread reports to this node that the SRQ has receives, possibly after a short
	 * delay. */
	if (n->resumed && n->resumed_at <= sim->world->now) {
		n->resumed = false;
		stream_resume(n->stream, u);
	}
	node_run_atomics_early(n);
	node_ignore_read_flushes(n);
	node_acknowledge_early(n);
	origin_do(n, u);
	rings_begin(n, u);
	n->budget = (unsigned)prng_between(&sim->world->rng, 1, 40);
	stream_perform(n->stream, u);
	node_find_reset(n, u);
	if (n->budget == 0)
		node_pump_soon(n);
	if (link_writable(&sim->link, n->peer->index) > peer_had)
		node_pump_soon(n->peer);
}

void node_pump(struct node *n)
{
	struct stream_update u;

	stream_look(n->stream, &u);
	node_perform(n, &u);
}

void node_read(struct node *n, struct stream_update *u)
{
	n->budget = UINT_MAX;
	stream_look(n->stream, u);
	while (u->todo & STREAM_DO_RECEIVE && node_receive(n, u))
		;
}

/* End the node like kill -9: the kernel closes the socket, and the memory of files is preserved. */
void node_kill(struct node *n)
{
	n->killed = n->ended = true;
	link_close(n->sim, n->index);
	inbox_lose(n->box);
	node_pump_soon(n->peer);
}

void node_pump_soon(struct node *n)
{
	if (n->pump_due)
		return;
	n->pump_due = true;
	sim_at(n->sim, n->sim->world->now + prng_below(&n->sim->world->rng, 2000), EV_PUMP,
	       n->index, 0);
}
