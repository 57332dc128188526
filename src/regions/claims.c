/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/claims.h"

#include <stddef.h>
#include <string.h>

static void claims_remove(struct claims *c, unsigned at)
{
	c->count--;
	memmove(&c->list[at], &c->list[at + 1], (c->count - at) * sizeof(c->list[0]));
}

static void claims_make_room(struct claims *c)
{
	struct claim *oldest = &c->list[0], *next = &c->list[1];

	if (c->count < CLAIMS_MAX)
		return;
	if (oldest->from < next->from)
		next->from = oldest->from;
	if (oldest->to > next->to)
		next->to = oldest->to;
	claims_remove(c, 0);
}

struct claim_id claims_add(struct claims *c, uint64_t from, uint64_t to, uint64_t key,
			   uint64_t now_ns)
{
	struct claim_id id = {++c->newest, key};

	for (unsigned i = c->count; i-- > 0;)
		if (from <= c->list[i].from && c->list[i].to <= to)
			claims_remove(c, i); /* the new claim covers it */
	claims_make_room(c);
	c->list[c->count++] = (struct claim){from, to, id, now_ns};
	return id;
}

const struct claim *claims_last(const struct claims *c, uint64_t from, uint64_t to)
{
	for (unsigned i = c->count; i-- > 0;)
		if (from < c->list[i].to && c->list[i].from < to)
			return &c->list[i];
	return NULL;
}

bool claims_hold(const struct claims *c, uint64_t from, uint64_t to, struct claim_id id)
{
	const struct claim *last = claims_last(c, from, to);

	if (from == to)
		return true; /* the range is empty, so there is nothing to write */
	return last && last->id.generation == id.generation && last->id.key == id.key &&
	       last->from <= from && to <= last->to;
}

bool claims_are_sound(const struct claims *c)
{
	uint64_t before = 0;

	if (c->count > CLAIMS_MAX)
		return false;
	for (unsigned i = 0; i < c->count; i++) {
		const struct claim *claim = &c->list[i];

		if (claim->id.generation <= before || claim->from > claim->to)
			return false;
		before = claim->id.generation;
	}
	return before <= c->newest;
}
