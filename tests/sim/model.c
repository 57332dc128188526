/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"
#include "verbs_ext/verbs_ext.h"
#include "softrnic/rnic/rnic.h"

const struct op_traits op_traits[OP_KINDS] = {
	[OP_WRITE] = {.wc = IBV_WC_RDMA_WRITE, .writes = true, .has_data = true},
	[OP_READ] = {.wc = IBV_WC_RDMA_READ, .request = true},
	[OP_SEND] = {.wc = IBV_WC_SEND, .message = true, .has_data = true},
	[OP_FLUSH] = {.wc = VEXT_WC_FLUSH,
		      .caps = VEXT_CAP_FLUSH,
		      .request = true,
		      .flushes = true},
	[OP_FLUSH_ALL] = {.wc = VEXT_WC_FLUSH,
			  .caps = VEXT_CAP_FLUSH_ALL,
			  .request = true,
			  .flushes = true},
	[OP_VERIFY] = {.wc = VEXT_WC_VERIFY,
		       .caps = VEXT_CAP_VERIFY,
		       .request = true,
		       .flushes = true},
	[OP_QUERY] = {.wc = VEXT_WC_QUERY, .caps = VEXT_CAP_QUERY, .request = true},
	[OP_WRITE_IMM] = {.wc = IBV_WC_RDMA_WRITE,
			  .caps = VEXT_CAP_IMM,
			  .message = true,
			  .writes = true,
			  .has_data = true},
	[OP_SEND_IMM] = {.wc = IBV_WC_SEND,
			 .caps = VEXT_CAP_IMM | VEXT_CAP_SOFTRNIC,
			 .message = true,
			 .has_data = true},
	[OP_SEND_INV] = {.wc = IBV_WC_SEND, .message = true, .has_data = true},
	[OP_FETCH_ADD] = {.wc = IBV_WC_FETCH_ADD,
			  .caps = VEXT_CAP_ATOMICS,
			  .request = true,
			  .writes = true,
			  .is_atomic = true},
	[OP_CMP_SWAP] = {.wc = IBV_WC_COMP_SWAP,
			 .caps = VEXT_CAP_ATOMICS,
			 .request = true,
			 .writes = true,
			 .is_atomic = true},
	[OP_ATOMIC_WRITE] = {.wc = VEXT_WC_ATOMIC_WRITE,
			     .caps = VEXT_CAP_ATOMIC_WRITE,
			     .request = true,
			     .writes = true,
			     .is_atomic = true},
};

const char *model_text(const char *fmt, ...)
{
	static char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return text;
}

void model_init(struct model *m)
{
	struct model old = *m;

	memset(m, 0, sizeof(*m));
	m->durable = old.durable;
	m->floor = old.floor;
	m->state = old.state;
	m->room = old.room;
	m->lost_at = MODEL_OPS;
}

void model_set_peer(struct model *m, uint64_t size)
{
	if (size > m->room) {
		model_free(m);
		m->room = size;
		m->durable = malloc(size * sizeof(*m->durable));
		m->floor = malloc(size * sizeof(*m->floor));
		m->state = malloc(size);
		if (!m->durable || !m->floor || !m->state)
			abort();
	}
	memset(m->durable, 0, size * sizeof(*m->durable));
}

void model_free(struct model *m)
{
	free(m->durable);
	free(m->floor);
	free(m->state);
	m->durable = m->floor = NULL;
	m->state = NULL;
	m->room = 0;
}

/* Returns true if the area's deregistration loses bytes: they were placed, but are not on the
 * medium. */
static bool model_loses(struct model *m, const struct memory *peer, const struct area *a)
{
	if (a->is_volatile)
		return false;
	model_floor(m, m->applied, a->off, a->len);
	for (uint64_t b = a->off; b < a->off + a->len; b++) {
		if (m->floor[b] > m->durable[b] && peer->medium[b] != peer->cache[b])
			return true;
	}
	return false;
}

void model_drop_area(struct model *m, const struct memory *peer, const struct area *a)
{
	if (m->lost_at > m->posted && model_loses(m, peer, a))
		m->lost_at = m->posted;
	memset(m->durable + a->off, 0, a->len * sizeof(*m->durable));
}

/* --- completions --------------------------------------------------------------------------- */

/* A fenced operation waits for the answers to all earlier requests (ibv_post_send(3)). */
static unsigned model_first_fenced(const struct model *m, unsigned id)
{
	for (unsigned i = id + 1; i < m->posted; i++) {
		if (m->op[i].fence)
			return i;
	}
	return m->posted;
}

static const char *model_on_read(struct model *m, const struct op *op, unsigned id,
				 const struct memory *own, const struct memory *peer)
{
	struct model_view v = {
		.name = "data read",
		.bytes = own->cache + op->sink,
		.off = op->off,
		.len = op->len,
		.floor = m->floor,
		.end = op->area == AREA_WORDS ? id : model_first_fenced(m, id),
	};

	if (peer->area[op->area].gone || own->area[AREA_SINK].gone)
		return NULL;
	model_floor(m, id, op->off, op->len);
	return model_check_view(m, peer, &v);
}

const char *model_on_durable(struct model *m, unsigned id, uint64_t off, uint64_t len,
			     const struct memory *peer, const struct area *a)
{
	struct model_view v = {
		.name = "flushed medium",
		.bytes = peer->medium + off,
		.off = off,
		.len = len,
		.floor = m->durable,
		.end = m->posted,
	};

	if (a->is_volatile || (a->gone && !a->lasting))
		return NULL;
	model_floor(m, id, off, len);
	for (uint64_t b = off; b < off + len; b++) {
		if (m->floor[b] > m->durable[b])
			m->durable[b] = m->floor[b];
	}
	return model_check_view(m, peer, &v);
}

static const char *model_on_flush(struct model *m, const struct op *op, unsigned id,
				  const struct memory *peer)
{
	struct model_view v = {
		.name = "flushed cache",
		.bytes = peer->cache + op->off,
		.off = op->off,
		.len = op->len,
		.floor = m->floor,
		.end = m->posted,
	};
	const struct area *a = &peer->area[op->area];
	const char *bad;

	if (op->strict && a->is_volatile && op->len > 0)
		return model_text("operation %u made volatile memory persistent", id);
	if (a->gone)
		return NULL;
	model_floor(m, id, op->off, op->len);
	bad = model_check_view(m, peer, &v);
	if (bad || !op->persistent)
		return bad;
	return model_on_durable(m, id, op->off, op->len, peer, a);
}

/* All bytes that were placed before this operation must be on the medium. */
static const char *model_all_durable(struct model *m, unsigned id, const struct memory *peer)
{
	const char *bad = NULL;

	for (int i = AREA_TARGET0; i <= AREA_WORDS && !bad; i++) {
		const struct area *a = &peer->area[i];

		bad = model_on_durable(m, id, a->off, a->len, peer, a);
	}
	return bad;
}

/* A flush of all bytes must fail if the deregistration of a region lost some bytes. */
static const char *model_on_flush_all(struct model *m, const struct op *op, unsigned id,
				      const struct memory *peer)
{
	if (!op->persistent)
		return NULL;
	if (id >= m->lost_at)
		return model_text("operation %u flushed everything, but something is lost", id);
	return model_all_durable(m, id, peer);
}

const char *model_flushed(struct model *m, unsigned id, const struct memory *peer)
{
	const struct op *op = &m->op[id];

	if (op_is_read_flush(op) && !op->forbidden)
		return model_all_durable(m, id, peer);
	if (!op_flushes(op) || !op->persistent || op->forbidden)
		return NULL;
	if (op->kind == OP_FLUSH_ALL)
		return model_on_flush_all(m, op, id, peer);
	return model_on_durable(m, id, op->off, op->len, peer, &peer->area[op->area]);
}

/* The digest must cover the medium's bytes as they are after all earlier Writes have reached the
 * medium. */
static const char *model_on_verify(struct model *m, const struct op *op, unsigned id,
				   const struct memory *peer)
{
	const struct area *a = &peer->area[op->area];
	struct digested *d = memory_digested(peer, op->off, op->digest.len, op->digest.bytes);
	struct model_view v = {.name = "digested bytes", .off = op->off, .len = op->len};

	if (a->gone)
		return NULL;
	if (!d || d->len != op->len || op->digest.alg != op->alg ||
	    op->digest.durability != memory_durability(peer, op->area))
		return model_text("operation %u has another digest than the peer made", id);
	v.bytes = d->bytes;
	v.floor = m->floor;
	v.end = m->posted;
	model_floor(m, id, op->off, op->len);
	return model_check_view(m, peer, &v);
}

static const char *model_on_query(const struct op *op, unsigned id, const struct memory *peer)
{
	uint32_t want = memory_durability(peer, op->area);

	if (op->len == 0 || op->durability == want)
		return NULL;
	return model_text("operation %u: durability %u, not %u", id, op->durability, want);
}

/* The answer must contain the word's previous value. */
static const char *model_on_atomic(const struct op *op, unsigned id, const struct memory *own)
{
	uint64_t got;

	if (op->kind == OP_ATOMIC_WRITE || own->area[AREA_SINK].gone)
		return NULL;
	memcpy(&got, own->cache + op->sink, sizeof(got));
	return got == op->original ? NULL : model_text("atomic %u returned another value", id);
}

static const char *model_on_success(struct model *m, const struct op *op, unsigned id,
				    const struct ibv_wc *wc, const struct memory *own,
				    const struct memory *peer)
{
	const char *bad = NULL;

	if (op->forbidden && op_is_request(op))
		return model_text("operation %u was allowed to do what it must not", id);
	if ((int)wc->opcode != op_traits[op->kind].wc)
		return model_text("operation %u completed with opcode %d", id, wc->opcode);
	if (op_is_request(op) && id > m->applied)
		m->applied = id;
	if (op_is_request(op) && id >= m->executed)
		m->executed = id + 1;
	if (op->kind == OP_READ)
		bad = model_on_read(m, op, id, own, peer);
	if (op->kind == OP_FLUSH || op->kind == OP_VERIFY)
		bad = model_on_flush(m, op, id, peer);
	if (op->kind == OP_FLUSH_ALL)
		bad = model_on_flush_all(m, op, id, peer);
	if (!bad && op->kind == OP_VERIFY)
		bad = model_on_verify(m, op, id, peer);
	if (op->kind == OP_QUERY)
		bad = model_on_query(op, id, peer);
	if (op_is_atomic(op))
		bad = model_on_atomic(op, id, own);
	if (!bad && op_is_read_flush(op))
		bad = model_all_durable(m, id, peer);
	return bad;
}

const char *model_on_completion(struct model *m, const struct ibv_wc *wc, const struct memory *own,
				const struct memory *peer, bool trusted)
{
	unsigned id = (unsigned)wc->wr_id;

	if (wc->wr_id >= m->posted)
		return model_text("completion of operation %llu, which was not posted",
				  (unsigned long long)wc->wr_id);
	if (id < m->completed)
		return model_text("operation %u completed twice or out of order", id);
	for (unsigned i = m->completed; i < id; i++) {
		if (m->op[i].signalled)
			return model_text("operation %u completed before %u", id, i);
		if (wc->status != IBV_WC_SUCCESS && m->failed)
			return model_text("operation %u was not flushed, %u was", i, id);
	}
	m->completed = id + 1;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!m->failed)
			m->first_failed = id;
		m->failed = true;
		if (wc->status != IBV_WC_WR_FLUSH_ERR && m->culprits++)
			return model_text(
				"operation %u: status %d, and it is not the first culprit", id,
				wc->status);
		return NULL;
	}
	if (m->failed)
		return model_text("operation %u succeeded after an error", id);
	if (!m->op[id].signalled)
		return model_text("operation %u was not signalled", id);
	m->op[id].done = true;
	if (!trusted)
		return NULL;
	return model_on_success(m, &m->op[id], id, wc, own, peer);
}

const char *model_on_acknowledged(struct model *m, unsigned id, const struct memory *peer)
{
	const struct op *op = &m->op[id];
	struct model_view v = {
		.name = "acknowledged data",
		.bytes = peer->cache + op->off,
		.off = op->off,
		.len = op->len,
		.floor = m->floor,
		.end = m->posted,
	};

	if (op->forbidden)
		return model_text("operation %u was acknowledged, and must not be", id);
	if (id >= m->applied)
		m->applied = id + 1;
	if (!model_writes(op) || op_is_atomic(op) || peer->area[op->area].gone)
		return NULL;
	model_floor(m, id + 1, op->off, op->len);
	return model_check_view(m, peer, &v);
}

const char *model_check_complete(const struct model *m)
{
	for (unsigned i = m->completed; i < m->posted; i++) {
		if (m->op[i].signalled || m->failed)
			return model_text("operation %u of %u never completed", i, m->posted);
	}
	return NULL;
}
