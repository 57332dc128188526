/* SPDX-License-Identifier: BSD-3-Clause */
/* Extents of a direct mapping: an extent becomes writable only with a slot, and no slot is lost. */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "mirror/core/extents.h"

#define COUNT     12u
#define HOT_SLOTS 8u
#define STEPS     200000u

static struct extents x;

static int setup(void **state)
{
	return extents_init(&x, COUNT, HOT_SLOTS);
}

static int teardown(void **state)
{
	extents_fini(&x);
	return 0;
}

static void give_slots(uint16_t first, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint16_t slot = (uint16_t)(first + i);

		extents_add_slots(&x, &slot, 1);
	}
}

static void open_extent(uint32_t extent)
{
	uint16_t slot;

	assert_int_equal(extents_begin(&x, extent, &slot), EXTENTS_FILL);
	extents_fill_ended(&x, extent, slot, 0);
	extents_opened(&x, extent, true);
}

static void a_store_needs_a_slot(void **state)
{
	struct extents_filled filled[EXTENTS_RESERVE_MAX];
	uint16_t slot;

	assert_int_equal(extents_begin(&x, 3, &slot), EXTENTS_WAIT);
	assert_true(extents_is_low(&x));
	assert_int_equal(extents_lacks(&x), 1);
	give_slots(5, 1);
	assert_int_equal(extents_lacks(&x), 0);
	assert_int_equal(extents_begin(&x, 3, &slot), EXTENTS_FILL);
	assert_int_equal(slot, 5);
	/* another thread has begun this extent */
	assert_int_equal(extents_begin(&x, 3, &slot), EXTENTS_WAIT);
	assert_false(extents_may_cool(&x, 3));
	extents_fill_ended(&x, 3, 5, 0);
	extents_opened(&x, 3, true);
	assert_int_equal(extents_begin(&x, 3, &slot), EXTENTS_WRITABLE);
	assert_int_equal(extents_take_filled(&x, filled), 1);
	assert_int_equal(filled[0].extent, 3);
	assert_int_equal(filled[0].slot, 5);
	assert_int_equal(extents_take_filled(&x, filled), 0);
}

static void a_store_opens_again_what_is_being_mirrored(void **state)
{
	uint16_t slot;

	give_slots(0, 1);
	open_extent(2);
	assert_true(extents_mirror(&x, 2));
	assert_int_equal(extents_begin(&x, 2, &slot), EXTENTS_PERMIT);
	extents_opened(&x, 2, true);
	assert_false(extents_cool(&x, 2));
	assert_true(extents_mirror(&x, 2));
	assert_true(extents_cool(&x, 2));
	assert_int_equal(extents_begin(&x, 2, &slot), EXTENTS_WAIT);
	extents_cooled(&x, 2);
	/* the caller has to wait for a slot */
	assert_int_equal(extents_begin(&x, 2, &slot), EXTENTS_WAIT);
}

static void what_is_pinned_stays_open(void **state)
{
	give_slots(0, 1);
	assert_true(extents_pin(&x, 1, 2));
	assert_true(extents_pin(&x, 1, 2));
	assert_true(extents_pin(&x, 2, 2));
	assert_false(extents_pin(&x, 3, 2));
	open_extent(1);
	assert_false(extents_may_cool(&x, 1));
	assert_false(extents_mirror(&x, 1));
	extents_unpin(&x, 1);
	extents_unpin(&x, 1);
	assert_true(extents_mirror(&x, 1));
	assert_true(extents_pin(&x, 3, 2));
	assert_false(extents_pin(&x, 4, 2));
}

/* If slots cannot be made durable, stores wait until they need no slots any more. */
static void a_slot_that_fails_stops_all(void **state)
{
	uint16_t slot;

	give_slots(0, 1);
	assert_int_equal(extents_begin(&x, 0, &slot), EXTENTS_FILL);
	extents_fill_ended(&x, 0, slot, -EIO);
	assert_int_equal(x.error, -EIO);
	give_slots(1, 1);
	assert_int_equal(extents_begin(&x, 0, &slot), EXTENTS_WAIT);
	x.is_untracked = true;
	assert_int_equal(extents_begin(&x, 0, &slot), EXTENTS_PERMIT);
	extents_opened(&x, 0, true);
	assert_int_equal(extents_begin(&x, 0, &slot), EXTENTS_WRITABLE);
}

/* ---- random sequences of events ---- */

struct walk {
	bool has_slot[HOT_SLOTS]; /* free slots in the table */
	int slot_of[COUNT];       /* -1: no slot */
	bool is_writable[COUNT];  /* true: the extent's memory is writable */
	struct extents_filled fill[COUNT];
	uint32_t fills;
};

static void walk_store(struct walk *w, uint32_t extent)
{
	uint16_t slot;

	switch (extents_begin(&x, extent, &slot)) {
	case EXTENTS_WRITABLE:
		assert_true(w->is_writable[extent]);
		break;
	case EXTENTS_PERMIT:
		assert_true(w->slot_of[extent] >= 0);
		extents_opened(&x, extent, true);
		w->is_writable[extent] = true;
		break;
	case EXTENTS_FILL:
		assert_int_equal(w->slot_of[extent], -1);
		w->fill[w->fills++] = (struct extents_filled){extent, slot};
		break;
	case EXTENTS_WAIT:
		break;
	}
}

static void walk_end_fill(struct walk *w)
{
	struct extents_filled f;

	if (!w->fills)
		return;
	f = w->fill[--w->fills];
	w->slot_of[f.extent] = f.slot;
	extents_fill_ended(&x, f.extent, f.slot, 0);
	extents_opened(&x, f.extent, true);
	w->is_writable[f.extent] = true;
}

static void walk_refill(struct walk *w)
{
	struct extents_filled filled[EXTENTS_RESERVE_MAX];
	uint32_t wanted = extents_lacks(&x), n = extents_take_filled(&x, filled);

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(w->slot_of[filled[i].extent], filled[i].slot);
	for (uint16_t slot = 0; slot < HOT_SLOTS && wanted; slot++) {
		if (!w->has_slot[slot])
			continue;
		w->has_slot[slot] = false;
		extents_add_slots(&x, &slot, 1);
		wanted--;
	}
}

static void walk_cool(struct walk *w, uint32_t extent, unsigned luck)
{
	struct extents_filled filled[EXTENTS_RESERVE_MAX];

	if (!extents_may_cool(&x, extent))
		return;
	if (extents_mirror(&x, extent))
		w->is_writable[extent] = false;
	if (luck % 2 || w->slot_of[extent] < 0)
		return; /* the flush is still running */
	if (!extents_cool(&x, extent)) {
		assert_true(w->is_writable[extent]);
		return;
	}
	assert_false(w->is_writable[extent]);
	extents_take_filled(&x, filled);
	w->has_slot[w->slot_of[extent]] = true;
	w->slot_of[extent] = -1;
	extents_cooled(&x, extent);
}

static void walk_check(const struct walk *w)
{
	uint32_t free = x.slot_count, used = w->fills;

	for (unsigned i = 0; i < HOT_SLOTS; i++)
		free += w->has_slot[i];
	for (unsigned e = 0; e < COUNT; e++) {
		used += w->slot_of[e] >= 0;
		if (w->is_writable[e])
			assert_true(w->slot_of[e] >= 0);
		assert_int_equal(x.states[e] == EXTENTS_OPEN, w->is_writable[e]);
	}
	assert_int_equal(free + used, HOT_SLOTS);
}

static void no_history_makes_memory_writable_without_a_slot(void **state)
{
	struct walk w = {.fills = 0};
	uint64_t seed = 88172645463325252ull;

	memset(w.has_slot, 1, sizeof(w.has_slot));
	memset(w.slot_of, -1, sizeof(w.slot_of));
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t extent;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		extent = (uint32_t)(seed >> 32) % COUNT;
		switch (seed % 5) {
		case 0:
		case 1:
			walk_store(&w, extent);
			break;
		case 2:
			walk_end_fill(&w);
			break;
		case 3:
			walk_refill(&w);
			break;
		default:
			walk_cool(&w, extent, (unsigned)(seed >> 20));
		}
		walk_check(&w);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_store_needs_a_slot),
		TEST(a_store_opens_again_what_is_being_mirrored),
		TEST(what_is_pinned_stays_open),
		TEST(a_slot_that_fails_stops_all),
		TEST(no_history_makes_memory_writable_without_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
