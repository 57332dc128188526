/* SPDX-License-Identifier: BSD-3-Clause */
/* The order VERIFY finds real differences between copies, and no false ones while flushes go on. */
#include "mapped.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "mirror/wire/packet.h"

enum { PATIENCE_MS = 30000, FLUSHERS = 3 };

static struct packet_ordered verify(uint8_t member, bool repair)
{
	struct packet_order_request order = {.order = PACKET_ORDER_VERIFY,
					     .member = member,
					     .flag = repair,
					     .timeout_ms = PATIENCE_MS};

	return standin_order(s, &order);
}

static struct packet_ordered scrub(void)
{
	struct packet_order_request order = {.order = PACKET_ORDER_VERIFY,
					     .member = MIRROR_NO_SLOT,
					     .is_automatic = true,
					     .timeout_ms = PATIENCE_MS};

	return standin_order(s, &order);
}

static void assert_verified(const struct packet_ordered *o, unsigned members, uint64_t different)
{
	if (o->status != PACKET_OK)
		fail_msg("%s: %s", packet_status_2str(o->status), o->text);
	assert_int_equal(o->verified.compared, (uint64_t)members * STANDIN_SIZE);
	assert_int_equal(o->verified.different, different);
}

static bool take_event(enum rpmirror_event_type type, struct rpmirror_event *ev)
{
	struct timespec pause = {0, 5000000};

	for (int waited = 0; waited < PATIENCE_MS; waited += 5) {
		ev->size = sizeof(*ev);
		while (!rpmirror_next_event(m, ev))
			if (ev->type == type)
				return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void test_what_differs_is_named_and_repaired_on_request(void **state)
{
	struct rpmirror_state st = {.size = sizeof(st)};
	struct packet_ordered o = verify(MIRROR_NO_SLOT, false);
	struct rpmirror_event ev;

	assert_verified(&o, 2, 0);
	standin_spoil(s, 2);
	o = verify(1, false);
	assert_verified(&o, 1, 0);
	o = verify(2, true);
	assert_verified(&o, 1, 4096);
	/* The answer comes after the member is in-sync again. */
	assert_int_equal(standin_record(s).view.insync, 7);
	assert_memory_equal(standin_copy(s, 2), standin_copy(s, 0), STANDIN_SIZE);
	assert_int_equal(rpmirror_get_state(m, &st), 0);
	assert_int_equal(st.members[2].remainder, 0);
	assert_true(take_event(RPMIRROR_EVENT_VERIFIED, &ev));
	assert_int_equal(ev.value, 0);
	assert_true(take_event(RPMIRROR_EVENT_VERIFIED, &ev));
	assert_int_equal(ev.value, 0);
	assert_true(take_event(RPMIRROR_EVENT_VERIFIED, &ev));
	assert_int_equal(ev.value, 4096);
	assert_int_equal(ev.member, 2);
}

static void assert_difference(const struct packet_ordered *o, unsigned member,
			      enum finding_wrong wrong, enum packet_mended mended)
{
	const struct packet_difference *d = &o->verified.differences[0];

	assert_int_equal(o->verified.count, 1);
	assert_int_equal(d->member, member);
	assert_int_equal(d->wrong, wrong);
	assert_int_equal(d->mended, mended);
	assert_int_equal(d->range.offset, 0);
	assert_int_equal(d->range.len, 4096);
}

/* A majority of equal copies does not cause an overwrite of the wrong copy, but the wrong copy
 * cannot be promoted any more. */
static void test_a_member_that_is_wrong_is_excluded_until_it_is_resumed(void **state)
{
	struct packet_order_request resume = {
		.order = PACKET_ORDER_RESUME, .member = 2, .timeout_ms = PATIENCE_MS};
	struct packet_ordered o;

	standin_spoil(s, 2);
	o = verify(MIRROR_NO_SLOT, false);
	assert_verified(&o, 2, 4096);
	assert_difference(&o, 2, FINDING_MEMBER, PACKET_IS_DUE);
	assert_int_equal(o.verified.members, 6);
	assert_int_equal(o.verified.left, 4096);
	assert_int_equal(standin_record(s).view.insync, 3);
	assert_memory_not_equal(standin_copy(s, 2), standin_copy(s, 0), 4096);
	assert_int_equal(standin_order(s, &resume).status, PACKET_OK);
	for (int waited = 0; standin_record(s).view.insync != 7 && waited < PATIENCE_MS; waited++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	assert_int_equal(standin_record(s).view.insync, 7);
	assert_memory_equal(standin_copy(s, 2), standin_copy(s, 0), STANDIN_SIZE);
}

static void test_the_set_is_not_taken_below_its_copies(void **state)
{
	struct packet_ordered o;

	standin_spoil(s, 2);
	o = verify(MIRROR_NO_SLOT, false);
	assert_verified(&o, 2, 4096);
	assert_difference(&o, 2, FINDING_MEMBER, PACKET_DIFFERS_STILL);
	assert_int_equal(standin_record(s).view.insync, 7);
	o = scrub();
	assert_difference(&o, 2, FINDING_MEMBER, PACKET_DIFFERS_STILL);
	assert_int_equal(standin_record(s).view.insync, 7);
}

static int setup_three_copies(void **state)
{
	setup(state);
	standin_set_min_copies(s, 3);
	map_set();
	return 0;
}

static void test_a_scrub_repairs_what_a_majority_decides(void **state)
{
	struct packet_ordered o;

	standin_spoil(s, 2);
	o = scrub();
	assert_verified(&o, 2, 4096);
	assert_difference(&o, 2, FINDING_MEMBER, PACKET_IS_REPAIRED);
	assert_int_equal(o.verified.left, 0);
	assert_int_equal(standin_record(s).view.insync, 7);
	assert_memory_equal(standin_copy(s, 2), standin_copy(s, 0), STANDIN_SIZE);
}

/* The primary's medium has lost acknowledged data that two other copies have. */
static void test_a_scrub_does_not_spread_what_the_primary_alone_has(void **state)
{
	struct packet_ordered o;
	struct rpmirror_event ev;
	uint8_t before[4096];

	memcpy(before, standin_copy(s, 1), sizeof(before));
	standin_spoil(s, 0);
	o = scrub();
	assert_verified(&o, 2, 8192);
	assert_int_equal(o.verified.left, 8192);
	assert_int_equal(o.verified.left_members, 6);
	assert_int_equal(o.verified.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(o.verified.differences[i].wrong, FINDING_PRIMARY);
		assert_int_equal(o.verified.differences[i].mended, PACKET_DIFFERS_STILL);
	}
	assert_memory_equal(standin_copy(s, 1), before, sizeof(before));
	assert_memory_equal(standin_copy(s, 2), before, sizeof(before));
	assert_int_equal(standin_record(s).view.insync, 7);
	assert_true(take_event(RPMIRROR_EVENT_VERIFIED, &ev));
	assert_non_null(strstr(ev.text, "the primary's copy is the one that differs"));
	o = verify(MIRROR_NO_SLOT, true); /* an operator decides, and orders the repair */
	assert_int_equal(o.verified.left, 0);
	assert_memory_equal(standin_copy(s, 1), standin_copy(s, 0), STANDIN_SIZE);
}

/* With two copies, neither has a majority. */
static void test_a_scrub_of_two_copies_decides_nothing(void **state)
{
	struct packet_ordered o;

	standin_spoil(s, 1);
	o = scrub();
	assert_verified(&o, 1, 4096);
	assert_difference(&o, 1, FINDING_UNDECIDED, PACKET_DIFFERS_STILL);
	assert_memory_not_equal(standin_copy(s, 1), standin_copy(s, 0), 4096);
	assert_int_equal(standin_record(s).view.insync, 3);
}

/* Three copies have three different values. */
static void test_a_scrub_of_copies_that_all_differ_decides_nothing(void **state)
{
	struct packet_ordered o;

	standin_spoil(s, 1);
	standin_spoil(s, 2);
	o = scrub();
	assert_verified(&o, 2, 8192);
	assert_int_equal(o.verified.differences[0].wrong, FINDING_UNDECIDED);
	assert_int_equal(o.verified.left, 8192);
	assert_int_equal(standin_record(s).view.insync, 7);
}

static int setup_two(void **state)
{
	s = standin_new(2);
	map_set();
	return 0;
}

static volatile bool stop_flushing;

static void *flush_until_stopped(void *arg)
{
	uint64_t *word = (uint64_t *)(void *)(addr + 64 + (size_t)(uintptr_t)arg * 4096 * 20);
	uint64_t failed = 0;

	while (!__atomic_load_n(&stop_flushing, __ATOMIC_RELAXED) && !failed) {
		struct rpmirror_range range = {word, 8 * 4096};

		for (unsigned block = 0; block < 8; block++)
			word[block * 512]++;
		failed = rpmirror_flush(m, &range, 1, 0, NULL) != 0;
	}
	return (void *)(uintptr_t)failed;
}

/* Flushes constantly write to the pages that are compared. */
static void test_flushes_are_no_differences(void **state)
{
	pthread_t threads[FLUSHERS];
	struct packet_ordered o;
	void *failed;

	stop_flushing = false;
	for (uintptr_t i = 0; i < FLUSHERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, flush_until_stopped, (void *)i),
				 0);
	for (unsigned round = 0; round < 3; round++) {
		o = verify(MIRROR_NO_SLOT, false);
		assert_verified(&o, 2, 0);
	}
	__atomic_store_n(&stop_flushing, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < FLUSHERS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(standin_record(s).view.insync, 7);
	assert_flushed(7, 0, STANDIN_SIZE);
}

static void test_a_copy_that_cannot_be_compared_is_reported(void **state)
{
	struct packet_ordered o = verify(0, false); /* member 0 is the primary */

	assert_int_equal(o.status, PACKET_NOT_INSYNC);
	standin_cut(s, 1);
	standin_cut(s, 2);
	assert_int_equal(rpmirror_flush(m, &(struct rpmirror_range){addr, 8}, 1, 0, NULL), 0);
	o = verify(MIRROR_NO_SLOT, false);
	assert_int_equal(o.status, PACKET_NOT_INSYNC);
	assert_non_null(strstr(o.text, "only the primary's copy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAPPED(test_what_differs_is_named_and_repaired_on_request),
		MAPPED(test_a_member_that_is_wrong_is_excluded_until_it_is_resumed),
		cmocka_unit_test_setup_teardown(test_the_set_is_not_taken_below_its_copies,
						setup_three_copies, teardown),
		MAPPED(test_a_scrub_repairs_what_a_majority_decides),
		MAPPED(test_a_scrub_does_not_spread_what_the_primary_alone_has),
		cmocka_unit_test_setup_teardown(test_a_scrub_of_two_copies_decides_nothing,
						setup_two, teardown),
		MAPPED(test_a_scrub_of_copies_that_all_differ_decides_nothing),
		MAPPED(test_flushes_are_no_differences),
		MAPPED(test_a_copy_that_cannot_be_compared_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
