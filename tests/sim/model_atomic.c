/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_atomic.c -- the values that atomics write and return, and what these values prove about
 * earlier operations.
 */
#include <string.h>

#include "model_impl.h"

uint64_t *model_word(struct model *m, const struct memory *peer, const struct op *op)
{
	const struct area *a = &peer->area[AREA_WORDS];

	/* A forbidden atomic can have any address, so use an arbitrary word for it. */
	if (op->area != AREA_WORDS || op->off >= a->off + a->len)
		return &m->word[0];
	return &m->word[(op->off - a->off) / sizeof(uint64_t)];
}

void model_set_words(struct model *m, const struct memory *peer)
{
	memcpy(m->word, peer->initial + peer->area[AREA_WORDS].off, sizeof(m->word));
}

void model_execute(struct op *op, uint64_t *word)
{
	op->original = *word;
	if (op->kind == OP_FETCH_ADD)
		*word += op->operand;
	else if (op->kind == OP_ATOMIC_WRITE || op->matches)
		*word = op->operand;
	memcpy(op->after, word, sizeof(op->after));
}

/* Returns the last atomic whose change is visible in a word; MODEL_OPS: none is visible. */
static unsigned model_last_visible(const struct model *m, const struct memory *peer)
{
	unsigned last = MODEL_OPS;

	for (unsigned id = m->executed; id < m->posted; id++) {
		const struct op *op = &m->op[id];

		if (op_is_atomic(op) && model_writes(op) &&
		    memcmp(op->after, &op->original, sizeof(op->after)) != 0 &&
		    memcmp(op->after, peer->cache + op->off, sizeof(op->after)) == 0)
			last = id;
	}
	return last;
}

const char *model_on_observed(struct model *m, const struct memory *peer)
{
	unsigned last = peer->area[AREA_WORDS].gone ? MODEL_OPS : model_last_visible(m, peer);
	const char *bad = NULL;

	if (last == MODEL_OPS)
		return NULL;
	for (unsigned id = m->executed; id < last && !bad; id++)
		bad = model_flushed(m, id, peer);
	m->applied = last > m->applied ? last : m->applied;
	m->executed = last + 1;
	m->observed++;
	return bad;
}
