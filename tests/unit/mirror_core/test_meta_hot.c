/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot extents and bitmaps: the limits of the table, and rule W3 of doc/mirror-format.md in random
 * sequences.
 */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#define BLOCKS (COPY_SIZE / MIRROR_BLOCK)

static struct two_layers store;
static struct meta meta;

static int setup(void **state)
{
	copy_create(&store, 1);
	copy_load(&meta, &store);
	return 0;
}

static int teardown(void **state)
{
	meta_fini(&meta);
	two_layers_fini(&store);
	return 0;
}

static struct mirror_range blocks(uint64_t from, uint64_t n)
{
	return (struct mirror_range){from * MIRROR_BLOCK, n * MIRROR_BLOCK};
}

static void start(void)
{
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(3), copy_epoch(4), NULL), 0);
}

/* ---- the table ---- */

static void a_hot_extent_costs_no_write(void **state)
{
	uint32_t extents[] = {9, 10, 11};
	uint32_t before = store.persists;

	assert_int_equal(meta_hot_mark(&meta, extents, 3), 0);
	/* one persist call suffices for neighbouring slots */
	assert_int_equal(store.persists, before + 1);
	assert_int_equal(meta_hot_mark(&meta, extents, 3), 0);
	assert_int_equal(store.persists, before + 1);
	assert_true(meta_hot_is(&meta, 10));
	assert_false(meta_hot_is(&meta, 8));
}

static void a_full_table_changes_nothing(void **state)
{
	uint32_t many[9], list[32];

	for (uint32_t i = 0; i < 9; i++)
		many[i] = 2 * i;
	assert_int_equal(meta_hot_mark(&meta, many, 9), -ENOSPC);
	assert_int_equal(meta.hot_count, 0);
	assert_int_equal(meta_hot_mark(&meta, many, 8), 0);
	assert_int_equal(meta_hot_mark(&meta, many, 9), -ENOSPC);
	assert_int_equal(meta_hot_list(&meta, list, 32), 8);
	assert_int_equal(list[7], 14);
	assert_int_equal(meta_hot_list(&meta, list, 2), 8);
	assert_int_equal(meta_hot_cool(&meta, many + 3, 1), 0);
	assert_int_equal(meta_hot_mark(&meta, many + 8, 1), 0);
	assert_true(meta_hot_is(&meta, 16));
	assert_false(meta_hot_is(&meta, 6));
}

static bool is_even_half(void *arg, uint32_t extent)
{
	return extent % 4 == 0;
}

static void victims_are_those_not_marked_for_longest(void **state)
{
	uint32_t extents[] = {0, 1, 2, 3, 4, 5, 6, 7}, victims[8], again[] = {2, 6};

	assert_int_equal(meta_hot_mark(&meta, extents, 8), 0);
	/* The search for the first victim clears the second chance of every extent. */
	assert_int_equal(meta_hot_victims(&meta, victims, 1, NULL, NULL), 1);
	assert_int_equal(meta_hot_mark(&meta, again, 2), 0);
	assert_int_equal(meta_hot_victims(&meta, victims, 4, is_even_half, NULL), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_not_equal(victims[i] % 4, 0);
		assert_int_not_equal(victims[i], 2);
		assert_int_not_equal(victims[i], 6);
	}
	/* No victim is chosen twice, and there are at most as many victims as hot slots. */
	assert_int_equal(meta_hot_victims(&meta, victims, 8, NULL, NULL), 8);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(victims[i], victims[k]);
}

/* The slots of a direct mapping are filled by code that does not use the table. */
static void slots_in_reserve_are_filled_beside_the_table(void **state)
{
	uint32_t extents[] = {0, 1, 2, 3, 4, 5, 6}, list[8];
	uint16_t slots[4];

	assert_int_equal(meta_hot_reserve(&meta, slots, 2), 2);
	assert_int_equal(meta_hot_mark(&meta, extents, 7), -ENOSPC);
	assert_int_equal(meta_hot_mark(&meta, extents, 5), 0);
	assert_int_equal(meta_hot_fill(&meta, slots[0], 30), 0);
	assert_int_equal(meta_hot_fill(&meta, slots[1], 4), 0); /* the extent has a slot already */
	meta_fini(&meta);
	two_layers_reboot(&store);
	copy_load(&meta, &store); /* W2 */
	assert_int_equal(meta_hot_list(&meta, list, 8), 6);
	assert_int_equal(list[5], 30);
}

static void filled_slots_are_adopted(void **state)
{
	uint32_t extents[] = {4, 30}, list[8];
	uint16_t slots[8];

	assert_int_equal(meta_hot_mark(&meta, extents, 1), 0);
	assert_int_equal(meta_hot_reserve(&meta, slots, 9), 7);
	assert_int_equal(meta_hot_fill(&meta, slots[0], 30), 0);
	assert_int_equal(meta_hot_fill(&meta, slots[1], 4), 0);
	meta_hot_adopt(&meta, slots[0], 30);
	meta_hot_adopt(&meta, slots[1], 4);
	assert_int_equal(meta_hot_list(&meta, list, 8), 2);
	assert_int_equal(meta_hot_reserve(&meta, slots, 8), 1);
	meta_hot_adopt(&meta, slots[0], 9);
	meta_hot_note(&meta, 30);
	assert_int_equal(meta_hot_cool(&meta, extents, 2), 0);
	assert_int_equal(meta_hot_reserve(&meta, slots, 8), 2);
	assert_int_equal(meta_reload(&meta), 0);
	assert_int_equal(meta_hot_list(&meta, list, 8), 0);
}

static void an_extent_in_two_slots_is_one(void **state)
{
	uint32_t extent = 4;

	assert_int_equal(meta_hot_mark(&meta, &extent, 1), 0);
	memcpy(store.cache + META_HOT_AT + 80, store.cache + META_HOT_AT, 8);
	assert_int_equal(meta_reload(&meta), 0);
	assert_int_equal(meta.damage, 0);
	assert_int_equal(meta.hot_count, 1);
	assert_int_equal(meta_hot_retire(&meta), 0);
	assert_int_equal(meta_reload(&meta), 0);
	assert_int_equal(meta.hot_count, 0);
}

/* ---- bitmaps ---- */

static void bits_cover_what_is_touched_and_leave_what_is_whole(void **state)
{
	start();
	meta_bitmap_set(&meta, 0, (struct mirror_range){4095, 2});
	assert_int_equal(meta_bitmap_count(&meta, 0), 2);
	meta_bitmap_set(&meta, 0, (struct mirror_range){100, 0});
	meta_bitmap_set(&meta, 0, blocks(BLOCKS - 1, 1));
	meta_bitmap_set(&meta, 0, blocks(60, 200));
	assert_int_equal(meta_bitmap_count(&meta, 0), 203);
	/* removes only block 1, which is whole in this range */
	meta_bitmap_unset(&meta, 0, (struct mirror_range){1, 8191});
	assert_int_equal(meta_bitmap_count(&meta, 0), 202);
	meta_bitmap_unset(&meta, 0, (struct mirror_range){1, 4094});
	assert_int_equal(meta_bitmap_count(&meta, 0), 202);
	meta_bitmap_unset(&meta, 0, (struct mirror_range){0, COPY_SIZE});
	assert_int_equal(meta_bitmap_count(&meta, 0), 0);
	/* A call past the end of the file, or for a member without a bitmap, has no effect. */
	meta_bitmap_set(&meta, 0, blocks(BLOCKS, 5));
	meta_bitmap_set(&meta, 2, blocks(0, 5));
	meta_bitmap_set(&meta, COPY_SLOT, blocks(0, 5));
	assert_int_equal(meta_bitmap_count(&meta, 0) + meta_bitmap_count(&meta, 2), 0);
}

static void runs_are_found_in_order_and_cut_to_length(void **state)
{
	struct mirror_range run;

	start();
	meta_bitmap_set(&meta, 0, blocks(62, 4));
	meta_bitmap_set(&meta, 0, blocks(BLOCKS - 2, 2));
	assert_true(meta_bitmap_next(&meta, 0, 0, UINT64_MAX, &run));
	assert_int_equal(run.offset, 62 * MIRROR_BLOCK);
	assert_int_equal(run.len, 4 * MIRROR_BLOCK);
	assert_true(meta_bitmap_next(&meta, 0, 63 * MIRROR_BLOCK + 5, MIRROR_BLOCK * 2, &run));
	assert_int_equal(run.offset, 63 * MIRROR_BLOCK);
	assert_int_equal(run.len, 2 * MIRROR_BLOCK);
	assert_true(meta_bitmap_next(&meta, 0, 66 * MIRROR_BLOCK, UINT64_MAX, &run));
	assert_int_equal(run.offset + run.len, COPY_SIZE);
	assert_false(meta_bitmap_next(&meta, 0, COPY_SIZE, UINT64_MAX, &run));
	assert_false(meta_bitmap_next(&meta, 2, 0, UINT64_MAX, &run));
}

static void a_bitmap_of_another_epoch_is_unusable(void **state)
{
	static const uint64_t bits[COPY_SIZE / MIRROR_BLOCK / 64] = {[9] = 0x101};

	start();
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(3)));
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(4)));
	assert_false(meta_bitmap_is_usable(&meta, 0, copy_epoch(2)));
	assert_false(meta_bitmap_is_usable(&meta, 0, copy_epoch(5)));
	assert_false(meta_bitmap_is_usable(&meta, 0, (struct mirror_epoch){3, 1}));
	assert_false(meta_bitmap_is_usable(&meta, 2, copy_epoch(3)));
	assert_false(meta_bitmap_is_usable(&meta, COPY_SLOT, copy_epoch(3)));
	assert_int_equal(meta_bitmap_start(&meta, COPY_SLOT, copy_epoch(3), copy_epoch(4), NULL),
			 -EINVAL);
	/* A bitmap continues if its base epoch is the same, and is cleared otherwise. */
	meta_bitmap_set(&meta, 0, blocks(1, 1));
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(3), copy_epoch(5), NULL), 0);
	assert_int_equal(meta_bitmap_count(&meta, 0), 1);
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(5)));
	assert_false(meta_bitmap_is_usable(&meta, 0, copy_epoch(4)));
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(6), copy_epoch(6), NULL), 0);
	assert_int_equal(meta_bitmap_count(&meta, 0), 0);
	/* A start with bits adds them to a bitmap of the same epoch, and replaces a bitmap of
	 * another epoch. */
	meta_bitmap_set(&meta, 0, blocks(1, 1));
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(6), copy_epoch(7), bits), 0);
	assert_int_equal(meta_bitmap_count(&meta, 0), 3);
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(4), copy_epoch(7), bits), 0);
	assert_int_equal(meta_bitmap_count(&meta, 0), 2);
	assert_int_equal(meta_bitmap_drop(&meta, 0), 0);
	assert_false(meta_bitmap_is_usable(&meta, 0, copy_epoch(5)));
}

static void unset_leaves_the_rest_of_a_word(void **state)
{
	start();
	meta_bitmap_set(&meta, 0, blocks(32, 64));
	meta_bitmap_unset(&meta, 0, blocks(32, 48));
	assert_int_equal(meta_bitmap_count(&meta, 0), 16);
}

/* ---- rule W3: bits are durable before a hot slot is reused ---- */

/* Blocks that the absent member lacks: they were flushed, and were not sent afterwards. */
static bool lacks[BLOCKS];

static void flush_randomly(uint64_t *random)
{
	uint64_t at = test_random(random) % BLOCKS, n = 1 + test_random(random) % 8;
	uint32_t extents[2], victims[8];

	n = at + n > BLOCKS ? BLOCKS - at : n;
	extents[0] = meta_extent_of(at * MIRROR_BLOCK);
	extents[1] = meta_extent_of((at + n) * MIRROR_BLOCK - 1);
	if (meta_hot_mark(&meta, extents, 2) == -ENOSPC) {
		uint32_t found = meta_hot_victims(
			&meta, victims, (uint32_t)(2 + test_random(random) % 4), NULL, NULL);

		if (meta_hot_cool(&meta, victims, found) || meta_hot_mark(&meta, extents, 2))
			return;
	}
	if (meta.broken)
		return;
	for (uint64_t i = at; i < at + n; i++)
		lacks[i] = true;
	meta_bitmap_set_all(&meta, blocks(at, n));
}

/* Send a run of blocks. A block that is flushed meanwhile keeps its bit. */
static void send_randomly(uint64_t *random)
{
	struct mirror_range run;
	uint64_t first, end;

	if (!meta_bitmap_next(&meta, 0, test_random(random) % COPY_SIZE, 4 * MIRROR_BLOCK, &run))
		return;
	first = run.offset / MIRROR_BLOCK;
	end = first + run.len / MIRROR_BLOCK;
	for (uint64_t i = first; i < end; i++)
		lacks[i] = false;
	if (test_random(random) % 2)
		flush_randomly(random);
	for (uint64_t i = first; i < end; i++)
		if (!lacks[i])
			meta_bitmap_unset(&meta, 0, blocks(i, 1));
}

static void expect_all_covered(uint64_t seed)
{
	for (uint64_t i = 0; i < BLOCKS; i++) {
		struct mirror_range run;

		if (lacks[i] && (!meta_bitmap_next(&meta, 0, i * MIRROR_BLOCK, 0, &run) ||
				 run.offset != i * MIRROR_BLOCK))
			fail_msg("seed %llu: block %llu is missed", (unsigned long long)seed,
				 (unsigned long long)i);
	}
}

/*
 * Flushes, cooling, sent blocks and power cuts at any persist call occur in random order. After
 * each of them the stored bits and the hot extents must cover what the member lacks.
 */
static void bits_and_hot_extents_always_cover_the_difference(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++) {
		uint64_t random = seed * 7919;

		teardown(NULL);
		copy_create(&store, seed);
		copy_load(&meta, &store);
		start();
		memset(lacks, 0, sizeof(lacks));
		store.persists = 0;
		store.cut_at = (uint32_t)(1 + test_random(&random) % 60);
		for (unsigned i = 0; i < 400 && !meta.broken; i++) {
			if (test_random(&random) % 4)
				flush_randomly(&random);
			else
				send_randomly(&random);
			if (test_random(&random) % 16 == 0)
				two_layers_write_back(&store, 64);
		}
		meta_fini(&meta);
		two_layers_reboot(&store);
		copy_load(&meta, &store);
		assert_int_equal(meta.damage, 0);
		assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(3)));
		assert_int_equal(meta_hot_fold(&meta), 0);
		expect_all_covered(seed);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_hot_extent_costs_no_write),
		TEST(a_full_table_changes_nothing),
		TEST(victims_are_those_not_marked_for_longest),
		TEST(slots_in_reserve_are_filled_beside_the_table),
		TEST(filled_slots_are_adopted),
		TEST(an_extent_in_two_slots_is_one),
		TEST(bits_cover_what_is_touched_and_leave_what_is_whole),
		TEST(runs_are_found_in_order_and_cut_to_length),
		TEST(a_bitmap_of_another_epoch_is_unusable),
		TEST(unset_leaves_the_rest_of_a_word),
		TEST(bits_and_hot_extents_always_cover_the_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
