/* SPDX-License-Identifier: BSD-3-Clause */
/* windows_oracle.c -- checks the content of the owner's memory. */
#include <endian.h>
#include <string.h>

#include "windows.h"

/* --- after each event ----------------------------------------------------------------------- */

static bool op_covers(const struct win_op *op, uint64_t off)
{
	return off >= op->off && off - op->off < op->len;
}

/* Returns NULL if the Write was allowed to change the byte, otherwise the reason against it. */
static const char *cache_refusal(const struct win_conn *c, const struct win_op *op, uint64_t off)
{
	if (!op || op->owner != c || (op->kind != WIN_WRITE && op->kind != WIN_WRITE_IMM))
		return "no Write has this value";
	if (!op_covers(op, off))
		return "the Write of this value has another place";
	if (op->forbidden)
		return "the window does not permit the Write";
	return op->was_dead || op->b->state == BIND_DEAD ? "the window has ended" : NULL;
}

static void cache_check_byte(struct sim *sim, struct win_conn *c, uint64_t off, uint8_t value)
{
	struct win_op *op = sim->world->windows->of_version[value];
	const char *bad = cache_refusal(c, op, off);

	if (bad)
		sim_violate(sim, "offset %llu has changed from %u to %u: %s",
			    (unsigned long long)off, c->shadow[off], value, bad);
	else
		op->placed = true;
	c->shadow[off] = value;
}

static bool cache_is_receive(const struct memory *m, uint64_t off)
{
	const struct area *a = &m->area[AREA_RECV];

	return off >= a->off && off - a->off < a->len;
}

void win_check_cache(struct sim *sim)
{
	/* A Write over one connection can change the memory of another connection's owner. */
	for (unsigned i = 0; i < sim->world->conns; i++) {
		struct sim *other = &sim->world->conn[i];
		struct win_conn *c = &sim->world->windows->conn[i];
		const struct memory *m = other->node[1].mem;

		if (memcmp(c->shadow, m->cache, m->size) == 0)
			continue;
		for (uint64_t off = 0; off < m->size; off++) {
			if (c->shadow[off] == m->cache[off])
				continue;
			if (cache_is_receive(m, off))
				c->shadow[off] = m->cache[off];
			else
				cache_check_byte(other, c, off, m->cache[off]);
		}
	}
}

/* --- completions ---------------------------------------------------------------------------- */

/* A later Write can have overwritten the bytes with a higher version: versions grow in the order of
 * posts, and only one connection writes to AREA_TARGET0. */
static bool op_is_there(const uint8_t *bytes, const struct win_op *op)
{
	for (uint64_t i = op->off; i < op->off + op->len; i++) {
		if (bytes[i] < op->version)
			return false;
	}
	return true;
}

static bool op_writes_alone(const struct win_op *op)
{
	return (op->kind == WIN_WRITE || op->kind == WIN_WRITE_IMM) && op->b->area == AREA_TARGET0;
}

static void flush_raise(struct win_conn *c, const struct win_op *flush, const struct win_op *op)
{
	uint64_t lo = op->off > flush->off ? op->off : flush->off;
	uint64_t hi = op->off + op->len < flush->off + flush->len ? op->off + op->len
								  : flush->off + flush->len;

	for (uint64_t i = lo; i < hi; i++) {
		if (c->floor[i] < op->version)
			c->floor[i] = op->version;
	}
}

static void flush_on_completed(struct node *n, struct win_conn *c, const struct win_op *flush)
{
	for (const struct win_op *op = c->op; op < flush; op++) {
		if (op_writes_alone(op) && op->forbidden)
			sim_violate(n->sim, "a Flush succeeds after a Write that must fail");
		if (op_writes_alone(op))
			flush_raise(c, flush, op);
	}
	windows_seen.flushes++;
	win_check_medium(n->peer);
}

void win_check_medium(struct node *n)
{
	const struct area *a = &n->mem->area[AREA_TARGET0];
	const struct win_conn *c = win_of(n);

	for (uint64_t i = a->off; i < a->off + a->len; i++) {
		if (n->mem->medium[i] < c->floor[i]) {
			sim_violate(n->sim,
				    "offset %llu of the medium has version %u, and %u was flushed",
				    (unsigned long long)i, n->mem->medium[i], c->floor[i]);
			return;
		}
	}
}

/* Check what the success of an operation proves. */
void win_on_completed(struct node *n, struct win_op *op)
{
	bool answered = op->kind == WIN_READ || op->kind == WIN_FLUSH;
	bool proves = answered || node_is_acknowledged(n);

	if (proves && (op->forbidden || op->was_dead))
		sim_violate(
			n->sim,
			"operation %u (kind %u) succeeds, and its window (access %#x) does not permit it",
			(unsigned)(op - win_of(n)->op), op->kind, op->b->access);
	if (proves && op_writes_alone(op) && !op_is_there(n->peer->mem->cache, op))
		sim_violate(n->sim, "Write %u is acknowledged, and its bytes are not there",
			    op->version);
	windows_seen.reads += op->kind == WIN_READ;
	windows_seen.acks += node_is_acknowledged(n);
	if (op->kind == WIN_FLUSH)
		flush_on_completed(n, win_of(n), op);
}

/* --- messages ------------------------------------------------------------------------------- */

static bool win_is_message(const struct win_op *op)
{
	return op->kind == WIN_WRITE_IMM || op->kind == WIN_SEND || op->kind == WIN_SEND_INV;
}

/* Messages arrive in order. RC loses no message. */
static void message_advance(struct node *n, struct win_conn *c, unsigned index)
{
	for (; c->received < index; c->received++) {
		if (!win_is_message(&c->op[c->received]))
			continue;
		windows_seen.lost_sends++;
		if (!n->sim->sc.unreliable)
			sim_violate(n->sim, "message %u is lost", c->received);
	}
	c->received = index + 1;
}

static bool message_is_whole(const struct win_op *op, const struct ibv_wc *wc, const uint8_t *bytes)
{
	if (op->kind == WIN_WRITE_IMM || wc->byte_len != op->len)
		return wc->byte_len == op->len;
	for (uint32_t i = 0; i < op->len; i++) {
		if (bytes[i] != op->version)
			return false;
	}
	return true;
}

static void message_check(struct node *n, struct win_op *op, const struct ibv_wc *wc)
{
	if (op->kind == WIN_WRITE_IMM && op_writes_alone(op) && op->owner == win_of(n) &&
	    !op_is_there(n->mem->cache, op))
		sim_violate(n->sim, "the Immediate Data of Write %u come before its bytes",
			    op->version);
	if (op->kind == WIN_WRITE_IMM && op->forbidden)
		sim_violate(n->sim, "the Immediate Data of a forbidden Write are received");
	if (op->kind != WIN_SEND_INV)
		return;
	if (!(wc->wc_flags & IBV_WC_WITH_INV) || wc->invalidated_rkey != op->b->stag ||
	    op->forbidden)
		sim_violate(n->sim, "a Send invalidates a window that it must not");
	win_end_binding(op->owner, op->b);
	windows_seen.remote_invalidates++;
}

/* The Immediate Data or the first byte of a message is its version. */
void windows_on_message(struct node *n, const struct ibv_wc *wc, const uint8_t *bytes)
{
	bool is_imm = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	uint32_t version = is_imm ? be32toh(wc->imm_data) : bytes[0];
	struct win_conn *c = win_of(n);
	struct win_op *op = version <= n->sim->world->windows->version
				    ? n->sim->world->windows->of_version[version]
				    : NULL;

	if (!op || op < c->op || op >= c->op + c->posted || !win_is_message(op) ||
	    (op->kind == WIN_WRITE_IMM) != is_imm || (unsigned)(op - c->op) < c->received) {
		sim_violate(n->sim, "a message is received that was not sent, or twice");
		return;
	}
	if (!message_is_whole(op, wc, bytes))
		sim_violate(n->sim, "message %u is not whole", version);
	op->received = true;
	message_advance(n, c, (unsigned)(op - c->op));
	message_check(n, op, wc);
	windows_seen.immediates += is_imm;
	windows_seen.sends += !is_imm;
}

/* --- the end -------------------------------------------------------------------------------- */

/* A Write can be placed in part only if its binding has ended (windows.h) or its connection was
 * closed. */
static void verdict_on_write(struct sim *sim, const struct win_conn *c, const struct win_op *op)
{
	windows_seen.writes++;
	windows_seen.placed += op->placed;
	windows_seen.lost += op->completed && !op->placed;
	windows_seen.shared += op->placed && op->owner != c;
	windows_seen.forbidden += op->forbidden;
	windows_seen.after_end += op->was_dead;
	if (!op_writes_alone(op) || op->owner != c || op->b->state != BIND_LIVE || c->may_fail ||
	    c->cut)
		return;
	if (op->placed && !op_is_there(sim->node[1].mem->cache, op))
		sim_violate(sim, "Write %u is placed in part", op->version);
}

void win_verdict(struct sim *sim)
{
	const struct win_conn *c = &sim->world->windows->conn[sim->index];

	windows_seen.rings += sim->link.sends_ring[0];
	if (c->completed != c->posted)
		sim_violate(sim, "%u of %u operations are complete", c->completed, c->posted);
	for (unsigned i = 0; i < c->posted; i++) {
		const struct win_op *op = &c->op[i];

		if (op->kind == WIN_WRITE || op->kind == WIN_WRITE_IMM)
			verdict_on_write(sim, c, op);
	}
	win_check_medium(&sim->node[1]);
}
