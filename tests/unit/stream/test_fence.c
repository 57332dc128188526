/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections a target cuts because of a question, and when it may answer. */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/stream/fence.h"

#define N 8

static struct fences all;
static struct fence_member m[N];
static unsigned cuts[N], wakes[N];

static void cut(struct fence_member *x)
{
	cuts[x - m]++;
}

static void wake(struct fence_member *x)
{
	wakes[x - m]++;
}

static int begin(void **state)
{
	fences_init(&all, cut, wake);
	memset(cuts, 0, sizeof(cuts));
	memset(wakes, 0, sizeof(wakes));
	for (int i = 0; i < N; i++)
		fence_member_init(&m[i]);
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < N; i++)
		fence_leave(&all, &m[i]);
	assert_int_equal(all.n_questions, 0);
	assert_true(list_empty(&all.unknown));
	return 0;
}

static struct ext_origin origin(const char *id, uint64_t serial, const char *owner)
{
	struct ext_origin o = {.serial = serial, .asks = owner != NULL};

	memcpy(o.id, id, strlen(id));
	o.has_owner = owner != NULL;
	if (owner)
		memcpy(o.owner, owner, strlen(owner));
	return o;
}

static void arrive(int i, const char *id, uint64_t serial)
{
	struct ext_origin o = origin(id, serial, NULL);

	fence_arrive(&all, &m[i]);
	assert_int_equal(fence_identify(&all, &m[i], &o), STREAM_FENCE_DONE);
}

static enum stream_fence ask(int i, const char *id, uint64_t serial, uint64_t first, uint64_t last)
{
	struct ext_origin o = origin(id, serial, NULL);

	o.asks = true;
	o.n = 1;
	o.ranges[0] = (struct ext_range_of_serials){first, last};
	return fence_identify(&all, &m[i], &o);
}

static enum stream_fence ask_owner(int i, const char *id, const char *owner)
{
	struct ext_origin o = origin(id, 1, owner);

	return fence_identify(&all, &m[i], &o);
}

static void those_that_are_named_are_cut_before_the_answer(void **state)
{
	arrive(0, "me", 1);
	arrive(1, "me", 2);
	arrive(2, "me", 3); /* this connection is alive */
	arrive(3, "you", 1);
	fence_arrive(&all, &m[4]);
	assert_int_equal(ask(4, "me", 4, 1, 2), STREAM_FENCE_WAIT);
	assert_int_equal(cuts[0], 1);
	assert_int_equal(cuts[1], 1);
	assert_int_equal(cuts[2] + cuts[3] + cuts[4], 0);
	fence_leave(&all, &m[1]);
	assert_int_equal(wakes[4], 0);
	fence_leave(&all, &m[0]);
	assert_int_equal(wakes[4], 1);
}

static void none_is_left(void **state)
{
	fence_arrive(&all, &m[0]);
	assert_int_equal(ask(0, "me", 4, 1, 3), STREAM_FENCE_DONE);
	assert_int_equal(all.n_questions, 0);
}

static void two_may_wait_for_the_same(void **state)
{
	arrive(0, "me", 1);
	fence_arrive(&all, &m[1]);
	fence_arrive(&all, &m[2]);
	assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_WAIT);
	assert_int_equal(ask(2, "me", 3, 1, 1), STREAM_FENCE_WAIT);
	fence_leave(&all, &m[0]);
	assert_int_equal(wakes[1], 1);
	assert_int_equal(wakes[2], 1);
}

static void one_that_has_not_named_itself_yet_is_cut_when_it_does(void **state)
{
	struct ext_origin o = origin("me", 1, NULL);

	/* the process of this connection was killed, and its bytes are late */
	fence_arrive(&all, &m[0]);
	fence_arrive(&all, &m[1]);
	assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_DONE);
	assert_int_equal(all.n_questions, 1);
	/* this connection came after the question, so the question does not refer to it */
	fence_arrive(&all, &m[2]);
	assert_int_equal(fence_identify(&all, &m[2], &o), STREAM_FENCE_DONE);
	assert_int_equal(fence_identify(&all, &m[0], &o), STREAM_FENCE_CUT);
	fence_leave(&all, &m[0]);
	assert_int_equal(all.n_questions, 0);
}

static void a_question_is_forgotten_when_no_older_one_is_unknown(void **state)
{
	fence_arrive(&all, &m[0]);
	fence_arrive(&all, &m[1]);
	assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_DONE);
	fence_pass(&all, &m[0]); /* the peer of m[0] does not take part */
	assert_int_equal(all.n_questions, 0);
}

static void an_owner_ends_what_its_other_processes_had(void **state)
{
	fence_arrive(&all, &m[0]);
	assert_int_equal(ask_owner(0, "killed", "boat"), STREAM_FENCE_DONE);
	/* without an owner's name the target takes the connection for another program's */
	arrive(1, "killed", 2);
	fence_arrive(&all, &m[2]);
	assert_int_equal(ask_owner(2, "again", "car"), STREAM_FENCE_DONE);
	fence_arrive(&all, &m[3]);
	assert_int_equal(ask_owner(3, "again", "boat"), STREAM_FENCE_WAIT);
	assert_int_equal(cuts[0], 1);
	assert_int_equal(cuts[1] + cuts[2] + cuts[3], 0);
	fence_arrive(&all, &m[4]);
	assert_int_equal(ask_owner(4, "again", "boat"), STREAM_FENCE_WAIT);
	assert_int_equal(cuts[3], 0); /* a living connection of the same process */
	fence_leave(&all, &m[0]);
	assert_int_equal(wakes[3] + wakes[4], 2);
}

static void an_asker_that_leaves_is_not_woken(void **state)
{
	arrive(0, "me", 1);
	fence_arrive(&all, &m[1]);
	assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_WAIT);
	fence_leave(&all, &m[1]);
	fence_leave(&all, &m[0]);
	assert_int_equal(wakes[1], 0);
}

static void there_is_a_limit_to_questions_of_a_connection(void **state)
{
	fence_arrive(&all, &m[0]); /* this connection never names itself */
	fence_arrive(&all, &m[1]);
	for (unsigned i = 0; i < FENCE_ASKS_MAX; i++)
		assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_DONE);
	assert_int_equal(ask(1, "me", 2, 1, 1), STREAM_FENCE_BUSY);
	fence_arrive(&all, &m[2]);
	assert_int_equal(ask(2, "you", 2, 1, 1), STREAM_FENCE_DONE);
}

static void fill_with_questions(void)
{
	struct fence_member asker;
	struct ext_origin o = origin("them", 1, "boat");

	while (all.n_questions < FENCE_QUESTIONS_MAX) {
		fence_member_init(&asker);
		fence_arrive(&all, &asker);
		assert_int_equal(fence_identify(&all, &asker, &o), STREAM_FENCE_DONE);
		fence_leave(&all, &asker);
	}
}

/* A peer that connects, stays silent and asks on other connections must not keep other peers
 * out. */
static void one_that_never_names_itself_is_cut_when_there_is_no_room(void **state)
{
	struct ext_origin o = origin("silent", 1, NULL);

	fence_arrive(&all, &m[0]); /* this connection never names itself */
	fence_arrive(&all, &m[1]);
	fill_with_questions();
	/* this connection came last, so it still has time to name itself */
	fence_arrive(&all, &m[2]);
	assert_int_equal(cuts[0] + cuts[1], 0);
	fence_arrive(&all, &m[3]);
	assert_int_equal(ask(3, "you", 2, 1, 1), STREAM_FENCE_DONE);
	assert_int_equal(cuts[0], 1);
	assert_int_equal(cuts[1], 1);
	assert_int_equal(cuts[2], 0);
	assert_int_equal(all.n_questions, 1); /* this question may refer to m[2] */
	assert_int_equal(fence_identify(&all, &m[0], &o), STREAM_FENCE_CUT);
	assert_int_equal(fence_identify(&all, &m[2], &o), STREAM_FENCE_DONE);
}

#define TEST(x) cmocka_unit_test_setup_teardown(x, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(those_that_are_named_are_cut_before_the_answer),
		TEST(none_is_left),
		TEST(two_may_wait_for_the_same),
		TEST(one_that_has_not_named_itself_yet_is_cut_when_it_does),
		TEST(a_question_is_forgotten_when_no_older_one_is_unknown),
		TEST(an_owner_ends_what_its_other_processes_had),
		TEST(an_asker_that_leaves_is_not_woken),
		TEST(there_is_a_limit_to_questions_of_a_connection),
		TEST(one_that_never_names_itself_is_cut_when_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
