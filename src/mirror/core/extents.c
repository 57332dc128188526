/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/extents.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXTENTS_RESERVE_PART 8 /* the reserve has at most 1/8 of the table's slots */

int extents_init(struct extents *x, uint32_t count, uint32_t hot_slots)
{
	*x = (struct extents){.count = count, .reserve = hot_slots / EXTENTS_RESERVE_PART};
	if (!x->reserve)
		x->reserve = 1;
	if (x->reserve > EXTENTS_RESERVE_MAX)
		x->reserve = EXTENTS_RESERVE_MAX;
	x->states = calloc(count, sizeof(*x->states));
	x->pins = calloc(count, sizeof(*x->pins));
	if (x->states && x->pins)
		return 0;
	extents_fini(x);
	return -ENOMEM;
}

void extents_fini(struct extents *x)
{
	free(x->states);
	free(x->pins);
	x->states = x->pins = NULL;
}

/* ---- for stores ---- */

static enum extents_step extents_begin_closed(struct extents *x, uint32_t extent, uint16_t *slot)
{
	if (!x->is_untracked && (x->error || !x->slot_count))
		return EXTENTS_WAIT;
	x->states[extent] = EXTENTS_OPENING;
	x->opening++;
	if (x->is_untracked)
		return EXTENTS_PERMIT;
	*slot = x->slots[--x->slot_count];
	return EXTENTS_FILL;
}

enum extents_step extents_begin(struct extents *x, uint32_t extent, uint16_t *slot)
{
	switch ((enum extents_state)x->states[extent]) {
	case EXTENTS_CLOSED:
		return extents_begin_closed(x, extent, slot);
	case EXTENTS_OPEN:
		return EXTENTS_WRITABLE;
	case EXTENTS_MIRRORING:
		x->states[extent] = EXTENTS_OPENING;
		x->opening++;
		return EXTENTS_PERMIT;
	case EXTENTS_OPENING:
	case EXTENTS_COOLING:
		break;
	}
	return EXTENTS_WAIT;
}

void extents_fill_ended(struct extents *x, uint32_t extent, uint16_t slot, int error)
{
	if (!error) {
		x->filled[x->filled_count++] = (struct extents_filled){extent, slot};
		return;
	}
	x->error = error;
	extents_opened(x, extent, false);
}

/* If an extent has a slot but cannot be opened, the extent keeps the slot until it is cooled. */
void extents_opened(struct extents *x, uint32_t extent, bool ok)
{
	assert(x->states[extent] == EXTENTS_OPENING);
	x->states[extent] = ok ? EXTENTS_OPEN : EXTENTS_CLOSED;
	x->opening--;
}

bool extents_is_low(const struct extents *x)
{
	return x->error || x->slot_count <= x->reserve / 2;
}

uint32_t extents_take_filled(struct extents *x, struct extents_filled *filled)
{
	uint32_t n = x->filled_count;

	memcpy(filled, x->filled, n * sizeof(*filled));
	x->filled_count = 0;
	return n;
}

/* Extents that are being opened count as filled, because each of them will be filled. */
uint32_t extents_lacks(const struct extents *x)
{
	uint32_t has = x->slot_count + x->opening + x->filled_count;

	return has < x->reserve ? x->reserve - has : 0;
}

void extents_add_slots(struct extents *x, const uint16_t *slots, uint32_t n)
{
	memcpy(x->slots + x->slot_count, slots, n * sizeof(*slots));
	x->slot_count += n;
}

/* ---- for the thread that makes extents cold ---- */

static bool extents_is_pinned(const struct extents *x, uint32_t extent)
{
	return __atomic_load_n(&x->pins[extent], __ATOMIC_ACQUIRE);
}

bool extents_may_cool(const struct extents *x, uint32_t extent)
{
	enum extents_state state = (enum extents_state)x->states[extent];

	return state != EXTENTS_OPENING && state != EXTENTS_COOLING &&
	       !extents_is_pinned(x, extent);
}

bool extents_mirror(struct extents *x, uint32_t extent)
{
	if (x->states[extent] != EXTENTS_OPEN || extents_is_pinned(x, extent))
		return false;
	x->states[extent] = EXTENTS_MIRRORING;
	return true;
}

bool extents_cool(struct extents *x, uint32_t extent)
{
	if (x->states[extent] != EXTENTS_MIRRORING && x->states[extent] != EXTENTS_CLOSED)
		return false;
	x->states[extent] = EXTENTS_COOLING;
	return true;
}

void extents_cooled(struct extents *x, uint32_t extent)
{
	assert(x->states[extent] == EXTENTS_COOLING);
	x->states[extent] = EXTENTS_CLOSED;
}

/* ---- any thread ---- */

bool extents_pin(struct extents *x, uint32_t extent, uint32_t most)
{
	if (__atomic_load_n(&x->pins[extent], __ATOMIC_RELAXED))
		return true;
	if (__atomic_add_fetch(&x->pinned, 1, __ATOMIC_RELAXED) > most) {
		__atomic_sub_fetch(&x->pinned, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (__atomic_exchange_n(&x->pins[extent], 1, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(&x->pinned, 1, __ATOMIC_RELAXED);
	return true;
}

void extents_unpin(struct extents *x, uint32_t extent)
{
	if (__atomic_load_n(&x->pins[extent], __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&x->pins[extent], 0, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(&x->pinned, 1, __ATOMIC_RELAXED);
}
