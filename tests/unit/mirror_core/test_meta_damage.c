/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule W8 of doc/mirror-format.md: damage is noticed or does not matter, and an older state never
 * counts as the newest. Also tests the repair.
 */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <string.h>

#include "mirror/core/member.h"

static struct two_layers base, work;
static struct meta meta;
static struct member member;
static struct mirror_uuid boot;

/* Make a copy with a history: every pair of slots was written several times. */
static int setup(void **state)
{
	uint32_t extents[] = {1, 2, 30};
	struct meta_history history = {.count = 2};
	struct member_verdict v;

	boot = copy_uuid(0x70);
	copy_create(&base, 1);
	two_layers_init(&work, base.len, 2);
	copy_load(&meta, &base);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
	for (unsigned i = 1; i <= 3; i++) {
		member_promise(&member, copy_epoch(i), &v);
		assert_int_equal(v.answer, MEMBER_YES);
		history.ended[0] = (struct mirror_ended){copy_epoch(i), i, 0};
		assert_int_equal(meta_set_history(&meta, &history), 0);
		assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(i), copy_epoch(i), NULL),
				 0);
		member_set_uncertain(&member, &v);
		member_resync_begin(&member, copy_epoch(i), 0xa0, &v);
		assert_int_equal(v.answer, MEMBER_YES);
	}
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(3), copy_epoch(3), NULL), 0);
	assert_int_equal(meta_hot_mark(&meta, extents, 3), 0);
	member_fini(&member);
	meta_fini(&meta);
	return 0;
}

static int teardown(void **state)
{
	two_layers_fini(&base);
	two_layers_fini(&work);
	return 0;
}

/* Returns true if the state is the one that setup() made. */
static bool is_the_newest(const struct meta *m)
{
	return m->promise.epoch.number == 3 && m->history.ended[0].seq == 3 &&
	       m->members.members[0].has_bitmap && m->members.members[0].base.number == 3 &&
	       m->super.flags & META_SYNCING && m->super.source_epoch.number == 3 &&
	       m->hot_count == 3 && meta_hot_is(m, 30);
}

/* Damage this byte. Returns true if the damage was noticed. */
static bool try_damage(uint64_t at, uint8_t flip)
{
	struct meta_store store = two_layers_store(&work);
	bool seen;

	work.cache[at] ^= flip;
	seen = meta_load(&meta, &store, NULL) || meta.damage;
	if (!seen && !is_the_newest(&meta))
		fail_msg("byte %#llx: an older state is taken for the newest",
			 (unsigned long long)at);
	meta_fini(&meta);
	work.cache[at] ^= flip;
	return seen;
}

static void each_damaged_byte_is_seen_or_does_not_matter(void **state)
{
	uint64_t random = 99, seen = 0;

	two_layers_copy(&work, &base);
	for (uint64_t at = 0; at < META_HOT_AT + 256; at++)
		seen += try_damage(at, (uint8_t)(1 << test_random(&random) % 8));
	/* Damage is noticed in the newest slot of each pair, and in the used hot slots. */
	assert_true(seen > 4096 + 4096 + 2048 + 6144);
}

static void each_bit_of_a_hot_slot_matters(void **state)
{
	two_layers_copy(&work, &base);
	for (uint64_t bit = 0; bit < 3 * 64; bit++)
		assert_true(try_damage(META_HOT_AT + bit / 8, (uint8_t)(1 << bit % 8)));
}

/* A block has become zeros, or has the content of another block. */
static void a_slot_that_is_lost_is_seen(void **state)
{
	static const struct {
		uint64_t at, len;
	} newest[] = {{0x0000, 4096}, {0x1000, 4096}, {0x2000, 4096}, {0x3000, 4096},
		      {0x4000, 2048}, {0x4800, 2048}, {0x5000, 6144}, {0x6800, 6144}};
	struct meta_store store = two_layers_store(&work);
	unsigned seen = 0;

	for (unsigned i = 0; i < ARRAY_LEN(newest); i++) {
		bool is_seen;

		two_layers_copy(&work, &base);
		memset(work.cache + newest[i].at, 0, newest[i].len);
		is_seen = meta_load(&meta, &store, NULL) || meta.damage;
		assert_true(is_seen || is_the_newest(&meta));
		seen += is_seen;
		meta_fini(&meta);
	}
	assert_int_equal(seen, 4); /* the lost block is noticed for the newer slot of each pair */
}

static void lost_members_take_no_history_with_them(void **state)
{
	two_layers_copy(&work, &base);
	memset(work.cache + META_MEMBERS_AT, 0, 2 * 6144);
	copy_load(&meta, &work);
	assert_true(meta.damage & 1u << META_PAIR_MEMBERS);
	assert_int_equal(meta.members.members[0].id, 0);
	assert_int_equal(meta.history.count, 2);
	assert_int_equal(meta.history.ended[0].seq, 3);
	meta_fini(&meta);
}

static void damage(uint64_t at)
{
	two_layers_copy(&work, &base);
	work.cache[at] ^= 1;
	copy_load(&meta, &work);
	assert_int_not_equal(meta.damage, 0);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
}

static void load_again(void)
{
	member_fini(&member);
	meta_fini(&meta);
	copy_load(&meta, &work);
	assert_int_equal(meta.damage, 0);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
}

/*
 * Returns the offset of the newest promise: the third write went to the second slot, the fourth to
 * the first.
 */
static uint64_t newest_promise(void)
{
	copy_load(&meta, &base);
	uint64_t at = META_PROMISE_AT + 4096u * meta.places[META_PAIR_PROMISE].slot + 40;

	meta_fini(&meta);
	return at;
}

static void a_damaged_copy_stays_unknown_until_it_was_compared(void **state)
{
	struct member_report report;
	struct member_verdict v;

	damage(META_HOT_AT);
	load_again(); /* the metadata are repaired and marked */
	/* A bitmap counts only together with the hot extents, and one of these is lost. */
	assert_false(meta.members.members[0].has_bitmap);
	assert_true(meta.super.flags & META_UNKNOWN);
	assert_int_equal(member_report(&member, &report), 0);
	assert_true(report.is_uncertain);
	assert_int_equal(report.copy, MIRROR_COPY_SYNCING);
	member_resync_end(&member, copy_epoch(3), &v);
	assert_int_equal(v.answer, MEMBER_YES);
	load_again();
	assert_false(meta.super.flags & META_UNKNOWN);
	assert_int_equal(member_report(&member, &report), 0);
	assert_false(report.is_uncertain);
	member_fini(&member);
	meta_fini(&meta);
}

/*
 * The bytes after the last hot slot are the first record of the ring, which a repair of hot slots
 * must not change.
 */
static void a_repair_of_hot_slots_ends_with_the_last_one(void **state)
{
	uint8_t behind[8];

	memset(behind, 0xff, sizeof(behind));
	two_layers_copy(&work, &base);
	work.cache[META_HOT_AT] ^= 1;
	memcpy(work.cache + META_RING_AT, behind, sizeof(behind));
	copy_load(&meta, &work);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
	load_again(); /* the metadata are repaired and marked */
	assert_memory_equal(work.cache + META_RING_AT, behind, sizeof(behind));
	member_fini(&member);
	meta_fini(&meta);
}

static void a_lost_promise_is_made_again_from_the_register(void **state)
{
	struct mirror_record rec;
	struct member_verdict v;

	damage(newest_promise());
	load_again();
	assert_true(meta.promise.is_lost);
	member_promise(&member, copy_epoch(9), &v);
	assert_int_equal(v.answer, MEMBER_NO);
	assert_int_equal(v.reason, MEMBER_IS_UNKNOWN);
	copy_record(&rec);
	rec.view.epoch = copy_epoch(8);
	rec.view.insync = 5; /* this member is not in S */
	member_on_record(&member, &rec, 50, &v);
	assert_int_equal(v.answer, MEMBER_YES);
	assert_int_equal(meta.promise.epoch.number, 8);
	member_promise(&member, copy_epoch(7), &v);
	assert_int_equal(v.reason, MEMBER_EPOCH_OLD);
	member_promise(&member, copy_epoch(9), &v);
	assert_int_equal(v.answer, MEMBER_YES);
	load_again();
	assert_false(meta.promise.is_lost);
	assert_int_equal(meta.promise.epoch.number, 9);
	member_fini(&member);
	meta_fini(&meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_damaged_byte_is_seen_or_does_not_matter),
		cmocka_unit_test(each_bit_of_a_hot_slot_matters),
		cmocka_unit_test(a_slot_that_is_lost_is_seen),
		cmocka_unit_test(lost_members_take_no_history_with_them),
		cmocka_unit_test(a_damaged_copy_stays_unknown_until_it_was_compared),
		cmocka_unit_test(a_repair_of_hot_slots_ends_with_the_last_one),
		cmocka_unit_test(a_lost_promise_is_made_again_from_the_register),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
