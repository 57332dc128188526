/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of writes (W1 to W9) under power cuts: at every persist call of every step, with any
 * mixture of written-back words on the medium. What was answered must be there afterwards, and what
 * was not may be there or not; nothing is ever damaged. Then the same with a medium that lies about
 * one region, to see that each rule's check would see it broken.
 */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <string.h>

#include "mirror/core/member.h"

#define CUTS_A_CALL 25
#define EPOCH       7

static struct two_layers base, work;
static struct meta meta;
static struct member member;
static struct mirror_uuid boot;

/* What a step has been promised, as its caller knows it. */
struct step {
	const char *name;
	void (*before)(void); /* gets to the state in which it begins */
	int (*run)(void);     /* 0: it was answered */
	/* Does what was loaded keep the rule? done: it was answered; else it began. */
	bool (*holds)(bool done);
	uint64_t region, region_end; /* a medium that lies here must be caught; 0: none */
};

static struct member_verdict verdict;

static int answered(void)
{
	return verdict.answer == MEMBER_YES ? 0 : -1;
}

/* ---- W1: the promise is durable before the answer ---- */

static void nothing_before(void)
{
}

static int run_promise(void)
{
	member_promise(&member, copy_epoch(EPOCH), &verdict);
	return answered();
}

static bool promise_holds(bool done)
{
	uint64_t number = meta.promise.epoch.number;

	return number == EPOCH || (!done && number == 0);
}

static void before_second_promise(void)
{
	run_promise();
}

static int run_second_promise(void)
{
	member_promise(&member, copy_epoch(EPOCH + 1), &verdict);
	return answered();
}

static bool second_promise_holds(bool done)
{
	uint64_t number = meta.promise.epoch.number;

	return number == EPOCH + 1 || (!done && number == EPOCH);
}

/* ---- W2: hot slots are durable before the first store ---- */

static const uint32_t hot[] = {3, 30, 3, 7, 0};

static int run_mark(void)
{
	return meta_hot_mark(&meta, hot, ARRAY_LEN(hot));
}

static bool mark_holds(bool done)
{
	for (unsigned i = 0; done && i < ARRAY_LEN(hot); i++)
		if (!meta_hot_is(&meta, hot[i]))
			return false;
	return meta.hot_count <= 4;
}

/* ---- W3: bits are durable before their slot is used again ---- */

static const struct mirror_range changed = {3ull * MIRROR_EXTENT + 5000, 100000};

static void before_cool(void)
{
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(EPOCH), copy_epoch(EPOCH)), 0);
	assert_int_equal(run_mark(), 0);
	meta_bitmap_set_all(&meta, changed);
}

/* Its slot is given to another extent. */
static int run_cool(void)
{
	uint32_t cold = 3, others[] = {11, 12, 13, 14, 15};
	int rc = meta_hot_cool(&meta, &cold, 1);

	return rc ? rc : meta_hot_mark(&meta, others, ARRAY_LEN(others));
}

static bool cool_holds(bool done)
{
	uint64_t at = changed.offset;
	struct mirror_range run;

	assert_int_equal(meta_hot_fold(&meta), 0);
	while (at < changed.offset + changed.len) {
		if (!meta_bitmap_next(&meta, 0, at, MIRROR_BLOCK, &run) ||
		    run.offset / MIRROR_BLOCK != at / MIRROR_BLOCK)
			return false;
		at = run.offset + MIRROR_BLOCK;
	}
	return !done || (meta_hot_is(&meta, 15) && meta_hot_is(&meta, 11));
}

static int run_retire_hot(void)
{
	return meta_hot_retire(&meta);
}

static bool retire_hot_holds(bool done)
{
	return (!done || !meta.hot_count) && cool_holds(false);
}

/* ---- W4, W5: `syncing` from before the first byte to behind the last ---- */

static void before_resync(void)
{
	assert_int_equal(run_promise(), 0);
	assert_int_equal(run_mark(), 0);
}

static int run_resync_begin(void)
{
	member_resync_begin(&member, copy_epoch(EPOCH), 0xa0, &verdict);
	return answered();
}

static bool resync_begin_holds(bool done)
{
	bool is = meta.super.flags & META_SYNCING;

	if (is && (meta.super.source_id != 0xa0 || meta.super.source_epoch.number != EPOCH))
		return false;
	return is || !done;
}

static void before_resync_end(void)
{
	before_resync();
	assert_int_equal(run_resync_begin(), 0);
}

static int run_resync_end(void)
{
	member_resync_end(&member, copy_epoch(EPOCH), &verdict);
	return answered();
}

/* As long as it is not usable, its records and its target's mark stay. */
static bool resync_end_holds(bool done)
{
	if (meta.super.flags & META_SYNCING)
		return !done && meta.hot_count == 4 && meta.super.source_id == 0xa0 &&
		       meta.super.epoch.number == 0;
	return meta.super.epoch.number == EPOCH && meta.super.retired_below == EPOCH &&
	       (!done || !meta.hot_count);
}

/* The source's side of W5. */
static void before_clear(void)
{
	before_cool();
	assert_int_equal(meta_hot_fold(&meta), 0);
}

static int run_clear(void)
{
	return meta_bitmap_clear(&meta, 0, copy_epoch(EPOCH + 1));
}

/* Nothing is taken for clear under the former base before it is clear everywhere: bits of a
 * cleared bitmap are those of a member that has everything. */
static bool clear_holds(bool done)
{
	if (done)
		return meta_bitmap_is_usable(&meta, 0, copy_epoch(EPOCH + 1)) &&
		       !meta_bitmap_count(&meta, 0);
	return meta_bitmap_is_usable(&meta, 0, copy_epoch(EPOCH)) ||
	       (meta_bitmap_is_usable(&meta, 0, copy_epoch(EPOCH + 1)) &&
		!meta_bitmap_count(&meta, 0));
}

/* A bitmap of another time is never taken for one of this. */
static void before_start(void)
{
	before_cool();
	assert_int_equal(meta_bitmap_persist(&meta, 0), 0);
	assert_int_equal(meta_bitmap_drop(&meta, 0), 0);
}

static int run_start(void)
{
	return meta_bitmap_start(&meta, 0, copy_epoch(EPOCH + 2), copy_epoch(EPOCH + 3));
}

static bool start_holds(bool done)
{
	bool is = meta_bitmap_is_usable(&meta, 0, copy_epoch(EPOCH + 2));

	return is ? !meta_bitmap_count(&meta, 0) : !done && !meta.members.members[0].has_bitmap;
}

/* ---- W7: `clean` is gone before map returns ---- */

static int run_hold(void)
{
	struct meta_holder holder = {4711, 99, boot};

	member_hold(&member, &holder, &verdict);
	return answered();
}

static bool hold_holds(bool done)
{
	bool is_clean = meta.super.flags & META_CLEAN;

	return done ? !is_clean && meta.super.holder.pid == 4711
		    : is_clean == !meta.super.holder.pid;
}

static void before_release(void)
{
	assert_int_equal(run_hold(), 0);
	assert_int_equal(run_mark(), 0);
	assert_int_equal(meta_hot_retire(&meta), 0);
}

static int run_release(void)
{
	member_release(&member, true, &verdict);
	return answered();
}

static bool release_holds(bool done)
{
	bool is_clean = meta.super.flags & META_CLEAN;

	return is_clean ? !meta.hot_count && !meta.super.holder.pid : !done;
}

/* A lane: from the first flush on, the copy is not clean and says whose flushes it has. */
static int run_lane(void)
{
	struct member_hello hello = {
		.uuid = copy_uuid(0x10), .epoch = copy_epoch(EPOCH), .kind = MEMBER_LANE};

	member_grant(&member, &hello, &verdict);
	return answered();
}

static void before_lane(void)
{
	assert_int_equal(meta_bitmap_start(&meta, 2, copy_epoch(1), copy_epoch(1)), 0);
	assert_int_equal(run_promise(), 0);
}

static bool lane_holds(bool done)
{
	bool has = meta.super.epoch.number == EPOCH;

	if (has && (meta.super.flags & META_CLEAN || meta.members.members[2].has_bitmap ||
		    !meta.super.used_boot.bytes[0]))
		return false;
	return has || !done;
}

/* ---- W9: ranges are durable at the target before its first byte ---- */

static int run_ranges(void)
{
	struct mirror_range ranges[] = {{100, 1}, {30ull * MIRROR_EXTENT - 1, 2}, {0, 0}};

	member_record_ranges(&member, copy_epoch(EPOCH), ranges, ARRAY_LEN(ranges), &verdict);
	return answered();
}

static void before_ranges(void)
{
	assert_int_equal(run_promise(), 0);
}

static bool ranges_hold(bool done)
{
	return !done || (meta_hot_is(&meta, 0) && meta_hot_is(&meta, 29) && meta_hot_is(&meta, 30));
}

/* More than there are slots. */
static int run_many_ranges(void)
{
	struct mirror_range all = {0, COPY_SIZE};

	member_record_ranges(&member, copy_epoch(EPOCH), &all, 1, &verdict);
	return answered();
}

static bool many_ranges_hold(bool done)
{
	return !done || meta.super.flags & META_UNCERTAIN;
}

static void before_retire(void)
{
	before_resync();
	assert_int_equal(run_lane(), 0);
	assert_int_equal(run_many_ranges(), 0);
}

static int run_retire(void)
{
	member_retire(&member, copy_epoch(EPOCH), MEMBER_CLEAN_END, &verdict);
	return answered();
}

static bool retire_holds(bool done)
{
	bool is_retired = meta.super.retired_below == EPOCH + 1;

	if (meta.super.flags & META_CLEAN && meta.hot_count)
		return false;
	if (!is_retired && !(meta.super.flags & META_UNCERTAIN))
		return false;
	return is_retired || !done;
}

static int run_fail(void)
{
	member_fail(&member, &verdict);
	return answered();
}

static bool fail_holds(bool done)
{
	return meta.super.flags & META_FAILED || !done;
}

#define SUPER   META_SUPER_AT, META_PROMISE_AT
#define PROMISE META_PROMISE_AT, META_HISTORY_AT
#define MEMBERS META_MEMBERS_AT, META_HOT_AT
#define HOT     META_HOT_AT, META_RING_AT
#define BITMAPS META_BITMAPS_AT, META_BITMAPS_AT + 7 * 4096

static const struct step steps[] = {
	{"W1 promise", nothing_before, run_promise, promise_holds, PROMISE},
	{"W1 second promise", before_second_promise, run_second_promise, second_promise_holds,
	 PROMISE},
	{"W2 mark", nothing_before, run_mark, mark_holds, HOT},
	{"W3 cool", before_cool, run_cool, cool_holds, BITMAPS},
	{"W3 retire", before_cool, run_retire_hot, retire_hot_holds, BITMAPS},
	{"W4 resync begins", before_resync, run_resync_begin, resync_begin_holds, SUPER},
	{"W5 resync ends", before_resync_end, run_resync_end, resync_end_holds, SUPER},
	{"W5 bitmap is cleared", before_clear, run_clear, clear_holds, BITMAPS},
	{"bitmap is started", before_start, run_start, start_holds, BITMAPS},
	{"W7 hold", nothing_before, run_hold, hold_holds, SUPER},
	{"W7 release", before_release, run_release, release_holds, SUPER},
	{"lane", before_lane, run_lane, lane_holds, MEMBERS},
	{"W9 ranges", before_ranges, run_ranges, ranges_hold, HOT},
	{"W9 too many ranges", before_ranges, run_many_ranges, many_ranges_hold, SUPER},
	{"retire", before_retire, run_retire, retire_holds, SUPER},
	{"fail", nothing_before, run_fail, fail_holds, SUPER},
};

static void boot_up(void)
{
	copy_load(&meta, &work);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
}

static void shut_down(void)
{
	member_fini(&member);
	meta_fini(&meta);
}

static bool cut_load(void)
{
	struct meta_store store = two_layers_store(&work);

	return !meta_load(&meta, &store, NULL);
}

/* Power goes at that persist call of the step (0: right after it). Returns how many calls there
 * were. */
static uint32_t cut_step(const struct step *step, uint32_t at, bool *holds)
{
	uint32_t calls;
	bool done;

	two_layers_copy(&work, &base);
	boot_up();
	step->before();
	two_layers_write_back(&work, test_random(&work.seed) % 2 ? 64 : 0);
	work.persists = 0;
	work.cut_at = at;
	done = step->run() == 0;
	calls = work.persists;
	assert_true(done || work.is_cut);
	shut_down();
	two_layers_reboot(&work);
	*holds = cut_load() && !meta.damage && step->holds(done);
	meta_fini(&meta);
	return calls;
}

static int setup(void **state)
{
	copy_create(&base, 1);
	two_layers_init(&work, base.len, 4711);
	boot = copy_uuid(0x70);
	return 0;
}

static int teardown(void **state)
{
	two_layers_fini(&base);
	two_layers_fini(&work);
	return 0;
}

static void each_step_keeps_its_rule_at_each_cut(void **state)
{
	bool holds;

	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		uint32_t calls = cut_step(&steps[i], 0, &holds);

		assert_true(calls > 0);
		for (uint32_t at = 0; at <= calls; at++)
			for (unsigned n = 0; n < CUTS_A_CALL; n++) {
				cut_step(&steps[i], at, &holds);
				if (!holds)
					fail_msg("%s: cut at call %u of %u", steps[i].name, at,
						 calls);
			}
	}
}

/* The checks above see a rule that is broken: durable was said, and it was not. */
static void a_medium_that_lies_is_caught_in_each_step(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		bool caught = false, holds;

		for (unsigned n = 0; n < 40 && !caught; n++) {
			work.lie_from = steps[i].region;
			work.lie_to = steps[i].region_end;
			cut_step(&steps[i], 0, &holds);
			caught = !holds;
			work.lie_from = work.lie_to = 0;
		}
		if (!caught)
			fail_msg("%s: not caught", steps[i].name);
	}
}

/* A second cut in the repair that follows the first. */
static void a_restart_that_is_cut_off_harms_nothing(void **state)
{
	bool holds;

	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		for (unsigned n = 0; n < 20; n++) {
			uint32_t calls = cut_step(&steps[i], 1 + n % 3, &holds);

			(void)calls;
			work.cut_at = 1 + n % 5;
			copy_load(&meta, &work);
			member_init(&member, &meta, &boot);
			shut_down();
			two_layers_reboot(&work);
			copy_load(&meta, &work);
			if (meta.damage || !steps[i].holds(false))
				fail_msg("%s: after a second cut", steps[i].name);
			meta_fini(&meta);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_keeps_its_rule_at_each_cut),
		cmocka_unit_test(a_medium_that_lies_is_caught_in_each_step),
		cmocka_unit_test(a_restart_that_is_cut_off_harms_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
