/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/rnic.h"

static char text[160];

#define SAY(...) (snprintf(text, sizeof(text), __VA_ARGS__), text)

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

static bool writes(const struct op *op)
{
	return op->kind == OP_WRITE && !op->forbidden && op->len > 0;
}

/* --- versions ------------------------------------------------------------------------------ */

/* For each byte of [off, off+len): 1 + the last write to it before operation `end`. */
static void floor_build(struct model *m, unsigned end, uint64_t off, uint64_t len)
{
	memset(m->floor + off, 0, len * sizeof(*m->floor));
	for (unsigned i = 0; i < end; i++) {
		const struct op *op = &m->op[i];
		uint64_t lo = op->off > off ? op->off : off;
		uint64_t hi = op->off + op->len < off + len ? op->off + op->len : off + len;

		for (uint64_t b = lo; writes(op) && b < hi; b++)
			m->floor[b] = (uint16_t)(i + 1);
	}
}

static bool is_from(const struct op *op, uint64_t b, uint8_t value)
{
	return writes(op) && b >= op->off && b - op->off < op->len &&
	       op->data[b - op->off] == value;
}

/* Is this value one that the byte had at version `floor` or later? */
static bool is_valid(const struct model *m, const struct memory *peer, uint64_t b, uint8_t value,
		     unsigned floor)
{
	if (floor == 0 && value == peer->initial[b])
		return true;
	for (unsigned i = floor ? floor - 1 : 0; i < m->posted; i++) {
		if (is_from(&m->op[i], b, value))
			return true;
	}
	return false;
}

/* bytes[0..len) stand for the peer's [off, off+len). */
static const char *check_versions(const struct model *m, const struct memory *peer,
				  const uint16_t *floor, uint64_t off, uint64_t len,
				  const uint8_t *bytes, const char *where)
{
	for (uint64_t i = 0; i < len; i++) {
		uint64_t b = off + i;

		if (!is_valid(m, peer, b, bytes[i], floor[b]))
			return SAY("%s at offset %llu: 0x%02x is older than operation %d", where,
				   (unsigned long long)b, bytes[i], floor[b] - 1);
	}
	return NULL;
}

const char *model_check_medium_area(const struct model *m, const struct memory *peer,
				    const struct area *a)
{
	return check_versions(m, peer, m->durable, a->off, a->len, peer->medium + a->off, "medium");
}

const char *model_check_medium(const struct model *m, const struct memory *peer)
{
	const char *bad = NULL;

	for (int i = AREA_TARGET0; i <= AREA_TARGET1 && !bad; i++) {
		if (!peer->area[i].gone)
			bad = model_check_medium_area(m, peer, &peer->area[i]);
	}
	return bad;
}

/* --- prefixes ------------------------------------------------------------------------------ */

static uint64_t count_other(const uint8_t *a, const uint8_t *b, uint64_t len)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < len; i++)
		n += a[i] != b[i];
	return n;
}

/* Is the cache the state plus the first part of this write? */
static bool is_part(const struct model *m, const struct op *op, const uint8_t *cache,
		    bool whole_words)
{
	const uint8_t *have = cache + op->off, *before = m->state + op->off;
	bool is_word = op->len == 8 && (uintptr_t)have % 8 == 0;
	uint64_t part = 0;

	while (part < op->len && have[part] == op->data[part])
		part++;
	if (part == op->len)
		return true;
	if (is_word)
		part = 0;
	else if (whole_words) /* bytes that happen to be equal do not count */
		part -= part < ((uintptr_t)have + part) % 8 ? part : ((uintptr_t)have + part) % 8;
	return memcmp(have + part, before + part, op->len - part) == 0;
}

const char *model_check_cache(struct model *m, const struct memory *peer, bool whole_words)
{
	uint64_t other = 0;

	for (int i = AREA_TARGET0; i <= AREA_TARGET1; i++) {
		const struct area *a = &peer->area[i];

		memcpy(m->state + a->off, peer->initial + a->off, a->len);
		if (!a->gone)
			other += count_other(m->state + a->off, peer->cache + a->off, a->len);
	}
	for (unsigned k = 0;; k++) {
		const struct op *op = &m->op[k];
		uint64_t here;

		if (other == 0 && k >= m->applied)
			return NULL;
		if (k == m->posted)
			break;
		if (!writes(op) || peer->area[op->area].gone)
			continue;
		here = count_other(m->state + op->off, peer->cache + op->off, op->len);
		if (here == other && k >= m->applied && is_part(m, op, peer->cache, whole_words))
			return NULL;
		memcpy(m->state + op->off, op->data, op->len);
		other += count_other(m->state + op->off, peer->cache + op->off, op->len);
		other -= here;
	}
	return SAY("the targets are not the state after at least %u of %u operations", m->applied,
		   m->posted);
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

static const char *on_read(struct model *m, const struct op *op, unsigned id,
			   const struct memory *own, const struct memory *peer)
{
	if (id > m->applied)
		m->applied = id;
	if (peer->area[op->area].gone || own->area[AREA_SINK].gone || op->len == 0)
		return NULL;
	floor_build(m, id, op->off, op->len);
	return check_versions(m, peer, m->floor, op->off, op->len, own->cache + op->sink,
			      "data read");
}

/* From now on everything that was written here before operation `id` must survive. */
static const char *on_durable(struct model *m, unsigned id, uint64_t off, uint64_t len,
			      const struct memory *peer)
{
	floor_build(m, id, off, len);
	for (uint64_t b = off; b < off + len; b++) {
		if (m->floor[b] > m->durable[b])
			m->durable[b] = m->floor[b];
	}
	return check_versions(m, peer, m->durable, off, len, peer->medium + off, "flushed medium");
}

static const char *on_flush(struct model *m, const struct op *op, unsigned id,
			    const struct memory *peer)
{
	const char *bad;

	if (id > m->applied)
		m->applied = id;
	if (peer->area[op->area].gone || op->len == 0)
		return NULL;
	floor_build(m, id, op->off, op->len);
	bad = check_versions(m, peer, m->floor, op->off, op->len, peer->cache + op->off,
			     "flushed cache");
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
		return SAY("operation %u was allowed to do what it must not", id);
	if (wc->opcode != wc_opcode(op))
		return SAY("operation %u completed with opcode %d", id, wc->opcode);
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
		return SAY("completion of operation %llu, which was not posted",
			   (unsigned long long)wc->wr_id);
	if (id < m->completed)
		return SAY("operation %u completed twice or out of order", id);
	for (unsigned i = m->completed; i < id; i++) {
		if (m->op[i].signalled)
			return SAY("operation %u completed before %u", id, i);
		if (wc->status != IBV_WC_SUCCESS && m->failed)
			return SAY("operation %u was not flushed, %u was", i, id);
	}
	m->completed = id + 1;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!m->failed)
			m->first_failed = id;
		m->failed = true;
		if (wc->status != IBV_WC_WR_FLUSH_ERR && m->culprits++)
			return SAY("operation %u: status %d, and it is not the first culprit", id,
				   wc->status);
		return NULL;
	}
	if (m->failed)
		return SAY("operation %u succeeded after an error", id);
	if (!m->op[id].signalled)
		return SAY("operation %u was not signalled", id);
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
		return SAY("a Send was received that nobody sent");
	if (len != m->op[m->received].len)
		return SAY("a Send of %u bytes was received as %llu", m->op[m->received].len,
			   (unsigned long long)len);
	if (m->op[m->received].forbidden)
		return SAY("Send %u was received, but is too long", m->received);
	if (bytes && len > 0 && memcmp(bytes, m->op[m->received].data, len) != 0)
		return SAY("Send %u arrived with other bytes", m->received);
	if (m->received > m->applied)
		m->applied = m->received;
	m->received++;
	return NULL;
}

const char *model_check_complete(const struct model *m)
{
	for (unsigned i = m->completed; i < m->posted; i++) {
		if (m->op[i].signalled || m->failed)
			return SAY("operation %u of %u never completed", i, m->posted);
	}
	return NULL;
}
