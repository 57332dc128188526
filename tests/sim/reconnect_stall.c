/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_stall.c -- decides which stores of the target are stuck, and for how long. */
#include "reconnect.h"
#include "softrnic/rnic/place.h"
#include "stall.h"
#include "windows.h"

#define STALL_PERCENT 4
/* used if stores to the place must not be stuck, only stores to other areas */
#define STALL_PERCENT_OTHER 25

/*
 * Without a barrier a store to the place must not be stuck, because the store would still take
 * effect later.
 */
static bool stall_is_due(struct node *n, const void *dst)
{
	struct reconnect *r = n->sim->world->reconnect;
	const struct area *a = n->mem->area;
	uint64_t off = (uint64_t)((const uint8_t *)dst - n->mem->cache);

	if (r->conn[n->sim->index].end == END_ORDERLY || r->stalls >= RECONNECT_STALLS ||
	    off >= n->mem->size)
		return false;
	if (off - a[AREA_SCRATCH].off >= a[AREA_SCRATCH].len &&
	    (!r->barrier || (off - a[AREA_TARGET0].off >= a[AREA_TARGET0].len &&
			     off - a[AREA_WORDS].off >= a[AREA_WORDS].len)))
		return false;
	return prng_chance(&n->sim->world->rng, r->barrier ? STALL_PERCENT : STALL_PERCENT_OTHER);
}

void reconnect_may_stall(struct node *n, const void *dst)
{
	struct world *w = n->sim->world;
	bool brief = prng_chance(&w->rng, 40);

	if (n != stall_visitor() || !stall_is_due(n, dst))
		return;
	w->reconnect->stalls++;
	reconnect_seen.stuck++;
	n->stuck_until =
		w->now + prng_between(&w->rng, 1, brief ? NSEC_PER_MS : 1500 * NSEC_PER_MS);
	sim_at(n->sim, n->stuck_until, EV_GO_ON, n->index, 0);
	stall_here(n);
}

/* A store gets stuck after half of its bytes are stored. */
int __real_place(void *dst, const void *src, size_t len);
int __wrap_place(void *dst, const void *src, size_t len);
int __wrap_place(void *dst, const void *src, size_t len)
{
	struct node *n = stall_visitor();
	size_t first = len > 8 ? len / 2 : 0;
	int err = 0;

	if (!n)
		return __real_place(dst, src, windows_tears() ? len / 2 : len);
	if (first)
		err = __real_place(dst, src, first);
	reconnect_may_stall(n, dst);
	return err ? err
		   : __real_place((char *)dst + first, (const char *)src + first, len - first);
}
