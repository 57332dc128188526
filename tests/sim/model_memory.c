/* SPDX-License-Identifier: BSD-3-Clause */
/* model_memory.c -- decides which contents of the peer's memory are permitted. */
#include <string.h>

#include "model_impl.h"

#define BLOCK 64

bool model_writes(const struct op *op)
{
	return op_traits[op->kind].writes && !op->forbidden && !op->changing && op->len > 0;
}

/* --- versions ------------------------------------------------------------------------------ */

/* Fill m->floor: for each byte of [off, off+len), 1 + the last operation before `end` that wrote
 * the byte. */
void model_floor(struct model *m, unsigned end, uint64_t off, uint64_t len)
{
	memset(m->floor + off, 0, len * sizeof(*m->floor));
	for (unsigned i = 0; i < end; i++) {
		const struct op *op = &m->op[i];
		uint64_t lo = op->off > off ? op->off : off;
		uint64_t hi = op->off + op->len < off + len ? op->off + op->len : off + len;

		for (uint64_t b = lo; model_writes(op) && b < hi; b++)
			m->floor[b] = (uint16_t)(i + 1);
	}
}

static bool model_is_from(const struct op *op, uint64_t b, uint8_t value)
{
	return model_writes(op) && b >= op->off && b - op->off < op->len &&
	       op->data[b - op->off] == value;
}

/*
 * Returns true if the byte had this value at a version from `floor` on, but before operation `end`.
 */
static bool model_is_valid(const struct model *m, const struct memory *peer, uint64_t b,
			   uint8_t value, unsigned floor, unsigned end)
{
	if (floor == 0 && value == peer->initial[b])
		return true;
	for (unsigned i = floor ? floor - 1 : 0; i < end; i++) {
		if (model_is_from(&m->op[i], b, value))
			return true;
	}
	return false;
}

/* A shortcut: most bytes still have their initial value, which the model permits. */
static bool model_is_untouched(const struct memory *peer, const struct model_view *v, uint64_t i,
			       uint64_t len)
{
	static const uint16_t none[BLOCK];
	uint64_t b = v->off + i;

	return memcmp(v->bytes + i, peer->initial + b, len) == 0 &&
	       memcmp(v->floor + b, none, len * sizeof(none[0])) == 0;
}

static const char *model_check_block(const struct model *m, const struct memory *peer,
				     const struct model_view *v, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		uint64_t b = v->off + i;

		if (!model_is_valid(m, peer, b, v->bytes[i], v->floor[b], v->end))
			return model_text(
				"%s at offset %llu: 0x%02x is not from operation %d to %d", v->name,
				(unsigned long long)b, v->bytes[i], v->floor[b] - 1,
				(int)v->end - 1);
	}
	return NULL;
}

const char *model_check_view(const struct model *m, const struct memory *peer,
			     const struct model_view *v)
{
	const char *bad = NULL;

	for (uint64_t i = 0; i < v->len && !bad; i += BLOCK) {
		uint64_t len = v->len - i < BLOCK ? v->len - i : BLOCK;

		if (!model_is_untouched(peer, v, i, len))
			bad = model_check_block(m, peer, v, i, i + len);
	}
	return bad;
}

const char *model_check_medium_area(const struct model *m, const struct memory *peer,
				    const struct area *a)
{
	return model_check_view(m, peer,
				&(struct model_view){.name = "medium",
						     .bytes = peer->medium + a->off,
						     .off = a->off,
						     .len = a->len,
						     .floor = m->durable,
						     .end = m->posted});
}

const char *model_check_medium(const struct model *m, const struct memory *peer)
{
	const char *bad = NULL;

	for (int i = AREA_TARGET0; i <= AREA_WORDS && !bad; i++) {
		if (!peer->area[i].gone || peer->area[i].lasting)
			bad = model_check_medium_area(m, peer, &peer->area[i]);
	}
	return bad;
}

/* --- prefixes ------------------------------------------------------------------------------ */

static uint64_t model_count_other(const uint8_t *a, const uint8_t *b, uint64_t len)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < len; i++)
		n += a[i] != b[i];
	return n;
}

/* Returns true if the cache differs from the current state only by a first part of this write. */
static bool model_is_part(const struct model *m, const struct op *op, const uint8_t *cache,
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
	else if (whole_words) /* skip bytes that are equal only by chance */
		part -= part < ((uintptr_t)have + part) % 8 ? part : ((uintptr_t)have + part) % 8;
	return memcmp(have + part, before + part, op->len - part) == 0;
}

/* Writes and atomics can overtake each other, so each of the two kinds has its own history and
 * areas. */
struct history {
	enum area_kind first, last;
	unsigned least; /* the history must include at least this many operations */
	bool whole_words;
};

static uint64_t model_history_start(struct model *m, const struct memory *peer,
				    const struct history *h)
{
	uint64_t other = 0;

	for (int i = (int)h->first; i <= (int)h->last; i++) {
		const struct area *a = &peer->area[i];

		memcpy(m->state + a->off, peer->initial + a->off, a->len);
		if (!a->gone)
			other += model_count_other(m->state + a->off, peer->cache + a->off, a->len);
	}
	return other;
}

static bool model_is_of_history(const struct op *op, const struct memory *peer,
				const struct history *h)
{
	return model_writes(op) && op->area >= h->first && op->area <= h->last &&
	       !peer->area[op->area].gone;
}

static const char *model_check_history(struct model *m, const struct memory *peer,
				       const struct history *h)
{
	uint64_t other = model_history_start(m, peer, h);

	for (unsigned k = 0;; k++) {
		const struct op *op = &m->op[k];
		uint64_t here;

		if (other == 0 && k >= h->least)
			return NULL;
		if (k == m->posted)
			break;
		if (!model_is_of_history(op, peer, h))
			continue;
		here = model_count_other(m->state + op->off, peer->cache + op->off, op->len);
		if (here == other && k >= h->least &&
		    model_is_part(m, op, peer->cache, h->whole_words))
			return NULL;
		memcpy(m->state + op->off, op->data, op->len);
		other += model_count_other(m->state + op->off, peer->cache + op->off, op->len);
		other -= here;
	}
	return model_text("memory is not the state after at least %u of %u operations", h->least,
			  m->posted);
}

const char *model_check_cache(struct model *m, const struct memory *peer, bool whole_words)
{
	const struct history writes = {AREA_TARGET0, AREA_LEASE, m->applied, whole_words};
	const struct history atomics = {AREA_WORDS, AREA_WORDS, m->executed, true};
	const char *bad = model_check_history(m, peer, &writes);

	return bad ? bad : model_check_history(m, peer, &atomics);
}
