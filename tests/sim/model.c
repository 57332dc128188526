/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"
#include "softrnic/rnic/rnic.h"

const char *model_say(const char *fmt, ...)
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

void model_forget(struct model *m, const struct area *a)
{
	memset(m->durable + a->off, 0, a->len * sizeof(*m->durable));
}

/* --- completions --------------------------------------------------------------------------- */

static enum ibv_wc_opcode wc_opcode(const struct op *op)
{
	switch (op->kind) {
	case OP_WRITE:
		return IBV_WC_RDMA_WRITE;
	case OP_READ:
		return IBV_WC_RDMA_READ;
	case OP_SEND:
		return IBV_WC_SEND;
	case OP_FLUSH:
		return (enum ibv_wc_opcode)RNIC_WC_FLUSH;
	}
	return IBV_WC_SEND;
}

/* A fenced operation waits for the answers to all requests before it (ibv_post_send(3)). */
static unsigned first_fenced(const struct model *m, unsigned id)
{
	for (unsigned i = id + 1; i < m->posted; i++) {
		if (m->op[i].fence)
			return i;
	}
	return m->posted;
}

static const char *on_read(struct model *m, const struct op *op, unsigned id,
			   const struct memory *own, const struct memory *peer)
{
	struct model_view v = {
		.name = "data read",
		.bytes = own->cache + op->sink,
		.off = op->off,
		.len = op->len,
		.floor = m->floor,
		.end = first_fenced(m, id),
	};

	if (peer->area[op->area].gone || own->area[AREA_SINK].gone)
		return NULL;
	model_floor(m, id, op->off, op->len);
	return model_check_view(m, peer, &v);
}

/* From now on everything that was written here before operation `id` must survive. */
static const char *on_durable(struct model *m, unsigned id, uint64_t off, uint64_t len,
			      const struct memory *peer)
{
	struct model_view v = {
		.name = "flushed medium",
		.bytes = peer->medium + off,
		.off = off,
		.len = len,
		.floor = m->durable,
		.end = m->posted,
	};

	model_floor(m, id, off, len);
	for (uint64_t b = off; b < off + len; b++) {
		if (m->floor[b] > m->durable[b])
			m->durable[b] = m->floor[b];
	}
	return model_check_view(m, peer, &v);
}

static const char *on_flush(struct model *m, const struct op *op, unsigned id,
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
	const char *bad;

	if (peer->area[op->area].gone)
		return NULL;
	model_floor(m, id, op->off, op->len);
	bad = model_check_view(m, peer, &v);
	if (bad || !op->persistent)
		return bad;
	return on_durable(m, id, op->off, op->len, peer);
}

static const char *on_success(struct model *m, const struct op *op, unsigned id,
			      const struct ibv_wc *wc, const struct memory *own,
			      const struct memory *peer)
{
	const struct area *a = &peer->area[op->area];
	const char *bad = NULL;

	if (op->forbidden && (op->kind == OP_READ || op->kind == OP_FLUSH))
		return model_say("operation %u was allowed to do what it must not", id);
	if (wc->opcode != wc_opcode(op))
		return model_say("operation %u completed with opcode %d", id, wc->opcode);
	if ((op->kind == OP_READ || op->kind == OP_FLUSH) && id > m->applied)
		m->applied = id;
	if (op->kind == OP_READ)
		bad = on_read(m, op, id, own, peer);
	if (op->kind == OP_FLUSH)
		bad = on_flush(m, op, id, peer);
	if (!bad && op->kind == OP_READ && op->reads_flush && !a->gone && op->len > 0)
		bad = on_durable(m, id, a->off, a->len, peer);
	return bad;
}

const char *model_on_completion(struct model *m, const struct ibv_wc *wc, const struct memory *own,
				const struct memory *peer, bool trusted)
{
	unsigned id = (unsigned)wc->wr_id;

	if (wc->wr_id >= m->posted)
		return model_say("completion of operation %llu, which was not posted",
				 (unsigned long long)wc->wr_id);
	if (id < m->completed)
		return model_say("operation %u completed twice or out of order", id);
	for (unsigned i = m->completed; i < id; i++) {
		if (m->op[i].signalled)
			return model_say("operation %u completed before %u", id, i);
		if (wc->status != IBV_WC_SUCCESS && m->failed)
			return model_say("operation %u was not flushed, %u was", i, id);
	}
	m->completed = id + 1;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!m->failed)
			m->first_failed = id;
		m->failed = true;
		if (wc->status != IBV_WC_WR_FLUSH_ERR && m->culprits++)
			return model_say("operation %u: status %d, and it is not the first culprit",
					 id, wc->status);
		return NULL;
	}
	if (m->failed)
		return model_say("operation %u succeeded after an error", id);
	if (!m->op[id].signalled)
		return model_say("operation %u was not signalled", id);
	m->op[id].done = true;
	if (!trusted)
		return NULL;
	return on_success(m, &m->op[id], id, wc, own, peer);
}

const char *model_on_received(struct model *m, const uint8_t *bytes, uint64_t len)
{
	while (m->received < m->posted && m->op[m->received].kind != OP_SEND)
		m->received++;
	if (m->received == m->posted)
		return model_say("a Send was received that nobody sent");
	if (len != m->op[m->received].len)
		return model_say("a Send of %u bytes was received as %llu", m->op[m->received].len,
				 (unsigned long long)len);
	if (m->op[m->received].forbidden)
		return model_say("Send %u was received, but is too long", m->received);
	if (bytes && len > 0 && memcmp(bytes, m->op[m->received].data, len) != 0)
		return model_say("Send %u arrived with other bytes", m->received);
	if (m->received > m->applied)
		m->applied = m->received;
	m->received++;
	return NULL;
}

const char *model_check_complete(const struct model *m)
{
	for (unsigned i = m->completed; i < m->posted; i++) {
		if (m->op[i].signalled || m->failed)
			return model_say("operation %u of %u never completed", i, m->posted);
	}
	return NULL;
}
