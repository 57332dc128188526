/* SPDX-License-Identifier: BSD-3-Clause */
/* The next step of a daemon that enlarges its copy, and of an order that enlarges the set. */
#include "unit/mirror_core/member_fixture.h"

#include <errno.h>

#include "mirror/core/growth.h"

#define LARGER (2ull * COPY_SIZE)

static const struct growth_files as_they_were = {COPY_SIZE, 0}, longer = {LARGER, UINT64_MAX};

/* ---- one copy ---- */

static void files_are_made_longer_once(void **state)
{
	struct growth g = {0};

	assert_int_equal(growth_make_room(&g, &member, &as_they_were, COPY_SIZE, 0),
			 GROWTH_HAS_ROOM);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 0), GROWTH_BEGIN);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 0), GROWTH_UNDER_WAY);
	assert_false(growth_may_take(&g, &member, LARGER));
	growth_on_files(&g, &member, LARGER, 0, "", 0);
	assert_int_equal(meta.super.room, LARGER);
	assert_int_equal(growth_keep(&member), LARGER);
	assert_int_equal(growth_make_room(&g, &member, &longer, LARGER, 0), GROWTH_HAS_ROOM);
	assert_true(growth_may_take(&g, &member, LARGER));
	/* One of the files was truncated meanwhile. */
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 0), GROWTH_BEGIN);
}

/* Longer files do not count as room until the copy has recorded them: the files may hold foreign
 * bytes. */
static void longer_files_alone_are_no_room(void **state)
{
	struct growth g = {0};

	assert_int_equal(growth_keep(&member), COPY_SIZE);
	assert_int_equal(growth_make_room(&g, &member, &longer, LARGER, 0), GROWTH_BEGIN);
}

static void a_disk_that_is_too_small_is_tried_again_later(void **state)
{
	struct growth g = {0};

	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 10), GROWTH_BEGIN);
	growth_on_files(&g, &member, LARGER, ENOSPC, "the disk is full", 10);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 11), GROWTH_FAILED);
	assert_int_equal(g.error, ENOSPC);
	assert_string_equal(g.why, "the disk is full");
	assert_int_equal(meta.super.room, 0);
	rec.config.size = LARGER;
	assert_string_equal(growth_obstacle(&g, &member, &rec), "the disk is full");
	/* Request another size first, and the same size later. */
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER - 4096, 11),
			 GROWTH_BEGIN);
	growth_on_files(&g, &member, LARGER - 4096, ENOSPC, "the disk is full", 11);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 10 + GROWTH_RETRY_MS),
			 GROWTH_BEGIN);
}

static void a_copy_that_fails_or_is_closed_has_no_room(void **state)
{
	struct growth g = {0};

	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 0), GROWTH_BEGIN);
	growth_on_files(&g, NULL, LARGER, 0, "", 0);
	assert_false(g.is_running);
	assert_int_equal(meta.super.room, 0);
	rec.config.size = LARGER;
	assert_true(growth_is_due(&member, &rec));
	member_fail(&member, &v);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 0), GROWTH_FAILED);
	assert_int_equal(g.error, EIO);
	assert_false(growth_is_due(&member, &rec));
}

static void no_process_maps_a_copy_that_has_still_to_grow(void **state)
{
	struct growth g = {0};

	assert_false(growth_is_due(&member, &rec));
	assert_null(growth_obstacle(&g, &member, &rec));
	rec.config.size = LARGER;
	assert_true(growth_is_due(&member, &rec));
	assert_non_null(growth_obstacle(&g, &member, &rec));
	member_reserve(&member, LARGER, &v);
	member_grow(&member, LARGER, &v);
	assert_false(growth_is_due(&member, &rec));
	assert_null(growth_obstacle(&g, &member, &rec));
}

static void room_that_no_order_uses_is_given_back(void **state)
{
	struct growth g = {0};

	assert_false(growth_begin_cut(&g, &member, &rec, 1000, 100)); /* no room to give back */
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 1000), GROWTH_BEGIN);
	growth_on_files(&g, &member, LARGER, 0, "", 1000);
	assert_false(growth_begin_cut(&g, &member, &rec, 1099, 100));
	assert_int_equal(growth_make_room(&g, &member, &longer, LARGER, 1099), GROWTH_HAS_ROOM);
	/* the last request of an order is 99 ms old */
	assert_false(growth_begin_cut(&g, &member, &rec, 1198, 100));
	rec.config.size = LARGER;
	/* the order's swap has taken effect */
	assert_false(growth_begin_cut(&g, &member, &rec, 1199, 100));
	rec.config.size = COPY_SIZE;
	assert_true(growth_begin_cut(&g, &member, &rec, 1199, 100));
	assert_false(growth_begin_cut(&g, &member, &rec, 1199, 100));
	/* The files still have the length, but the room does not count any more. */
	assert_int_equal(growth_make_room(&g, &member, &longer, LARGER, 1199), GROWTH_UNDER_WAY);
	assert_false(growth_may_take(&g, &member, LARGER));
	growth_on_cut(&g, &member, EIO, 1200);
	assert_int_equal(meta.super.room, LARGER);
	assert_false(growth_begin_cut(&g, &member, &rec, 1299, 100));
	assert_true(growth_begin_cut(&g, &member, &rec, 1300, 100));
	growth_on_cut(&g, &member, 0, 1300);
	assert_int_equal(meta.super.room, COPY_SIZE);
	assert_int_equal(growth_make_room(&g, &member, &as_they_were, LARGER, 1301), GROWTH_BEGIN);
}

/* The daemon may have been restarted while an order of another host is carried out. */
static void a_daemon_that_starts_gives_back_nothing_at_once(void **state)
{
	struct growth g = {0};

	member_reserve(&member, LARGER, &v);
	assert_false(growth_begin_cut(&g, &member, &rec, 50000, 100));
	assert_false(growth_begin_cut(&g, &member, &rec, 50099, 100));
	assert_true(growth_begin_cut(&g, &member, &rec, 50100, 100));
}

/* ---- an order ---- */

static struct growth_answer answers[MIRROR_MEMBERS_MAX];
static const struct growth_order order = {.size = LARGER, .begun_ms = 1000};

static void says(unsigned slot, enum growth_room room)
{
	answers[slot] = (struct growth_answer){.answers = true,
					       .copy_id = rec.config.members[slot].id,
					       .size = LARGER,
					       .room = room};
}

static void expect_step(uint64_t now_ms, enum growth_step step, uint8_t by)
{
	uint8_t slot;

	assert_int_equal(growth_order_next(&order, &rec, answers, now_ms, &slot), step);
	if (step != GROWTH_SWAP)
		assert_int_equal(slot, by);
}

static void the_register_is_asked_when_all_in_sync_have_room(void **state)
{
	memset(answers, 0, sizeof(answers));
	rec.view.insync = 5;
	says(0, GROWTH_HAS_ROOM);
	expect_step(1000, GROWTH_WAITS, 2);
	says(2, GROWTH_UNDER_WAY);
	expect_step(1000000, GROWTH_WAITS, 2);
	says(2, GROWTH_HAS_ROOM);
	answers[2].size = LARGER - 4096; /* this answer belongs to another order */
	expect_step(1000000, GROWTH_WAITS, 2);
	says(2, GROWTH_HAS_ROOM);
	expect_step(1000, GROWTH_SWAP, 0);
	/* the copy was replaced meanwhile, and the new copy is in-sync */
	rec.config.members[2].id++;
	expect_step(1000, GROWTH_WAITS, 2);
	expect_step(1000 + GROWTH_SILENT_MS, GROWTH_SILENT, 2);
	says(2, GROWTH_HAS_ROOM);
	/* A member joined meanwhile, and has not answered. */
	rec.view.insync = 7;
	expect_step(1000, GROWTH_WAITS, 1);
}

static void a_member_that_is_silent_or_has_no_room_ends_it(void **state)
{
	memset(answers, 0, sizeof(answers));
	rec.view.insync = 3;
	says(0, GROWTH_HAS_ROOM);
	expect_step(1000 + GROWTH_SILENT_MS - 1, GROWTH_WAITS, 1);
	expect_step(1000 + GROWTH_SILENT_MS, GROWTH_SILENT, 1);
	says(1, GROWTH_FAILED);
	expect_step(1000, GROWTH_REFUSED, 1);
	/* The order does not need a member that is not in-sync. */
	rec.view.insync = 1;
	expect_step(1000, GROWTH_SWAP, 0);
}

/* On a slow disk the other members may need longer than the operator waits. */
static void a_refusal_waits_for_no_other_member(void **state)
{
	memset(answers, 0, sizeof(answers));
	rec.view.insync = 7;
	says(0, GROWTH_UNDER_WAY);
	says(1, GROWTH_UNDER_WAY);
	says(2, GROWTH_HAS_ROOM);
	expect_step(1000, GROWTH_WAITS, 0);
	says(2, GROWTH_FAILED);
	expect_step(1000, GROWTH_REFUSED, 2);
	answers[2].answers = false;
	expect_step(1000, GROWTH_WAITS, 0);
	expect_step(1000 + GROWTH_SILENT_MS, GROWTH_SILENT, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, member_setup, member_teardown)
	const struct CMUnitTest tests[] = {
		TEST(files_are_made_longer_once),
		TEST(longer_files_alone_are_no_room),
		TEST(a_disk_that_is_too_small_is_tried_again_later),
		TEST(a_copy_that_fails_or_is_closed_has_no_room),
		TEST(no_process_maps_a_copy_that_has_still_to_grow),
		TEST(room_that_no_order_uses_is_given_back),
		TEST(a_daemon_that_starts_gives_back_nothing_at_once),
		TEST(the_register_is_asked_when_all_in_sync_have_room),
		TEST(a_member_that_is_silent_or_has_no_room_ends_it),
		TEST(a_refusal_waits_for_no_other_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
