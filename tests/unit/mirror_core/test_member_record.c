/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a copy records about the register, and mistakes of operators: restored, swapped and replaced
 * copies.
 */
#include "unit/mirror_core/member_fixture.h"

#include "mirror/core/view.h"

static void the_newest_view_is_kept(void **state)
{
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_UNKNOWN);
	promise(5);
	see(5, MIRROR_PHASE_SERVING, 7, 1);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(meta.promise.seen.revision, 101);
	assert_int_equal(meta.promise.seen.view.epoch.number, 5);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_INSYNC);
	assert_int_equal(member_copy(&member, false), MIRROR_COPY_UNKNOWN);
	see(5, MIRROR_PHASE_SERVING, 1, 2);
	assert_int_equal(member_copy(&member, false), MIRROR_COPY_STALE);
	/* A change by the primary is kept as well. */
	rec.view.seq = 3;
	rec.view.insync = 3;
	member_on_view(&member, &rec.view, &v);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(meta.promise.seen.view.seq, 3);
	/* An operator has removed another member from S. */
	rec.view.insync = 1;
	member_on_view(&member, &rec.view, &v);
	rec.view.insync = 3;
	member_on_view(&member, &rec.view, &v);
	restart();
	assert_int_equal(meta.promise.seen.view.insync, 1);
}

static void a_register_restored_from_a_backup_is_split(void **state)
{
	promise(5);
	see(5, MIRROR_PHASE_SERVING, 7, 4);
	expect(MEMBER_OK);
	see(5, MIRROR_PHASE_SERVING, 7, 3);
	expect(MEMBER_IS_SPLIT);
	assert_int_equal(meta.promise.seen.view.seq, 4);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_UNKNOWN);
	promise(6);
	expect(MEMBER_IS_SPLIT);
	see(4, MIRROR_PHASE_SERVING, 7, 9);
	expect(MEMBER_IS_SPLIT);
	/* Another epoch with the same number: the register has branched. */
	see(5, MIRROR_PHASE_SERVING, 7, 9);
	rec.view.epoch.nonce++;
	member_on_record(&member, &rec, 200, &v);
	expect(MEMBER_IS_SPLIT);
	/* The register only lagged behind, as the next read shows. */
	rec.view.epoch.nonce--;
	member_on_record(&member, &rec, 200, &v);
	expect(MEMBER_OK);
	promise(6);
	expect(MEMBER_OK);
}

static void a_restored_register_that_was_changed_is_split(void **state)
{
	see(7, MIRROR_PHASE_SERVING, 5, 4);
	expect(MEMBER_OK);
	/*
	 * The register was restored to seq 3, when all members were in-sync, and then the
	 * configuration was changed.
	 */
	see(7, MIRROR_PHASE_SERVING, 7, 4);
	expect(MEMBER_IS_SPLIT);
	see(7, MIRROR_PHASE_SERVING, 5, 4);
	expect(MEMBER_OK);
}

/*
 * All members are in-sync. Then the primary excludes b and c and this member sees the change, or an
 * operator removes c. Later the register is restored, and its configuration is changed until its
 * sequence number has grown enough.
 */
static void a_restored_register_that_was_configured_is_split(void **state)
{
	struct mirror_config next;

	see(7, MIRROR_PHASE_SERVING, 7, 3);
	expect(MEMBER_OK);
	see(7, MIRROR_PHASE_SERVING, 1, 4);
	expect(MEMBER_OK);
	rec.view.seq = 3;
	rec.view.insync = 7;
	for (unsigned i = 0; i < 5; i++) {
		next = rec.config;
		next.slow_ms++;
		assert_int_equal(view_set_config(&rec, &next, 50 + i, NULL), 0);
		member_on_record(&member, &rec, 200 + i, &v);
		expect(MEMBER_IS_SPLIT);
	}
	/* The register is also split if a change of the configuration made S smaller. */
	rec.view.seq = 4;
	rec.view.insync = 1;
	member_on_record(&member, &rec, 300, &v);
	expect(MEMBER_OK);
	rec.view.insync = 3;
	rec.config.number++;
	member_on_record(&member, &rec, 300, &v);
	expect(MEMBER_IS_SPLIT);
	assert_int_equal(view_promote(&rec, 1, 60, NULL), 0);
	member_on_record(&member, &rec, 301, &v);
	expect(MEMBER_IS_SPLIT);
}

static void a_register_that_lacks_a_configuration_is_split(void **state)
{
	rec.config.number = 5;
	see(7, MIRROR_PHASE_SERVING, 7, 3);
	expect(MEMBER_OK);
	rec.config.number = 4;
	see(7, MIRROR_PHASE_SERVING, 7, 3);
	expect(MEMBER_IS_SPLIT);
	rec.config.number = 6;
	see(7, MIRROR_PHASE_SERVING, 7, 3);
	expect(MEMBER_OK);
	assert_int_equal(meta.promise.seen.config_number, 6);
}

static void flushes_of_an_epoch_that_history_lacks_are_split(void **state)
{
	promise(5);
	connect_with(MEMBER_LANE, 5);
	member_on_closed(&member, MEMBER_LANE);
	rec.history_count = 1;
	rec.history[0] = (struct mirror_ended){copy_epoch(6), 1, 0};
	see(7, MIRROR_PHASE_SERVING, 1, 1);
	expect(MEMBER_IS_SPLIT);
	rec.history[1] = (struct mirror_ended){copy_epoch(5), 1, 0};
	rec.history_count = 2;
	member_on_record(&member, &rec, 300, &v);
	expect(MEMBER_OK);
	assert_int_equal(meta.history.count, 2);
}

static void a_copy_without_its_past_is_compared_as_a_whole(void **state)
{
	promise(9);
	connect_with(MEMBER_LANE, 9);
	member_on_closed(&member, MEMBER_LANE);
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(9), copy_epoch(9), NULL), 0);
	see(6, MIRROR_PHASE_SERVING, 1, 1);
	expect(MEMBER_IS_SPLIT);
	member_discard(&member, &rec, 300, &v);
	expect(MEMBER_OK);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_SYNCING);
	restart();
	promise(6);
	expect(MEMBER_OK);
	ask();
	assert_true(report.is_uncertain);
	assert_int_equal(report.epoch.number, 0);
	assert_false(meta_bitmap_is_usable(&meta, 0, copy_epoch(9)));
	member_discard(&member, &rec, 300, &v); /* a repeated call does no harm */
	expect(MEMBER_OK);
}

/* Data and metadata of a member of S are older than the register's epoch. */
static void a_copy_restored_from_a_backup_is_not_promoted(void **state)
{
	struct two_layers backup;

	promise(5);
	see(5, MIRROR_PHASE_SERVING, 7, 1);
	two_layers_init(&backup, store.len, 1);
	two_layers_copy(&backup, &store);
	promise(6);
	rec.history_count = 1;
	rec.history[0] = (struct mirror_ended){copy_epoch(5), 1, 0};
	see(6, MIRROR_PHASE_SERVING, 7, 1);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_INSYNC);
	two_layers_copy(&store, &backup);
	two_layers_fini(&backup);
	restart();
	see(6, MIRROR_PHASE_SERVING, 7, 1);
	assert_int_equal(member_copy(&member, true), MIRROR_COPY_SYNCING);
	restart();
	promise(7);
	ask();
	assert_int_equal(report.copy, MIRROR_COPY_SYNCING);
	assert_true(report.is_uncertain);
	member_resync_begin(&member, copy_epoch(7), 0xa0, &v);
	member_resync_end(&member, copy_epoch(7), &v);
	expect(MEMBER_OK);
	ask();
	assert_false(report.is_uncertain);
}

static void another_sets_or_members_copy_is_refused(void **state)
{
	struct member_hello hello = {.uuid = copy_uuid(0x10), .member_id = 0xa1};

	hello.uuid.bytes[15]++;
	member_grant(&member, &hello, &v);
	expect(MEMBER_OTHER_SET);
	hello.uuid = copy_uuid(0x10);
	hello.member_id = 0xa2;
	member_grant(&member, &hello, &v);
	expect(MEMBER_OTHER_COPY);
	hello.member_id = 0;
	hello.size = COPY_SIZE + 4096;
	member_grant(&member, &hello, &v);
	expect(MEMBER_OTHER_SIZE);
	/* Copies were swapped between hosts, or this copy was replaced and is used again. */
	rec.config.members[COPY_SLOT].id = 0xb1;
	member_on_record(&member, &rec, 1, &v);
	expect(MEMBER_OTHER_COPY);
	rec.config.uuid.bytes[0]++;
	member_on_record(&member, &rec, 1, &v);
	expect(MEMBER_OTHER_SET);
	copy_record(&rec);
	rec.config.size /= 2;
	member_on_record(&member, &rec, 1, &v);
	expect(MEMBER_OTHER_SIZE);
	assert_int_equal(meta.promise.seen.revision, 0);
}

static void a_replaced_peer_takes_its_bitmap_with_it(void **state)
{
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(1), copy_epoch(1), NULL), 0);
	assert_int_equal(meta_bitmap_start(&meta, 2, copy_epoch(1), copy_epoch(1), NULL), 0);
	rec.config.number = 2;
	rec.config.members[2].id = 0xc2;
	strcpy(rec.config.members[2].host, "198.51.100.9");
	member_on_record(&member, &rec, 1, &v);
	expect(MEMBER_OK);
	restart();
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(1)));
	assert_false(meta_bitmap_is_usable(&meta, 2, copy_epoch(1)));
	assert_string_equal(meta.members.members[2].host, "198.51.100.9");
	assert_int_equal(meta.members.config_number, 2);
}

/* ---- sizes ---- */

static void a_larger_set_is_no_other_one_and_a_smaller_one_is(void **state)
{
	rec.config.size = 2 * COPY_SIZE;
	see(1, MIRROR_PHASE_NONE, 7, 1);
	expect(MEMBER_OK);
	assert_int_equal(meta.super.size, COPY_SIZE);
	rec.config.size = COPY_SIZE / 2;
	see(1, MIRROR_PHASE_NONE, 7, 2);
	expect(MEMBER_OTHER_SIZE);
	assert_non_null(strstr(v.text, "rpmirror grow"));
	/*
	 * The register was restored to a time before the set grew, so this copy must not be used.
	 */
	promise(2);
	expect(MEMBER_IS_SPLIT);
	rec.config.size = COPY_SIZE;
	see(1, MIRROR_PHASE_NONE, 7, 3);
	expect(MEMBER_OK);
	promise(2);
	expect(MEMBER_OK);
}

static void a_copy_grows_when_its_files_have_and_no_process_uses_it(void **state)
{
	const struct meta_holder holder = {.pid = 10, .start_time = 1, .boot = boot};
	const uint64_t size = 2 * COPY_SIZE;

	member_grow(&member, COPY_SIZE, &v);
	expect(MEMBER_OK);
	member_grow(&member, size, &v);
	expect(MEMBER_OTHER_SIZE);
	assert_false(member_may_grow(&member, size));
	member_reserve(&member, size, &v);
	expect(MEMBER_OK);
	/* make room, so that the copy is larger than the set */
	member_reserve(&member, COPY_SIZE + 4096, &v);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(meta.super.room, size);
	assert_int_equal(meta.super.size, COPY_SIZE);
	/* The copy must not grow while a primary of another host is connected. */
	promise(5);
	connect_with(MEMBER_LANE, 5);
	expect(MEMBER_OK);
	assert_false(member_may_grow(&member, size));
	member_grow(&member, size, &v);
	expect(MEMBER_IS_HELD);
	member_on_closed(&member, MEMBER_LANE);
	/* The copy must not grow while a process on this host maps it. */
	member_hold(&member, &holder, &v);
	expect(MEMBER_OK);
	assert_false(member_may_grow(&member, size));
	member_grow(&member, size, &v);
	expect(MEMBER_IS_HELD);
	assert_int_equal(meta.super.size, COPY_SIZE);
	member_release(&member, true, &v);
	expect(MEMBER_OK);
	assert_true(member_may_grow(&member, size));
	member_grow(&member, size, &v);
	expect(MEMBER_OK);
	restart();
	assert_int_equal(meta.super.size, size);
	assert_int_equal(meta.promise.epoch.number, 5);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, member_setup, member_teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_newest_view_is_kept),
		TEST(a_register_restored_from_a_backup_is_split),
		TEST(a_restored_register_that_was_changed_is_split),
		TEST(a_restored_register_that_was_configured_is_split),
		TEST(a_register_that_lacks_a_configuration_is_split),
		TEST(flushes_of_an_epoch_that_history_lacks_are_split),
		TEST(a_copy_without_its_past_is_compared_as_a_whole),
		TEST(a_copy_restored_from_a_backup_is_not_promoted),
		TEST(another_sets_or_members_copy_is_refused),
		TEST(a_replaced_peer_takes_its_bitmap_with_it),
		TEST(a_larger_set_is_no_other_one_and_a_smaller_one_is),
		TEST(a_copy_grows_when_its_files_have_and_no_process_uses_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
