/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of a daemon for its copy: fences, connections, restarts, processes that map the copy,
 * resync. */
#include "unit/mirror_core/member_fixture.h"

static void hold(uint64_t pid)
{
	struct meta_holder holder = {pid, pid + 1, boot, 7};

	member_hold(&member, &holder, &v);
}

static void put_intent(uint64_t epoch, uint64_t seq, uint64_t offset)
{
	struct intent_head head = {seq, copy_epoch(epoch), 0, 1};
	struct mirror_range range = {offset, 8};

	intent_encode(meta_ring(&meta) + intent_slot_offset(seq), &head, &range);
}

/* ---- fence ---- */

static void a_promise_outlives_a_power_cut_and_refuses_lower_ones(void **state)
{
	promise(5);
	expect(MEMBER_OK);
	promise(5);
	expect(MEMBER_OK);
	two_layers_reboot(&store);
	restart();
	promise(4);
	expect(MEMBER_EPOCH_OLD);
	assert_int_equal(v.known.number, 5);
	member_promise(&member, (struct mirror_epoch){5, 1}, &v);
	expect(MEMBER_EPOCH_TWIN);
	connect_with(MEMBER_LANE, 4);
	expect(MEMBER_EPOCH_OLD);
	connect_with(MEMBER_LANE, 6);
	expect(MEMBER_NOT_PROMISED);
	connect_with(MEMBER_CONTROL, 4);
	expect(MEMBER_OK);
}

static void connections_of_lower_epochs_are_cut_before_the_promise(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	connect_with(MEMBER_BULK, 5);
	expect(MEMBER_OK);
	promise(6);
	assert_int_equal(v.answer, MEMBER_CUT_FIRST);
	assert_int_equal(v.known.number, 6);
	assert_int_equal(meta.promise.epoch.number, 5);
	/* During the fence no connection is granted, and no lower epoch is promised. */
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_EPOCH_OLD);
	connect_with(MEMBER_LANE, 6);
	expect(MEMBER_NOT_PROMISED);
	member_on_closed(&member, MEMBER_LANE);
	promise(6);
	assert_int_equal(v.answer, MEMBER_CUT_FIRST);
	member_on_closed(&member, MEMBER_BULK);
	promise(6);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(meta.promise.epoch.number, 6);
}

static void a_new_promise_ends_former_connections(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	promise(5);
	assert_int_equal(v.answer, MEMBER_CUT_FIRST);
	assert_int_equal(v.known.number, 5);
	connect_with(MEMBER_LANE, 5);
	assert_int_not_equal(v.answer, MEMBER_YES);
	member_on_closed(&member, MEMBER_LANE);
	promise(5);
	expect(MEMBER_OK);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
}

static void a_report_names_hot_extents_and_unretired_intents(void **state)
{
	struct mirror_range ranges[4], hot = {4ull * MIRROR_EXTENT + 9, 1};

	promise(5);
	put_intent(3, 1, 77);
	put_intent(5, 2, 4096);
	put_intent(9, 3, 8192); /* the epoch was not promised, and is too low to be promised now */
	member_record_ranges(&member, copy_epoch(5), &hot, 1, &v);
	expect(MEMBER_OK);
	ask();
	assert_int_equal(report.intents, 2);
	assert_int_equal(report.hot, 1);
	assert_int_equal(report.range_count, 3);
	assert_int_equal(member_ranges(&member, 0, ranges, 4), 3);
	assert_int_equal(ranges[0].offset, 77);
	assert_int_equal(ranges[2].offset, 4ull * MIRROR_EXTENT);
	assert_int_equal(ranges[2].len, MIRROR_EXTENT);
	assert_int_equal(member_ranges(&member, 2, ranges, 4), 1);
	assert_int_equal(member_ranges(&member, 3, ranges, 4), 0);
	/* `serving` of epoch 5 is committed, so records of earlier epochs are dropped. */
	member_retire(&member, copy_epoch(5), MEMBER_SERVING, &v);
	expect(MEMBER_OK);
	ask();
	assert_int_equal(report.intents, 1);
	assert_int_equal(report.hot, 0);
	/* A clean end drops all records. */
	member_retire(&member, copy_epoch(5), MEMBER_CLEAN_END, &v);
	ask();
	assert_int_equal(report.range_count, 0);
	assert_true(report.flags & META_CLEAN);
	assert_int_equal(meta.super.acked, 2);
}

static void the_last_extent_ends_with_the_file(void **state)
{
	struct mirror_range last = {COPY_SIZE - 1, 1}, got;
	struct mirror_range beyond = {COPY_SIZE - 1, 2};

	promise(5);
	member_record_ranges(&member, copy_epoch(5), &beyond, 1, &v);
	expect(MEMBER_OTHER_SIZE);
	member_record_ranges(&member, copy_epoch(4), &last, 1, &v);
	expect(MEMBER_EPOCH_OLD);
	member_record_ranges(&member, copy_epoch(5), &last, 1, &v);
	ask();
	assert_int_equal(member_ranges(&member, 0, &got, 1), 1);
	assert_int_equal(got.offset + got.len, COPY_SIZE);
}

/* ---- restarts of the host ---- */

static void a_host_that_went_down_under_a_primary_is_uncertain(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	restart(); /* only the daemon restarts, so the ring is still in memory */
	ask();
	assert_false(report.is_uncertain);
	boot = copy_uuid(0x71);
	restart();
	ask();
	assert_true(report.is_uncertain);
	promise(6);
	member_retire(&member, copy_epoch(6), MEMBER_SERVING, &v);
	expect(MEMBER_OK);
	ask();
	assert_false(report.is_uncertain);
}

static void after_a_clean_end_a_restart_of_the_host_is_nothing(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	member_on_closed(&member, MEMBER_LANE);
	member_retire(&member, copy_epoch(5), MEMBER_CLEAN_END, &v);
	expect(MEMBER_OK);
	boot = copy_uuid(0x71);
	restart();
	ask();
	assert_false(report.is_uncertain);
	assert_true(report.flags & META_CLEAN);
}

/* A primary of epoch 5 has a lane to this member, and all copies of S are equal. */
static void be_used(void)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	put_intent(5, 2, 4096);
}

static void end_as_in_the_register(bool clean, mirror_mask insync)
{
	static uint64_t seq = 9;

	see(5, MIRROR_PHASE_NONE, insync, seq++);
	expect(MEMBER_OK);
	rec.view.clean = clean;
	member_end_clean(&member, &rec, &v);
	expect(MEMBER_OK);
	ask();
}

static void a_clean_end_in_the_register_voids_records_without_a_connection(void **state)
{
	be_used();
	end_as_in_the_register(true, 7);
	assert_int_equal(report.intents, 1);
	assert_false(report.flags & META_CLEAN);
	member_on_closed(&member, MEMBER_LANE);
	end_as_in_the_register(true, 7);
	assert_int_equal(report.range_count, 0);
	assert_true(report.flags & META_CLEAN);
	boot = copy_uuid(0x71);
	restart();
	ask();
	assert_false(report.is_uncertain);
	assert_true(report.flags & META_CLEAN);
}

/* The epoch ended while the daemon was not running, and then the host went down. */
static void a_clean_end_is_learned_after_a_restart_of_the_host(void **state)
{
	be_used();
	boot = copy_uuid(0x71);
	restart();
	ask();
	assert_true(report.is_uncertain);
	end_as_in_the_register(true, 7);
	assert_false(report.is_uncertain);
	assert_int_equal(report.range_count, 0);
}

static void an_end_in_the_register_does_not_count_for_a_copy_in_doubt(void **state)
{
	static const uint32_t doubts[] = {META_SYNCING, META_FAILED, META_UNKNOWN, META_EMPTY};
	const struct meta_holder holder = {.pid = 10, .start_time = 1, .boot = boot};

	be_used();
	member_on_closed(&member, MEMBER_LANE);
	end_as_in_the_register(false, 7); /* the end is not clean */
	assert_int_equal(report.intents, 1);
	end_as_in_the_register(true, 5); /* this copy is not in-sync */
	assert_int_equal(report.intents, 1);
	for (unsigned i = 0; i < ARRAY_LEN(doubts); i++) {
		struct meta_super was = meta.super, super = meta.super;

		super.flags |= doubts[i];
		assert_int_equal(meta_set_super(&meta, &super), 0);
		end_as_in_the_register(true, 7);
		assert_int_equal(report.intents, 1);
		assert_int_equal(meta_set_super(&meta, &was), 0);
	}
	member_hold(&member, &holder, &v);
	end_as_in_the_register(true, 7);
	assert_int_equal(report.intents, 1);
	member_release(&member, false, &v);
	/* The copy has promised a newer epoch, so its data do not belong to the epoch that
	 * ended. */
	promise(6);
	end_as_in_the_register(true, 7);
	assert_int_equal(report.intents, 1);
}

/*
 * A process that only reads the copy, to restore another copy, changes nothing: the copy stays
 * clean, and no promise waits for this process.
 */
static void a_restoring_reader_needs_the_promised_epoch_and_is_no_user(void **state)
{
	promise(5);
	member_retire(&member, copy_epoch(5), MEMBER_CLEAN_END, &v);
	expect(MEMBER_OK);
	connect_with(MEMBER_RESTORE, 4);
	expect(MEMBER_EPOCH_OLD);
	connect_with(MEMBER_RESTORE, 5);
	expect(MEMBER_OK);
	assert_true(meta.super.flags & META_CLEAN);
	assert_int_equal(member.lanes + member.bulks, 0);
	member_on_closed(&member, MEMBER_RESTORE);
	assert_int_equal(member.lanes + member.bulks, 0);
}

/* The host now has the primary, so the records of earlier primaries in its ring are void. */
static void a_primary_whose_host_went_down_is_not_uncertain(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	member_on_closed(&member, MEMBER_LANE);
	hold(10);
	promise(6);
	member_serve(&member, copy_epoch(6), false, &v);
	expect(MEMBER_OK);
	member_retire(&member, copy_epoch(6), MEMBER_SERVING, &v);
	expect(MEMBER_OK);
	boot = copy_uuid(0x71);
	restart();
	ask();
	assert_false(report.is_held);
	assert_false(report.is_uncertain);
}

/* ---- a process that maps the copy ("holder") ---- */

static void one_process_holds_the_copy_and_nothing_is_copied_into_it(void **state)
{
	struct mirror_range range = {0, 1};

	hold(10);
	expect(MEMBER_OK);
	hold(10);
	expect(MEMBER_OK);
	hold(11);
	expect(MEMBER_IS_HELD);
	assert_false(meta.super.flags & META_CLEAN);
	restart(); /* after a restart of the daemon the holder still holds the copy */
	assert_int_equal(meta.super.holder.pid, 10);
	/* The epoch is promised, but no resync begins. */
	promise(5);
	expect(MEMBER_OK);
	ask();
	assert_true(report.is_held);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	expect(MEMBER_IS_HELD);
	member_record_ranges(&member, copy_epoch(5), &range, 1, &v);
	expect(MEMBER_IS_HELD);
	member_may_clear(&member, copy_epoch(5), (struct mirror_range){0, 4096}, &v);
	expect(MEMBER_IS_HELD);
	connect_with(MEMBER_BULK, 5);
	expect(MEMBER_IS_HELD);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_IS_HELD);
	connect_with(MEMBER_RESTORE, 5);
	expect(MEMBER_IS_HELD);
	member_release(&member, false, &v);
	expect(MEMBER_OK);
	assert_false(meta.super.flags & META_CLEAN);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	expect(MEMBER_OK);
}

static void a_holder_of_another_boot_is_gone(void **state)
{
	hold(10);
	boot = copy_uuid(0x71);
	restart();
	assert_int_equal(meta.super.holder.pid, 0);
	assert_false(meta.super.flags & META_CLEAN);
}

static void what_the_holder_wrote_is_read_when_it_is_gone(void **state)
{
	struct meta theirs;
	uint32_t extent = 9;

	promise(5);
	hold(10);
	member_serve(&member, copy_epoch(5), false, &v);
	expect(MEMBER_OK);
	copy_load(&theirs, &store); /* the library loads the same bytes */
	assert_int_equal(meta_bitmap_start(&theirs, 0, copy_epoch(0), copy_epoch(5), NULL), 0);
	assert_int_equal(meta_hot_mark(&theirs, &extent, 1), 0);
	meta_fini(&theirs);
	member_release(&member, true, &v); /* the end is not clean, because an extent is hot */
	expect(MEMBER_OK);
	assert_true(meta_hot_is(&meta, 9));
	assert_false(meta.super.flags & META_CLEAN);
	assert_true(meta.super.flags & META_WAS_PRIMARY);
	assert_int_equal(meta.super.epoch.number, 5);
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(5)));
	/* Hot extents count as changed for members that are away. */
	assert_int_equal(meta_bitmap_count(&meta, 0), MIRROR_EXTENT / MIRROR_BLOCK);
}

/* While the process lives, it owns the bitmaps. */
static void a_restart_of_the_daemon_sets_no_bit_beside_the_holder(void **state)
{
	struct meta theirs;
	uint32_t extent = 9;

	promise(5);
	hold(10);
	copy_load(&theirs, &store);
	assert_int_equal(meta_bitmap_start(&theirs, 0, copy_epoch(0), copy_epoch(5), NULL), 0);
	assert_int_equal(meta_hot_mark(&theirs, &extent, 1), 0);
	meta_fini(&theirs);
	restart();
	assert_true(meta_hot_is(&meta, 9));
	assert_int_equal(meta_bitmap_count(&meta, 0), 0);
}

static void a_clean_unmap_is_clean(void **state)
{
	promise(5);
	hold(10);
	member_serve(&member, copy_epoch(5), true, &v);
	assert_true(meta.super.flags & META_FORCED);
	member_release(&member, true, &v);
	expect(MEMBER_OK);
	restart();
	assert_true(meta.super.flags & META_CLEAN);
	assert_false(meta.super.flags & META_WAS_PRIMARY);
	assert_int_equal(meta.super.holder.pid, 0);
	member_serve(&member, copy_epoch(5), false, &v);
	expect(MEMBER_NOT_BEGUN);
}

/* The process that maps the copy keeps its hot slots when the daemon retires records. */
static void a_retirement_leaves_the_holders_slots(void **state)
{
	struct meta theirs;
	uint32_t extent = 9;

	promise(5);
	hold(10);
	copy_load(&theirs, &store);
	assert_int_equal(meta_hot_mark(&theirs, &extent, 1), 0);
	member_retire(&member, copy_epoch(5), MEMBER_SERVING, &v);
	expect(MEMBER_OK);
	assert_int_equal(meta_reload(&theirs), 0);
	assert_true(meta_hot_is(&theirs, 9));
	meta_fini(&theirs);
}

static void a_retirement_that_comes_after_its_process_changes_nothing(void **state)
{
	struct meta theirs;
	uint32_t extent = 9;

	promise(5);
	hold(10);
	member_serve(&member, copy_epoch(5), false, &v);
	expect(MEMBER_OK);
	copy_load(&theirs, &store);
	assert_int_equal(meta_hot_mark(&theirs, &extent, 1), 0);
	meta_fini(&theirs);
	member_release(&member, false, &v);
	expect(MEMBER_OK);
	member_retire(&member, copy_epoch(5), MEMBER_SERVING, &v);
	expect(MEMBER_NOT_BEGUN);
	ask();
	assert_int_equal(report.hot, 1);
}

/* ---- resync ---- */

static void a_target_is_syncing_until_its_own_primary_ends_it(void **state)
{
	promise(5);
	member_resync_end(&member, copy_epoch(5), &v);
	expect(MEMBER_NOT_BEGUN);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	expect(MEMBER_OK);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_SYNCING);
	/* A lane to a member that is joining does not set the epoch in the member's copy. */
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	assert_int_equal(meta.super.epoch.number, 0);
	member_on_closed(&member, MEMBER_LANE);
	restart();
	promise(6);
	member_resync_end(&member, copy_epoch(5), &v);
	expect(MEMBER_EPOCH_OLD);
	member_resync_end(&member, copy_epoch(6), &v);
	expect(MEMBER_NOT_BEGUN);
	member_retire(&member, copy_epoch(6), MEMBER_SERVING, &v);
	expect(MEMBER_IS_SYNCING);
	member_resync_begin(&member, copy_epoch(6), 0xa2, &v);
	ask();
	assert_int_equal(report.source_id, 0xa2);
	member_resync_end(&member, copy_epoch(6), &v);
	expect(MEMBER_OK);
	assert_int_equal(meta.super.epoch.number, 6);
	ask();
	assert_int_equal(report.source_id, 0);
}

static void only_a_resyncs_source_may_have_blocks_cleared(void **state)
{
	const uint64_t size = meta.super.size;
	struct mirror_range block = {4096, 4096}, last = {size - 4096, 4096}, behind = {size, 4096},
			    across = {size - 4096, 8192}, around = {UINT64_MAX - 4095, 4096};

	promise(5);
	member_may_clear(&member, copy_epoch(5), block, &v);
	expect(MEMBER_NOT_BEGUN);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	member_may_clear(&member, copy_epoch(5), block, &v);
	expect(MEMBER_OK);
	member_may_clear(&member, copy_epoch(5), last, &v);
	expect(MEMBER_OK);
	member_may_clear(&member, copy_epoch(5), behind, &v);
	expect(MEMBER_OTHER_SIZE);
	member_may_clear(&member, copy_epoch(5), across, &v);
	expect(MEMBER_OTHER_SIZE);
	member_may_clear(&member, copy_epoch(5), around, &v);
	expect(MEMBER_OTHER_SIZE);
	member_may_clear(&member, copy_epoch(4), block, &v);
	expect(MEMBER_EPOCH_OLD);
	member_may_clear(&member, copy_epoch(6), block, &v);
	expect(MEMBER_NOT_PROMISED);
	/* The next primary begins its own resync. */
	promise(6);
	member_may_clear(&member, copy_epoch(5), block, &v);
	expect(MEMBER_EPOCH_OLD);
	member_may_clear(&member, copy_epoch(6), block, &v);
	expect(MEMBER_NOT_BEGUN);
	member_resync_begin(&member, copy_epoch(6), 0xa0, &v);
	member_resync_end(&member, copy_epoch(6), &v);
	member_may_clear(&member, copy_epoch(6), block, &v);
	expect(MEMBER_NOT_BEGUN);
	member_resync_begin(&member, copy_epoch(6), 0xa0, &v);
	member_fail(&member, &v);
	member_may_clear(&member, copy_epoch(6), block, &v);
	expect(MEMBER_HAS_FAILED);
}

static void an_empty_copy_needs_a_resync(void **state)
{
	struct meta_super super = meta.super;

	super.flags = META_EMPTY;
	assert_int_equal(meta_set_super(&meta, &super), 0);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_EMPTY);
	promise(5);
	/* This lane was opened before the resync, so it proves nothing about the copy's content. */
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_EMPTY);
	assert_int_not_equal(meta.super.epoch.number, 5);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	member_resync_end(&member, copy_epoch(5), &v);
	see(5, MIRROR_PHASE_SERVING, 3, 1);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_INSYNC);
}

/* The bitmaps record this copy's own changes, but not those of another primary. */
static void flushes_of_another_primary_drop_the_bitmaps(void **state)
{
	assert_int_equal(meta_bitmap_start(&meta, 2, copy_epoch(4), copy_epoch(4), NULL), 0);
	promise(5);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	assert_false(meta_bitmap_is_usable(&meta, 2, copy_epoch(4)));
	restart();
	assert_false(meta_bitmap_is_usable(&meta, 2, copy_epoch(4)));
}

static void a_failed_copy_is_refused_for_good(void **state)
{
	promise(5);
	member_fail(&member, &v);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_FAILED);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_HAS_FAILED);
	hold(10);
	expect(MEMBER_HAS_FAILED);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	expect(MEMBER_HAS_FAILED);
	assert_non_null(strstr(v.text, "member replace"));
}

/* Whichever operation the restart interrupted, the copy can neither be promoted nor be marked as
 * equal. */
static void a_copy_that_lost_something_is_compared_after_a_restart(void **state)
{
	promise(5);
	hold(10);
	member_lose(&member, &v);
	expect(MEMBER_OK);
	member_serve(&member, copy_epoch(5), false, &v);
	expect(MEMBER_HAS_FAILED);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_FAILED);
	member_release(&member, false, &v);
	restart();
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_SYNCING);
	ask();
	assert_true(report.is_unknown);
	member_resync_begin(&member, copy_epoch(5), 0xa0, &v);
	expect(MEMBER_OK);
	member_lose(&member, &v);
	member_resync_end(&member, copy_epoch(5), &v);
	expect(MEMBER_HAS_FAILED);
	restart();
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_SYNCING);
}

static void a_store_that_fails_makes_the_copy_fail(void **state)
{
	store.cut_at = store.persists + 1;
	promise(5);
	expect(MEMBER_IO);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_FAILED);
	promise(5);
	expect(MEMBER_IO);
	connect_with(MEMBER_LANE, 5);
	assert_int_equal(v.answer, MEMBER_NO);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, member_setup, member_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_promise_outlives_a_power_cut_and_refuses_lower_ones),
		TEST(connections_of_lower_epochs_are_cut_before_the_promise),
		TEST(a_new_promise_ends_former_connections),
		TEST(a_report_names_hot_extents_and_unretired_intents),
		TEST(the_last_extent_ends_with_the_file),
		TEST(a_host_that_went_down_under_a_primary_is_uncertain),
		TEST(after_a_clean_end_a_restart_of_the_host_is_nothing),
		TEST(a_clean_end_in_the_register_voids_records_without_a_connection),
		TEST(a_clean_end_is_learned_after_a_restart_of_the_host),
		TEST(an_end_in_the_register_does_not_count_for_a_copy_in_doubt),
		TEST(a_restoring_reader_needs_the_promised_epoch_and_is_no_user),
		TEST(one_process_holds_the_copy_and_nothing_is_copied_into_it),
		TEST(a_primary_whose_host_went_down_is_not_uncertain),
		TEST(a_holder_of_another_boot_is_gone),
		TEST(what_the_holder_wrote_is_read_when_it_is_gone),
		TEST(a_restart_of_the_daemon_sets_no_bit_beside_the_holder),
		TEST(a_clean_unmap_is_clean),
		TEST(a_retirement_leaves_the_holders_slots),
		TEST(a_retirement_that_comes_after_its_process_changes_nothing),
		TEST(a_target_is_syncing_until_its_own_primary_ends_it),
		TEST(only_a_resyncs_source_may_have_blocks_cleared),
		TEST(an_empty_copy_needs_a_resync),
		TEST(flushes_of_another_primary_drop_the_bitmaps),
		TEST(a_failed_copy_is_refused_for_good),
		TEST(a_copy_that_lost_something_is_compared_after_a_restart),
		TEST(a_store_that_fails_makes_the_copy_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
