/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <sched.h>
#include <cmocka.h>

#include "softrnic/rnic/cq.h"

static struct cq cq;
static unsigned notified, overruns;

static void count_notify(struct cq *c)
{
	notified++;
}

static void count_overrun(struct cq *c)
{
	overruns++;
}

static void start(uint32_t size)
{
	memset(&cq, 0, sizeof(cq));
	cq.notify = count_notify;
	cq.overrun = count_overrun;
	notified = overruns = 0;
	assert_int_equal(cq_init(&cq, size), 0);
}

static struct ibv_wc wc_of(uint64_t wr_id, uint32_t qp_num, enum ibv_wc_status status)
{
	return (struct ibv_wc){.wr_id = wr_id, .qp_num = qp_num, .status = status};
}

static int push(uint64_t wr_id)
{
	struct ibv_wc wc = wc_of(wr_id, 1, IBV_WC_SUCCESS);

	return cq_push(&cq, &wc, false, NULL);
}

static void push_special(enum ibv_wc_status status, bool solicited)
{
	struct ibv_wc wc = wc_of(0, 1, status);

	assert_int_equal(cq_push(&cq, &wc, solicited, NULL), 0);
}

static void completions_come_out_in_order_across_the_wrap(void **state)
{
	struct ibv_wc wc[4];
	uint64_t in = 0, out = 0;

	start(7);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 5; i++)
			assert_int_equal(push(in++), 0);
		for (int left = 5; left > 0;) {
			int n = cq_poll(&cq, 4, wc);

			assert_int_equal(n, left > 4 ? 4 : left);
			for (int i = 0; i < n; i++)
				assert_int_equal(wc[i].wr_id, out++);
			left -= n;
		}
	}
	cq_fini(&cq);
}

static void empty_is_seen_without_polling(void **state)
{
	struct ibv_wc wc;

	start(2);
	assert_true(cq_is_empty(&cq));
	assert_int_equal(cq_poll(&cq, 1, &wc), 0);
	assert_int_equal(push(1), 0);
	assert_false(cq_is_empty(&cq));
	assert_int_equal(cq_poll(&cq, 0, &wc), 0);
	assert_int_equal(cq_poll(&cq, 1, &wc), 1);
	assert_true(cq_is_empty(&cq));
	cq_fini(&cq);
}

static void arming_sees_only_what_comes_later_and_only_once(void **state)
{
	start(8);
	push(1);
	cq_arm(&cq, false);
	assert_int_equal(notified, 0);
	push(2);
	push(3);
	assert_int_equal(notified, 1);
	cq_arm(&cq, false);
	push(4);
	assert_int_equal(notified, 2);
	cq_fini(&cq);
}

static void solicited_arming_skips_ordinary_completions(void **state)
{
	start(8);
	cq_arm(&cq, true);
	push(1);
	assert_int_equal(notified, 0);
	push_special(IBV_WC_SUCCESS, true);
	assert_int_equal(notified, 1);
	cq_arm(&cq, true);
	push_special(IBV_WC_WR_FLUSH_ERR, false);
	assert_int_equal(notified, 2);
	cq_fini(&cq);
}

static void arming_for_solicited_does_not_take_back_arming_for_all(void **state)
{
	start(8);
	cq_arm(&cq, false);
	cq_arm(&cq, true);
	push(1);
	assert_int_equal(notified, 1);
	cq_fini(&cq);
}

static void overrun_is_reported_once_and_stays(void **state)
{
	struct ibv_wc wc[4];

	start(2);
	assert_int_equal(push(1), 0);
	assert_int_equal(push(2), 0);
	assert_int_equal(overruns, 0);
	assert_int_equal(push(3), -EOVERFLOW);
	assert_int_equal(push(4), -EOVERFLOW);
	assert_int_equal(overruns, 1);
	assert_int_equal(cq_poll(&cq, 4, wc), 2);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(push(5), -EOVERFLOW);
	assert_int_equal(overruns, 1);
	assert_true(cq_is_empty(&cq));
	cq_fini(&cq);
}

/* --- completions that go straight to the polling thread ----------------------------------- */

static bool take(struct cq_taker *t, uint64_t wr_id)
{
	struct ibv_wc wc = wc_of(wr_id, 1, IBV_WC_SUCCESS);

	return cq_take(t, &cq, &wc);
}

static void a_taker_gets_as_much_as_it_has_room_for(void **state)
{
	struct ibv_wc wc[2];
	struct cq_taker t = {.cq = &cq, .wc = wc, .room = 2};
	struct cq_taker none = {.cq = &cq, .wc = wc, .room = 0};

	start(4);
	assert_true(take(&t, 1));
	assert_true(take(&t, 2));
	assert_false(take(&t, 3));
	assert_false(take(&none, 3));
	assert_int_equal(t.got, 2);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[1].wr_id, 2);
	assert_true(cq_is_empty(&cq));
	cq_fini(&cq);
}

static void a_taker_gets_nothing_of_another_queue(void **state)
{
	struct ibv_wc wc;
	struct cq other;
	struct cq_taker t = {.cq = &other, .wc = &wc, .room = 1};

	start(4);
	assert_false(take(&t, 1));
	assert_int_equal(t.got, 0);
	cq_fini(&cq);
}

static void a_taker_gets_nothing_after_what_is_queued(void **state)
{
	struct ibv_wc wc;
	struct cq_taker t = {.cq = &cq, .wc = &wc, .room = 1};

	start(4);
	push(1);
	assert_false(take(&t, 2));
	assert_int_equal(cq_poll(&cq, 1, &wc), 1);
	assert_true(take(&t, 2));
	cq_fini(&cq);
}

/* While the queue is armed the polling thread gets nothing directly: another thread may have armed
 * it. */
static void a_taker_gets_nothing_while_the_queue_is_armed(void **state)
{
	struct ibv_wc wc;
	struct cq_taker t = {.cq = &cq, .wc = &wc, .room = 1};

	for (int solicited_only = 0; solicited_only <= 1; solicited_only++) {
		start(4);
		t.got = 0;
		cq_arm(&cq, solicited_only);
		assert_false(take(&t, 1));
		push_special(IBV_WC_SUCCESS, true);
		assert_int_equal(notified, 1);
		assert_int_equal(cq_poll(&cq, 1, &wc), 1);
		assert_true(take(&t, 2));
		assert_int_equal(notified, 1);
		cq_fini(&cq);
	}
}

static void a_taker_gets_nothing_after_a_loss(void **state)
{
	struct ibv_wc wc;
	struct cq_taker t = {.cq = &cq, .wc = &wc, .room = 1};

	start(1);
	assert_int_equal(push(1), 0);
	assert_int_equal(push(2), -EOVERFLOW);
	assert_int_equal(cq_poll(&cq, 1, &wc), 1);
	assert_false(take(&t, 3));
	cq_fini(&cq);
}

static void purge_drops_one_qp_and_keeps_the_order_of_the_rest(void **state)
{
	struct ibv_wc wc[8];

	start(6);
	for (int i = 0; i < 4; i++)
		push((unsigned)i);
	assert_int_equal(cq_poll(&cq, 4, wc), 4);
	/* so many that positions wrap around the end of the ring */
	for (unsigned i = 0; i < 6; i++) {
		struct ibv_wc one = wc_of(i, i % 2 ? 7 : 9, IBV_WC_SUCCESS);

		assert_int_equal(cq_push(&cq, &one, false, NULL), 0);
	}
	cq_purge(&cq, 7);
	assert_int_equal(cq_poll(&cq, 8, wc), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(wc[i].wr_id, 2 * i);
	cq_fini(&cq);
}

/* Resize while the entries wrap around the end of the ring: their order must stay. */
static void a_resized_queue_keeps_what_is_queued_in_order(void **state)
{
	atomic_uint uncollected = 0;
	struct ibv_wc wc[8];

	start(4);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(push(i), 0);
	assert_int_equal(cq_poll(&cq, 2, wc), 2);
	for (uint64_t i = 3; i < 6; i++) {
		wc[0] = wc_of(i, 1, IBV_WC_SUCCESS);
		assert_int_equal(cq_push(&cq, wc, false, &uncollected), 0);
	}
	assert_int_equal(cq_resize(&cq, 8), 0);
	assert_int_equal(push(6), 0);
	assert_int_equal(cq_resize(&cq, 5), 0);
	assert_int_equal(cq_poll(&cq, 8, wc), 5);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(wc[i].wr_id, i + 2);
	assert_int_equal(uncollected, 0);
	cq_fini(&cq);
}

static void a_queue_is_not_resized_below_what_it_holds(void **state)
{
	struct ibv_wc wc[3];

	start(4);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(push(i), 0);
	assert_int_equal(cq_resize(&cq, 2), -EINVAL);
	assert_int_equal(cq_resize(&cq, 0), -EINVAL);
	assert_int_equal(push(3), 0); /* the queue has as many slots as before */
	assert_int_equal(cq_resize(&cq, 4), 0);
	assert_int_equal(push(4), -EOVERFLOW);
	assert_int_equal(cq_poll(&cq, 3, wc), 3);
	assert_int_equal(wc[2].wr_id, 2);
	cq_fini(&cq);
}

static uint64_t fake_ns;

static uint64_t fake_now(void)
{
	return fake_ns;
}

static void a_completion_has_the_time_of_its_push(void **state)
{
	struct ibv_wc wc;
	uint64_t at;

	start(2);
	cq.now = fake_now;
	assert_false(cq_poll_stamped(&cq, &wc, &at));
	for (uint64_t i = 0; i < 5; i++) {
		fake_ns = 100 + i;
		assert_int_equal(push(i), 0);
		fake_ns = 1000;
		assert_true(cq_poll_stamped(&cq, &wc, &at));
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(at, 100 + i);
	}
	assert_true(cq_is_empty(&cq));
	cq_fini(&cq);
}

static void no_size_and_no_queue_are_handled(void **state)
{
	struct cq zero = {0};

	assert_int_equal(cq_init(&zero, 0), -EINVAL);
	cq_fini(&zero);
}

enum { PRODUCERS = 3, EACH = 20000 };

static void *produce(void *arg)
{
	uint32_t qp_num = (uint32_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < EACH;) {
		struct ibv_wc wc = wc_of(i, qp_num, IBV_WC_SUCCESS);

		/*
		 * Use only this producer's share of the ring, as a QP with a bounded send queue
		 * does.
		 */
		if (atomic_load(&cq.count) + PRODUCERS < cq.size &&
		    cq_push(&cq, &wc, false, NULL) == 0)
			i++;
		else
			sched_yield(); /* in case there are fewer processors than threads */
	}
	return NULL;
}

static void many_producers_keep_their_own_order(void **state)
{
	uint64_t next[PRODUCERS] = {0}, total = 0;
	pthread_t threads[PRODUCERS];
	struct ibv_wc wc[16];

	start(64);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	while (total < (uint64_t)PRODUCERS * EACH) {
		int n = cq_is_empty(&cq) ? 0 : cq_poll(&cq, 16, wc);

		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, next[wc[i].qp_num]++);
		total += (unsigned)n;
		if (n == 0)
			sched_yield();
		if (total % 8 == 0)
			cq_arm(&cq, false);
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(overruns, 0);
	assert_true(notified > 0);
	cq_fini(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_come_out_in_order_across_the_wrap),
		cmocka_unit_test(empty_is_seen_without_polling),
		cmocka_unit_test(arming_sees_only_what_comes_later_and_only_once),
		cmocka_unit_test(solicited_arming_skips_ordinary_completions),
		cmocka_unit_test(arming_for_solicited_does_not_take_back_arming_for_all),
		cmocka_unit_test(overrun_is_reported_once_and_stays),
		cmocka_unit_test(a_taker_gets_as_much_as_it_has_room_for),
		cmocka_unit_test(a_taker_gets_nothing_of_another_queue),
		cmocka_unit_test(a_taker_gets_nothing_after_what_is_queued),
		cmocka_unit_test(a_taker_gets_nothing_while_the_queue_is_armed),
		cmocka_unit_test(a_taker_gets_nothing_after_a_loss),
		cmocka_unit_test(purge_drops_one_qp_and_keeps_the_order_of_the_rest),
		cmocka_unit_test(a_resized_queue_keeps_what_is_queued_in_order),
		cmocka_unit_test(a_queue_is_not_resized_below_what_it_holds),
		cmocka_unit_test(a_completion_has_the_time_of_its_push),
		cmocka_unit_test(no_size_and_no_queue_are_handled),
		cmocka_unit_test(many_producers_keep_their_own_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
