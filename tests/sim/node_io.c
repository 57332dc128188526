/* SPDX-License-Identifier: BSD-3-Clause */
/* node_io.c -- driving an end as the engine does: read, send, write back, end. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define FPDU_BEGUN                                                                                 \
	16 /* length and header of a Write: an end that sends that is in full operation */

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

/* A random part, as the link may take or give any. */
static size_t node_part_of(struct sim *sim, size_t max)
{
	return (size_t)prng_between(&sim->world->rng, 1, node_min(max, sim->sc.chunk_max));
}

static void node_lend_rx(struct node *n)
{
	if (!n->qp || n->rx_lent || !stream_rx_needs_buf(n->stream))
		return;
	qp_rx_lend(n->qp, n->rx_buf);
	n->rx_lent = true;
}

static void node_reclaim(struct node *n)
{
	if (!n->qp)
		return;
	if (n->rx_lent && qp_rx_reclaim(n->qp))
		n->rx_lent = false;
	if (n->tx_lent && qp_tx_reclaim(n->qp))
		n->tx_lent = false;
}

static bool node_is_within(const void *p, const void *start, size_t len)
{
	return (uintptr_t)p - (uintptr_t)start < len;
}

/* Is the memory behind a region gone? recvmsg() and sendmsg() return EFAULT then. */
static bool node_is_unmapped(struct node *n, const struct iovec *iov, int count)
{
	struct sim *sim = n->sim;
	bool ours = false;

	if (sim->sc.fault != FAULT_UNMAP || sim->sc.fault_node != n->index ||
	    sim->world->now < sim->sc.fault_ns || sim->fault_hit)
		return false;
	for (int i = 0; i < count; i++)
		ours |= node_is_within(iov[i].iov_base, n->mem.cache, n->mem.size) ||
			node_is_within(iov[i].iov_base, memory_pool(), POOL_LEN);
	sim->fault_hit = ours;
	return ours;
}

/* One recvmsg(). Returns false when there is nothing more to do now. */
static bool rx_once(struct node *n)
{
	struct sim *sim = n->sim;
	struct iovec iov[QP_RX_IOV];
	size_t avail = link_readable(&sim->link, n->index), len;
	int count;

	if (!sim->link.up || sim->link.closed[n->index])
		return false;
	node_lend_rx(n);
	count = stream_rx_want(n->stream, iov);
	if (count == 0)
		return false;
	if (avail > 0 && node_is_unmapped(n, iov, count)) {
		stream_rx_fault(n->stream, sim->world->now);
		return true;
	}
	len = node_min(avail, iov_total(iov, count));
	if (len > 0 && !prng_chance(&sim->world->rng, 3)) {
		len = node_part_of(sim, len);
		link_read(&sim->link, n->index, iov, count, len);
		stream_rx_got(n->stream, len, sim->world->now);
		return true;
	}
	stream_rx_got(n->stream, 0, sim->world->now); /* EAGAIN, or EINTR */
	if (link_at_end(&sim->link, n->index) && !n->eof_seen) {
		n->eof_seen = true;
		stream_rx_eof(n->stream, sim->world->now);
		return true;
	}
	if (len > 0)
		node_pump_soon(n);
	return false;
}

/* Without consent a responder must not send before it has seen an FPDU (RFC 5044 s7.1.2). */
static void check_first_word(struct node *n)
{
	const struct sim *sim = n->sim;
	uint64_t seen = sim->link.pipe[0].taken, said = sim->link.pipe[1].written;

	if (n->index == 0 || sim->redials > 0 || !scenario_is_trusted(&sim->sc) ||
	    stream_agreed(n->stream)->consent)
		return;
	if (said > scenario_frame_len(&sim->sc, 1) &&
	    seen < scenario_frame_len(&sim->sc, 0) + FPDU_BEGUN)
		sim_violate(n->sim, "node 1 spoke first, to a peer that did not consent");
}

static bool tx_once(struct node *n)
{
	struct sim *sim = n->sim;
	struct iovec iov[QP_TX_IOV];
	size_t room = link_writable(&sim->link, n->index), len;
	int count;

	if (room == 0)
		return false;
	if (n->qp && !n->tx_lent && stream_tx_needs_buf(n->stream)) {
		qp_tx_lend(n->qp, n->tx_buf);
		n->tx_lent = true;
	}
	count = stream_tx_gather(n->stream, iov);
	if (count == 0)
		return false;
	if (node_is_unmapped(n, iov, count)) {
		stream_tx_fault(n->stream, sim->world->now);
		return true;
	}
	len = node_part_of(sim, node_min(room, iov_total(iov, count)));
	link_write(sim, n->index, iov, count, len);
	check_first_word(n);
	stream_tx_sent(n->stream, len, sim->world->now);
	return true;
}

/* --- what is due -------------------------------------------------------------------------- */

static void node_finish(struct node *n)
{
	struct sim *sim = n->sim;

	if (sim->link.up && !sim->link.closed[n->index] && stream_wants_fin(n->stream)) {
		link_shutdown(sim, n->index);
		stream_fin_done(n->stream, sim->world->now);
	}
	if (!stream_wants_close(n->stream) || n->redial)
		return;
	if (sim->link.up)
		link_close(sim, n->index);
	n->ended = true;
}

static void watch_deadline(struct node *n)
{
	uint64_t at = stream_deadline(n->stream);

	if (at == n->deadline)
		return;
	n->deadline = at;
	if (at != CLOCK_NEVER)
		sim_at(n->sim, at, EV_TIME, n->index, at);
}

/* A strict peer has closed: the next kind of request on a new connection, and a new responder. */
static void node_redial(struct node *n)
{
	struct sim *sim = n->sim;

	n->redial = false;
	link_close(sim, 0);
	sim->redials++;
	sim_at(sim, sim->world->now + sim->sc.latency_ns, EV_DIALED, 0, sim->redials);
}

/* The notice comes from another thread, which may be late. */
static void node_resume(struct node *n)
{
	n->srq_noticed = false;
	if (n->qp)
		qp_rx_resume(n->qp);
	stream_poke(n->stream, n->sim->world->now);
}

void node_pump(struct node *n)
{
	struct sim *sim = n->sim;
	uint64_t peer_had = link_writable(&sim->link, n->peer->index);
	unsigned budget = (unsigned)prng_between(&sim->world->rng, 1, 40);

	if (n->killed || n->paused_until > sim->world->now)
		return;
	if (n->srq_noticed && n->srq_notice_at <= sim->world->now)
		node_resume(n);
	while (budget > 0 && rx_once(n))
		budget--;
	node_run_atomics_early(n);
	node_ignore_read_flushes(n);
	if (n->qp && qp_is_failed(n->qp) && stream_state(n->stream) == STREAM_LIVE)
		stream_poke(n->stream, sim->world->now);
	while (budget > 0 && tx_once(n))
		budget--;
	if (budget == 0)
		node_pump_soon(n);
	if (node_begin_writeback(n))
		node_pump_soon(n);
	node_finish(n);
	if (n->redial)
		node_redial(n);
	node_reclaim(n);
	watch_deadline(n);
	if (link_writable(&sim->link, n->peer->index) > peer_had)
		node_pump_soon(n->peer);
}

void node_read(struct node *n)
{
	while (rx_once(n))
		;
}

/* kill -9: the kernel closes the socket, the memory of files stays as it is. */
void node_kill(struct node *n)
{
	link_close(n->sim, n->index);
	n->killed = n->ended = true;
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
