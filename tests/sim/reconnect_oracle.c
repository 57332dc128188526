/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_oracle.c -- record the acknowledged data, and check that they are in memory. */
#include <stdlib.h>
#include <string.h>

#include "reconnect.h"

static struct memory *oracle_memory(struct world *w)
{
	return &w->conn[0].node[1].own_mem;
}

/* Set all bytes to version 0: no Write has changed the area. */
static void oracle_clear_area(struct memory *m, const struct area *a)
{
	memset(m->cache + a->off, 0, a->len);
	memset(m->medium + a->off, 0, a->len);
}

void reconnect_oracle_init(struct world *w)
{
	struct reconnect *r = w->reconnect;
	struct memory *m = oracle_memory(w);

	for (int i = 0; i < 2; i++) {
		if (m->size > r->room)
			r->floor[i] = realloc(r->floor[i], m->size);
		if (!r->floor[i])
			abort();
		memset(r->floor[i], 0, m->size);
	}
	r->room = m->size > r->room ? m->size : r->room;
	oracle_clear_area(m, &m->area[AREA_TARGET0]);
	oracle_clear_area(m, &m->area[AREA_WORDS]);
}

static void oracle_raise(struct reconnect *r, const struct reconnect_op *flush,
			 const struct reconnect_op *op)
{
	uint64_t lo = op->off > flush->off ? op->off : flush->off;
	uint64_t hi = op->off + op->len < flush->off + flush->len ? op->off + op->len
								  : flush->off + flush->len;

	for (uint64_t b = lo; b < hi; b++) {
		for (int i = 0; i < 2; i++) {
			if (r->floor[i][b] < op->version)
				r->floor[i][b] = op->version;
		}
	}
}

void reconnect_acknowledge(struct world *w, unsigned c, unsigned op)
{
	struct reconnect_conn *conn = &w->reconnect->conn[c];

	for (unsigned i = 0; i < op; i++) {
		if (conn->op[i].kind == RC_WRITE || conn->op[i].kind == RC_ATOMIC)
			oracle_raise(w->reconnect, &conn->op[op], &conn->op[i]);
	}
	reconnect_check(w);
}

#define BLOCK 64 /* bytes that one step compares with vector instructions */

static bool oracle_is_below(const uint8_t *have, const uint8_t *floor, uint64_t len)
{
	uint8_t below = 0;
	uint64_t i = 0;

	for (; i + BLOCK <= len; i += BLOCK) {
		for (unsigned k = 0; k < BLOCK; k++)
			below |= have[i + k] < floor[i + k];
	}
	for (; i < len; i++)
		below |= have[i] < floor[i];
	return below;
}

static unsigned oracle_conn_of(const struct world *w, uint8_t version)
{
	for (unsigned c = 0; c < w->conns; c++) {
		for (unsigned i = 0; i < w->reconnect->conn[c].posted; i++) {
			if (w->reconnect->conn[c].op[i].version == version)
				return c;
		}
	}
	return 0;
}

static void oracle_report(struct world *w, const char *layer, const uint8_t *have,
			  const uint8_t *floor, uint64_t off)
{
	while (have[off] >= floor[off])
		off++;
	sim_violate(
		&w->conn[oracle_conn_of(w, floor[off])],
		"%s at offset %llu: version %u was acknowledged, and here is %u, of connection %u",
		layer, (unsigned long long)off, floor[off], have[off],
		oracle_conn_of(w, have[off]));
}

static void oracle_check_area(struct world *w, const struct area *a)
{
	const struct memory *m = oracle_memory(w);
	struct reconnect *r = w->reconnect;

	if (oracle_is_below(m->cache + a->off, r->floor[0] + a->off, a->len))
		oracle_report(w, "cache", m->cache, r->floor[0], a->off);
	if (oracle_is_below(m->medium + a->off, r->floor[1] + a->off, a->len))
		oracle_report(w, "medium", m->medium, r->floor[1], a->off);
}

void reconnect_check(struct world *w)
{
	const struct memory *m = oracle_memory(w);

	oracle_check_area(w, &m->area[AREA_TARGET0]);
	oracle_check_area(w, &m->area[AREA_WORDS]);
}
