/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "softrnic/rnic/srq.h"

static struct srq srq;
static struct rq_wr taken;
static unsigned limits;

/* A user that waits for receives. When it is notified it takes the receives that it finds, as a QP
 * does. */
struct user {
	struct srq_waiter waiter;
	/* greed: maximum number of receives that it takes each time */
	unsigned gets, notified, got, greed;
};

static void user_get(struct srq_waiter *waiter)
{
	container_of(waiter, struct user, waiter)->gets++;
}

static void user_notify(struct srq_waiter *waiter)
{
	struct user *user = container_of(waiter, struct user, waiter);

	user->notified++;
	for (unsigned i = 0; i < user->greed && srq_take(&srq, &taken, waiter); i++)
		user->got++;
}

static struct user user_of(unsigned greed)
{
	return (struct user){.waiter = {.notify = user_notify, .get = user_get}, .greed = greed};
}

static void count_limit(struct srq *s)
{
	limits++;
}

static int setup(void **state)
{
	memset(&srq, 0, sizeof(srq));
	srq.limit_reached = count_limit;
	limits = 0;
	return srq_init(&srq, 8, 2);
}

static int teardown(void **state)
{
	srq_fini(&srq);
	return 0;
}

static int post(uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad = NULL;

	return srq_post(&srq, &wr, &bad);
}

static void receives_come_out_in_order_with_their_segments(void **state)
{
	struct ibv_sge sge[2] = {{.addr = 1, .length = 2, .lkey = 3},
				 {.addr = 4, .length = 5, .lkey = 6}};
	struct rq rq;
	struct rq_wr wr;
	uint64_t in = 0, out = 0;

	assert_int_equal(rq_init(&rq, 3, 2), 0);
	assert_false(rq_take(&rq, &wr));
	for (int round = 0; round < 7; round++) {
		for (int i = 0; i < 2; i++, in++) {
			struct ibv_recv_wr post_wr = {
				.wr_id = in, .num_sge = (int)(in % 3), .sg_list = sge};

			assert_int_equal(rq_post(&rq, &post_wr), 0);
		}
		for (int i = 0; i < 2; i++, out++) {
			assert_true(rq_take(&rq, &wr));
			assert_int_equal(wr.wr_id, out);
			assert_int_equal(wr.num_sge, out % 3);
			assert_memory_equal(wr.sge, sge, wr.num_sge * sizeof(*sge));
		}
	}
	rq_fini(&rq);
}

static void a_ring_refuses_too_many_receives_and_segments(void **state)
{
	struct ibv_recv_wr wr = {.num_sge = 2};
	struct rq rq;

	assert_int_equal(rq_init(&rq, 1, RNIC_MAX_SGE + 1), -EINVAL);
	assert_int_equal(rq_init(&rq, 1, 1), 0);
	assert_int_equal(rq_post(&rq, &wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(rq_post(&rq, &wr), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(rq_post(&rq, &wr), 0);
	assert_int_equal(rq_post(&rq, &wr), ENOMEM);
	rq_fini(&rq);
	assert_int_equal(rq_init(&rq, 0, 1), 0);
	assert_int_equal(rq_post(&rq, &wr), ENOMEM);
	assert_false(rq_take(&rq, &taken));
	rq_fini(&rq);
}

static void a_chain_is_posted_up_to_the_first_bad_one(void **state)
{
	struct ibv_recv_wr wr[3] = {{.wr_id = 1, .next = &wr[1]},
				    {.wr_id = 2, .next = &wr[2], .num_sge = 3},
				    {.wr_id = 3}};
	struct ibv_recv_wr *bad = NULL;
	struct user user = user_of(1);

	list_init(&user.waiter.link);
	assert_int_equal(srq_post(&srq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_true(srq_take(&srq, &taken, &user.waiter));
	assert_int_equal(taken.wr_id, 1);
	assert_false(srq_take(&srq, &taken, &user.waiter));
	srq_cancel(&srq, &user.waiter);
}

static void a_waiter_is_notified_once_by_a_post(void **state)
{
	struct user user = user_of(1);

	list_init(&user.waiter.link);
	assert_false(srq_take(&srq, &taken, &user.waiter));
	assert_false(srq_take(&srq, &taken, &user.waiter));
	assert_int_equal(post(1), 0);
	assert_int_equal(user.gets, 1);
	assert_int_equal(user.notified, 1);
	assert_int_equal(user.got, 1);
	assert_int_equal(post(2), 0);
	assert_int_equal(user.notified, 1);
}

static void a_greedy_waiter_queues_again_without_a_loop(void **state)
{
	struct user user = user_of(100);

	list_init(&user.waiter.link);
	assert_false(srq_take(&srq, &taken, &user.waiter));
	assert_int_equal(post(1), 0);
	assert_int_equal(user.notified, 1);
	assert_int_equal(post(2), 0);
	assert_int_equal(user.notified, 2);
	assert_int_equal(user.got, 2);
	srq_cancel(&srq, &user.waiter);
}

static void one_receive_goes_past_a_waiter_that_has_no_use_for_it(void **state)
{
	struct user failed = user_of(0), alive = user_of(1), late = user_of(1);

	list_init(&failed.waiter.link);
	list_init(&alive.waiter.link);
	list_init(&late.waiter.link);
	assert_false(srq_take(&srq, &taken, &failed.waiter));
	assert_false(srq_take(&srq, &taken, &alive.waiter));
	assert_false(srq_take(&srq, &taken, &late.waiter));
	assert_int_equal(post(1), 0);
	assert_int_equal(failed.notified, 1);
	assert_int_equal(alive.got, 1);
	assert_int_equal(late.notified, 0);
	srq_cancel(&srq, &late.waiter);
}

static void a_cancelled_waiter_is_not_notified(void **state)
{
	struct user user = user_of(1);

	list_init(&user.waiter.link);
	assert_false(srq_take(&srq, &taken, &user.waiter));
	srq_cancel(&srq, &user.waiter);
	srq_cancel(&srq, &user.waiter);
	assert_int_equal(post(1), 0);
	assert_int_equal(user.notified, 0);
}

/* A user that drops messages without a receive registers no waiter, and may be destroyed before a
 * receive is posted. */
static void nothing_waits_without_a_waiter(void **state)
{
	assert_false(srq_take(&srq, &taken, NULL));
	assert_true(list_empty(&srq.waiters));
	assert_int_equal(post(1), 0);
	assert_true(srq_take(&srq, &taken, NULL));
	assert_int_equal(taken.wr_id, 1);
	assert_false(srq_take(&srq, &taken, NULL));
	assert_true(list_empty(&srq.waiters));
}

static void the_limit_event_comes_once_when_the_count_drops_below(void **state)
{
	struct user user = user_of(1);

	list_init(&user.waiter.link);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post(i), 0);
	srq_arm_limit(&srq, 3);
	assert_true(srq_take(&srq, &taken, &user.waiter)); /* 3 receives are left after this */
	assert_int_equal(limits, 0);
	assert_true(srq_take(&srq, &taken, &user.waiter)); /* 2 receives are left after this */
	assert_int_equal(limits, 1);
	assert_true(srq_take(&srq, &taken, &user.waiter));
	assert_int_equal(limits, 1);
	srq_arm_limit(&srq, 1);
	assert_true(srq_take(&srq, &taken, &user.waiter));
	assert_int_equal(limits, 2);
}

enum { THREADS = 3, TOTAL = 30000 };

struct sleeper {
	struct srq_waiter waiter;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool notified;
};

static _Atomic unsigned received, holders;
static atomic_bool over;

static void sleeper_get(struct srq_waiter *waiter)
{
	atomic_fetch_add(&holders, 1);
}

static void sleeper_notify(struct srq_waiter *waiter)
{
	struct sleeper *s = container_of(waiter, struct sleeper, waiter);

	pthread_mutex_lock(&s->lock);
	s->notified = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_sub(&holders, 1);
}

/*
 * Take receives until there are none, then sleep until notified. If a notification is missing, the
 * test hangs.
 */
static void *take_and_sleep(void *arg)
{
	struct sleeper *s = arg;
	struct rq_wr wr;

	while (!atomic_load(&over)) {
		if (srq_take(&srq, &wr, &s->waiter)) {
			atomic_fetch_add(&received, 1);
			continue;
		}
		pthread_mutex_lock(&s->lock);
		while (!s->notified && !atomic_load(&over))
			pthread_cond_wait(&s->cond, &s->lock);
		s->notified = false;
		pthread_mutex_unlock(&s->lock);
	}
	srq_cancel(&srq, &s->waiter);
	return NULL;
}

static void no_post_is_missed_by_sleeping_takers(void **state)
{
	static struct sleeper sleepers[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		sleepers[i] =
			(struct sleeper){.waiter = {.notify = sleeper_notify, .get = sleeper_get}};
		list_init(&sleepers[i].waiter.link);
		pthread_mutex_init(&sleepers[i].lock, NULL);
		pthread_cond_init(&sleepers[i].cond, NULL);
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_sleep, &sleepers[i]),
				 0);
	}
	for (unsigned posted = 0; posted < TOTAL;) {
		int err = post(posted);

		assert_true(err == 0 || err == ENOMEM);
		posted += err == 0;
	}
	while (atomic_load(&received) < TOTAL)
		sched_yield();
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++) {
		atomic_fetch_add(&holders, 1);
		sleeper_notify(&sleepers[i].waiter);
		pthread_join(threads[i], NULL);
	}
	assert_int_equal(atomic_load(&received), TOTAL);
	assert_int_equal(atomic_load(&holders), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_come_out_in_order_with_their_segments),
		cmocka_unit_test_setup_teardown(a_ring_refuses_too_many_receives_and_segments,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_chain_is_posted_up_to_the_first_bad_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_waiter_is_notified_once_by_a_post, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_greedy_waiter_queues_again_without_a_loop, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			one_receive_goes_past_a_waiter_that_has_no_use_for_it, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_waits_without_a_waiter, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cancelled_waiter_is_not_notified, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			the_limit_event_comes_once_when_the_count_drops_below, setup, teardown),
		cmocka_unit_test_setup_teardown(no_post_is_missed_by_sleeping_takers, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
