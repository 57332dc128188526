/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that may wait before they are sent, and sends whose sources are in memory that can
 * stall. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN 65536

static void post_unsignalled(struct bench *t, uint64_t id, size_t len)
{
	assert_int_equal(end_post(t->a, IBV_WR_RDMA_WRITE, id, t->mra, 0, len, t->mrb, 0, NOSIG),
			 0);
}

/* If the requests of a full queue still waited, each later post would return ENOMEM, and no slot
 * would ever become free. */
static void writes_wait_until_the_queue_is_full(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	for (uint64_t i = 1; i < o.depth; i++) {
		post_unsignalled(&t, i, 8);
		assert_true(qp_tx_may_wait(t.a->qp));
	}
	post_unsignalled(&t, o.depth, 8);
	assert_int_equal(end_write(t.a, 99, t.mra, 0, 8, t.mrb, 0), ENOMEM);
	assert_false(qp_tx_may_wait(t.a->qp));
	bench_close(&t);
}

static void writes_wait_up_to_a_number_of_bytes(void **state)
{
	struct bench *t = *state;

	post_unsignalled(t, 1, QP_PATIENT_MAX);
	assert_true(qp_tx_may_wait(t->a->qp));
	post_unsignalled(t, 2, 1);
	assert_false(qp_tx_may_wait(t->a->qp));
}

static void nothing_waits_once_a_completion_is_asked_for(void **state)
{
	struct bench *t = *state;

	post_unsignalled(t, 1, 8);
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 8, t->mrb, 0), 0);
	assert_false(qp_tx_may_wait(t->a->qp));
	pair_run(&t->p); /* the queue has been sent, so later Writes may wait again */
	expect_wc(&t->a->scq, 2, IBV_WC_SUCCESS);
	post_unsignalled(t, 3, 8);
	assert_true(qp_tx_may_wait(t->a->qp));
}

static void post_message(struct bench *t, uint64_t id, unsigned flags)
{
	assert_int_equal(end_post(t->a, IBV_WR_SEND, id, t->mra, 0, 8, NULL, 0, flags), 0);
}

static void sends_wait_by_themselves_and_before_a_write(void **state)
{
	struct bench *t = *state;

	post_message(t, 1, NOSIG);
	post_message(t, 2, NOSIG);
	assert_int_equal(qp_tx_may_wait(t->a->qp), QP_SENDS_WAIT);
	post_unsignalled(t, 3, 8);
	assert_int_equal(qp_tx_may_wait(t->a->qp), QP_WRITES_WAIT);
}

/* A Send must not wait: its arrival shows the peer that the Write before the Send is placed. */
static void a_send_after_a_write_does_not_wait(void **state)
{
	struct bench *t = *state;

	post_unsignalled(t, 1, 8);
	post_message(t, 2, NOSIG);
	assert_int_equal(qp_tx_may_wait(t->a->qp), QP_AWAITED);
}

static void a_solicited_send_does_not_wait(void **state)
{
	struct bench *t = *state;

	post_message(t, 1, NOSIG);
	assert_int_equal(qp_tx_may_wait(t->a->qp), QP_SENDS_WAIT);
	post_message(t, 2, NOSIG | IBV_SEND_SOLICITED);
	assert_int_equal(qp_tx_may_wait(t->a->qp), QP_AWAITED);
}

/* A slot that once had a source in a file, and is free again, must not affect later requests. */
static void only_what_is_to_be_sent_can_stall(void **state)
{
	struct bench *t = *state;
	struct mr *stalls;

	stalls = end_reg(t->a, t->ma, LEN, REMOTE_ALL);
	stalls->backing.can_stall = true;
	assert_int_equal(end_write(t->a, 1, stalls, 0, 8, t->mrb, 0), 0);
	assert_true(qp_tx_can_stall(t->a->qp));
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	assert_false(qp_tx_can_stall(t->a->qp));
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 8, t->mrb, 0), 0);
	assert_false(qp_tx_can_stall(t->a->qp));
	pair_run(&t->p);
	end_dereg(stalls);
}

/*
 * Without CRC a large payload is received straight into memory, unless a store to this memory may
 * wait.
 */
static void payload_for_memory_that_can_stall_is_received_into_a_buffer(void **state)
{
	struct bench *t = *state;

	t->mrb->backing.durable = false;
	t->mrb->backing.can_stall = true;
	assert_int_equal(end_write(t->a, 1, t->mra, 0, LEN, t->mrb, 0), 0);
	pair_run_chunked(&t->p, 1000);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(t->mb, t->ma, LEN);
	assert_int_equal(qp_counters(t->b->qp)->rx_direct_bytes, 0);
	t->mrb->backing.can_stall = false;
	assert_int_equal(end_write(t->a, 2, t->mra, 0, LEN, t->mrb, 0), 0);
	pair_run_chunked(&t->p, 1000);
	assert_true(qp_counters(t->b->qp)->rx_direct_bytes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_wait_until_the_queue_is_full),
		BENCH_TEST(writes_wait_up_to_a_number_of_bytes, LEN),
		BENCH_TEST(nothing_waits_once_a_completion_is_asked_for, LEN),
		BENCH_TEST(sends_wait_by_themselves_and_before_a_write, LEN),
		BENCH_TEST(a_send_after_a_write_does_not_wait, LEN),
		BENCH_TEST(a_solicited_send_does_not_wait, LEN),
		BENCH_TEST(only_what_is_to_be_sent_can_stall, LEN),
		BENCH_TEST(payload_for_memory_that_can_stall_is_received_into_a_buffer, LEN),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
