/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/mirror_core/steps.h"

#include "lib/unit.h"

struct meta steps_meta;
struct member steps_member;
struct mirror_uuid steps_boot;

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
	member_promise(&steps_member, copy_epoch(STEPS_EPOCH), &verdict);
	return answered();
}

static bool promise_holds(bool done)
{
	uint64_t number = steps_meta.promise.epoch.number;

	return number == STEPS_EPOCH || (!done && number == 0);
}

static void before_second_promise(void)
{
	run_promise();
}

static int run_second_promise(void)
{
	member_promise(&steps_member, copy_epoch(STEPS_EPOCH + 1), &verdict);
	return answered();
}

static bool second_promise_holds(bool done)
{
	uint64_t number = steps_meta.promise.epoch.number;

	return number == STEPS_EPOCH + 1 || (!done && number == STEPS_EPOCH);
}

/* ---- W2: hot slots are durable before the first store ---- */

static const uint32_t hot[] = {3, 30, 3, 7, 0};

static int run_mark(void)
{
	return meta_hot_mark(&steps_meta, hot, ARRAY_LEN(hot));
}

static bool mark_holds(bool done)
{
	for (unsigned i = 0; done && i < ARRAY_LEN(hot); i++)
		if (!meta_hot_is(&steps_meta, hot[i]))
			return false;
	return steps_meta.hot_count <= 4;
}

/* ---- W3: bits are durable before their slot is used again ---- */

static const struct mirror_range changed = {3ull * MIRROR_EXTENT + 5000, 100000};

static void before_cool(void)
{
	assert_int_equal(meta_bitmap_start(&steps_meta, 0, copy_epoch(STEPS_EPOCH),
					   copy_epoch(STEPS_EPOCH), NULL),
			 0);
	assert_int_equal(run_mark(), 0);
	meta_bitmap_set_all(&steps_meta, changed);
}

/* Use the slot for another extent. */
static int run_cool(void)
{
	uint32_t cold = 3, others[] = {11, 12, 13, 14, 15};
	int rc = meta_hot_cool(&steps_meta, &cold, 1);

	return rc ? rc : meta_hot_mark(&steps_meta, others, ARRAY_LEN(others));
}

static bool cool_holds(bool done)
{
	uint64_t at = changed.offset;
	struct mirror_range run;

	assert_int_equal(meta_hot_fold(&steps_meta), 0);
	while (at < changed.offset + changed.len) {
		if (!meta_bitmap_next(&steps_meta, 0, at, MIRROR_BLOCK, &run) ||
		    run.offset / MIRROR_BLOCK != at / MIRROR_BLOCK)
			return false;
		at = run.offset + MIRROR_BLOCK;
	}
	return !done || (meta_hot_is(&steps_meta, 15) && meta_hot_is(&steps_meta, 11));
}

static int run_retire_hot(void)
{
	return meta_hot_retire(&steps_meta);
}

static bool retire_hot_holds(bool done)
{
	return (!done || !steps_meta.hot_count) && cool_holds(false);
}

/* ---- W4, W5: `syncing` from before the first byte until after the last ---- */

static void before_resync(void)
{
	assert_int_equal(run_promise(), 0);
	assert_int_equal(run_mark(), 0);
}

static int run_resync_begin(void)
{
	member_resync_begin(&steps_member, copy_epoch(STEPS_EPOCH), 0xa0, &verdict);
	return answered();
}

static bool resync_begin_holds(bool done)
{
	bool is = steps_meta.super.flags & META_SYNCING;

	if (is && (steps_meta.super.source_id != 0xa0 ||
		   steps_meta.super.source_epoch.number != STEPS_EPOCH))
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
	member_resync_end(&steps_member, copy_epoch(STEPS_EPOCH), &verdict);
	return answered();
}

/* While the copy is marked as syncing, its records and the mark of its target stay unchanged. */
static bool resync_end_holds(bool done)
{
	if (steps_meta.super.flags & META_SYNCING)
		return !done && steps_meta.hot_count == 4 && steps_meta.super.source_id == 0xa0 &&
		       steps_meta.super.epoch.number == 0;
	return steps_meta.super.epoch.number == STEPS_EPOCH &&
	       steps_meta.super.retired_below == STEPS_EPOCH && (!done || !steps_meta.hot_count);
}

/* The part of W5 at the source of the resync. */
static void before_clear(void)
{
	before_cool();
	assert_int_equal(meta_hot_fold(&steps_meta), 0);
}

static int run_clear(void)
{
	return meta_bitmap_clear(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 1));
}

/*
 * A bitmap must have no bits before it counts for a new epoch: the cleared bits belong to a member
 * that lacks nothing.
 */
static bool clear_holds(bool done)
{
	if (done)
		return meta_bitmap_is_usable(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 1)) &&
		       !meta_bitmap_count(&steps_meta, 0);
	return meta_bitmap_is_usable(&steps_meta, 0, copy_epoch(STEPS_EPOCH)) ||
	       (meta_bitmap_is_usable(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 1)) &&
		!meta_bitmap_count(&steps_meta, 0));
}

/* A bitmap of an old epoch never counts for the present epoch. */
static void before_start(void)
{
	before_cool();
	assert_int_equal(meta_bitmap_persist(&steps_meta, 0), 0);
	assert_int_equal(meta_bitmap_drop(&steps_meta, 0), 0);
}

static int run_start(void)
{
	return meta_bitmap_start(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 2),
				 copy_epoch(STEPS_EPOCH + 3), NULL);
}

static bool start_holds(bool done)
{
	bool is = meta_bitmap_is_usable(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 2));

	return is ? !meta_bitmap_count(&steps_meta, 0)
		  : !done && !steps_meta.members.members[0].has_bitmap;
}

/* The initial bits must be durable before the bitmap counts. */
static const uint64_t some_bits[COPY_SIZE / MIRROR_BLOCK / 64] = {0xf0, [5] = ~0ull};

static int run_start_with(void)
{
	return meta_bitmap_start(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 2),
				 copy_epoch(STEPS_EPOCH + 3), some_bits);
}

static bool start_with_holds(bool done)
{
	bool is = meta_bitmap_is_usable(&steps_meta, 0, copy_epoch(STEPS_EPOCH + 2));

	return is ? meta_bitmap_count(&steps_meta, 0) == 68
		  : !done && !steps_meta.members.members[0].has_bitmap;
}

static int run_drop(void)
{
	return meta_bitmap_drop(&steps_meta, 0);
}

static bool drop_holds(bool done)
{
	return !done || !steps_meta.members.members[0].has_bitmap;
}

/* ---- W7: the flag `clean` is cleared before map returns ---- */

static int run_hold(void)
{
	struct meta_holder holder = {4711, 99, steps_boot, 7};

	member_hold(&steps_member, &holder, &verdict);
	return answered();
}

static bool hold_holds(bool done)
{
	bool is_clean = steps_meta.super.flags & META_CLEAN;

	return done ? !is_clean && steps_meta.super.holder.pid == 4711
		    : is_clean == !steps_meta.super.holder.pid;
}

static void before_serve(void)
{
	assert_int_equal(run_promise(), 0);
	assert_int_equal(run_hold(), 0);
}

static int run_serve(void)
{
	member_serve(&steps_member, copy_epoch(STEPS_EPOCH), false, &verdict);
	return answered();
}

/* After this step the copy must be marked as a primary's, because it gets the primary's own
 * flushes. */
static bool serve_holds(bool done)
{
	bool has = steps_meta.super.epoch.number == STEPS_EPOCH;

	return has ? (steps_meta.super.flags & META_WAS_PRIMARY) != 0 : !done;
}

static void before_release(void)
{
	assert_int_equal(run_hold(), 0);
	assert_int_equal(run_mark(), 0);
	assert_int_equal(meta_hot_retire(&steps_meta), 0);
}

static int run_release(void)
{
	member_release(&steps_member, true, &verdict);
	return answered();
}

static bool release_holds(bool done)
{
	bool is_clean = steps_meta.super.flags & META_CLEAN;

	return is_clean ? !steps_meta.hot_count && !steps_meta.super.holder.pid : !done;
}

/* After a lane was granted, the copy is not clean, and has recorded the epoch of the flushes. */
static int run_lane(void)
{
	struct member_hello hello = {
		.uuid = copy_uuid(0x10), .epoch = copy_epoch(STEPS_EPOCH), .kind = MEMBER_LANE};

	member_grant(&steps_member, &hello, &verdict);
	return answered();
}

static void before_lane(void)
{
	assert_int_equal(meta_bitmap_start(&steps_meta, 2, copy_epoch(1), copy_epoch(1), NULL), 0);
	assert_int_equal(run_promise(), 0);
}

static bool lane_holds(bool done)
{
	bool has = steps_meta.super.epoch.number == STEPS_EPOCH;

	if (has &&
	    (steps_meta.super.flags & META_CLEAN || steps_meta.members.members[2].has_bitmap ||
	     !steps_meta.super.used_boot.bytes[0]))
		return false;
	return has || !done;
}

/* ---- the copy takes the register's size when its files are long enough ---- */

/* If this copy is the only in-sync one, the set gets the new size as soon as the copy has room. */
static int run_room(void)
{
	struct growth growth = {0};
	struct growth_files files = {COPY_SIZE, meta_size_for(COPY_SIZE)};
	struct growth_order order = {.size = 2 * COPY_SIZE};
	struct growth_answer answers[MIRROR_MEMBERS_MAX] = {
		[1] = {.answers = true, .size = 2 * COPY_SIZE, .room = GROWTH_HAS_ROOM}};
	struct mirror_record rec = {.view = {.insync = MIRROR_BIT(1)}};
	uint8_t slot;

	assert_int_equal(growth_make_room(&growth, &steps_member, &files, 2 * COPY_SIZE, 0),
			 GROWTH_BEGIN);
	growth_on_files(&growth, &steps_member, 2 * COPY_SIZE, 0, "", 0);
	assert_int_equal(growth_order_next(&order, &rec, answers, 0, &slot), GROWTH_SWAP);
	return growth.failed != 0;
}

static bool room_holds(bool done)
{
	const struct meta_super *super = &steps_meta.super;

	return super->size == COPY_SIZE && mark_holds(true) &&
	       (super->room == 2 * COPY_SIZE || !done);
}

static void before_room(void)
{
	assert_int_equal(run_mark(), 0);
}

static void before_grow(void)
{
	member_reserve(&steps_member, 2 * COPY_SIZE, &verdict);
	assert_int_equal(answered(), 0);
	assert_int_equal(run_mark(), 0);
}

static int run_grow(void)
{
	member_grow(&steps_member, 2 * COPY_SIZE, &verdict);
	return answered();
}

static bool grow_holds(bool done)
{
	const struct meta_super *super = &steps_meta.super;

	return super->room == 2 * COPY_SIZE && mark_holds(true) &&
	       (super->size == 2 * COPY_SIZE || (!done && super->size == COPY_SIZE));
}

/* ---- W9: ranges are durable at the target before the first byte is sent ---- */

static int run_ranges(void)
{
	struct mirror_range ranges[] = {{100, 1}, {30ull * MIRROR_EXTENT - 1, 2}, {0, 0}};

	member_record_ranges(&steps_member, copy_epoch(STEPS_EPOCH), ranges, ARRAY_LEN(ranges),
			     &verdict);
	return answered();
}

static void before_ranges(void)
{
	assert_int_equal(run_promise(), 0);
}

static bool ranges_hold(bool done)
{
	return !done || (meta_hot_is(&steps_meta, 0) && meta_hot_is(&steps_meta, 29) &&
			 meta_hot_is(&steps_meta, 30));
}

/* Record more ranges than there are slots. */
static int run_many_ranges(void)
{
	struct mirror_range all = {0, COPY_SIZE};

	member_record_ranges(&steps_member, copy_epoch(STEPS_EPOCH), &all, 1, &verdict);
	return answered();
}

static bool many_ranges_hold(bool done)
{
	return !done || steps_meta.super.flags & META_UNCERTAIN;
}

static void before_retire(void)
{
	before_resync();
	assert_int_equal(run_lane(), 0);
	assert_int_equal(run_many_ranges(), 0);
}

static int run_retire(void)
{
	member_retire(&steps_member, copy_epoch(STEPS_EPOCH), MEMBER_CLEAN_END, &verdict);
	return answered();
}

static bool retire_holds(bool done)
{
	bool is_retired = steps_meta.super.retired_below == STEPS_EPOCH + 1;

	if (steps_meta.super.flags & META_CLEAN && steps_meta.hot_count)
		return false;
	if (!is_retired && !(steps_meta.super.flags & META_UNCERTAIN))
		return false;
	return is_retired || !done;
}

static int run_fail(void)
{
	member_fail(&steps_member, &verdict);
	return answered();
}

static bool fail_holds(bool done)
{
	return steps_meta.super.flags & META_FAILED || !done;
}

#define SUPER   META_SUPER_AT, META_PROMISE_AT
#define PROMISE META_PROMISE_AT, META_HISTORY_AT
#define MEMBERS META_MEMBERS_AT, META_HOT_AT
#define HOT     META_HOT_AT, META_RING_AT
#define BITMAPS META_BITMAPS_AT, META_BITMAPS_AT + 7 * 4096

const struct step steps[] = {
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
	{"bitmap is started with bits", before_start, run_start_with, start_with_holds, BITMAPS},
	{"bitmap is dropped", before_cool, run_drop, drop_holds, MEMBERS},
	{"W7 hold", nothing_before, run_hold, hold_holds, SUPER},
	{"W7 serve", before_serve, run_serve, serve_holds, SUPER},
	{"W7 release", before_release, run_release, release_holds, SUPER},
	{"lane", before_lane, run_lane, lane_holds, MEMBERS},
	{"W9 ranges", before_ranges, run_ranges, ranges_hold, HOT},
	{"W9 too many ranges", before_ranges, run_many_ranges, many_ranges_hold, SUPER},
	{"retire", before_retire, run_retire, retire_holds, SUPER},
	{"room to grow", before_room, run_room, room_holds, SUPER},
	{"grow", before_grow, run_grow, grow_holds, SUPER},
	{"fail", nothing_before, run_fail, fail_holds, SUPER},
};
const unsigned steps_count = ARRAY_LEN(steps);
