/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain queue pairs: a Send for which the peer has no receive fails after the retries that the
 * sender's user has set.
 */
#include "plain.h"

#include <time.h>
#include <unistd.h>

static struct plain sender, receiver;

#define RNR_TIMER 24  /* InfiniBand's code of 40.96 ms */
#define RNR_MS    163 /* for the first try and three retries */

static int open_pair(void **state)
{
	plain_pair_open(&sender, &receiver);
	sender.rnr_retry = 3;
	receiver.min_rnr_timer = RNR_TIMER;
	return 0;
}

static int close_pair(void **state)
{
	plain_close(&sender);
	plain_close(&receiver);
	return 0;
}

static void meet(void)
{
	plain_ready(&sender, receiver.qp->qp_num);
	plain_ready(&receiver, sender.qp->qp_num);
	plain_talk(&sender, &receiver);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void expect_end(struct plain *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = plain_wait(p);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

/* The failure does not affect the receiver's queue pair, which never gets the messages. */
static void fail_in_time(void)
{
	uint64_t begun;

	plain_recv(&receiver, 1);
	plain_send(&sender, 2, "received");
	expect_end(&receiver, 1, IBV_WC_SUCCESS);
	begun = now_ms();
	plain_send(&sender, 3, "without a receive");
	plain_send(&sender, 4, "likewise");
	expect_end(&sender, 2, IBV_WC_SUCCESS);
	expect_end(&sender, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_in_range(now_ms() - begun, RNR_MS, 9000); /* the machine may be busy */
	expect_end(&sender, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(plain_state(&sender), IBV_QPS_ERR);
	usleep(20000);
	assert_int_equal(plain_state(&receiver), IBV_QPS_RTS);
	plain_recv(&receiver, 5);
	plain_expect_none(&receiver, 50);
}

static void a_send_without_a_receive_fails_after_its_retries(void **state)
{
	meet();
	fail_in_time();
}

static void after_a_reset_the_limits_hold_again(void **state)
{
	for (int i = 0; i < 2; i++) {
		meet();
		fail_in_time();
		plain_reset(&sender);
		plain_reset(&receiver);
	}
}

#define LONG_TIMER   26 /* InfiniBand's code of 81.92 ms */
#define LONGER_TIMER 28 /* InfiniBand's code of 163.84 ms */

/* The time does not run while a Send waits until the queue pairs are connected. */
static void the_time_begins_with_the_arrival(void **state)
{
	sender.rnr_retry = 6;
	receiver.min_rnr_timer = LONG_TIMER; /* 573 ms in total */
	plain_ready(&sender, receiver.qp->qp_num);
	plain_send(&sender, 1, "early");
	plain_expect_none(&sender, 600);
	plain_ready(&receiver, sender.qp->qp_num);
	plain_expect_none(&sender, 20);
	plain_recv(&receiver, 2);
	expect_end(&sender, 1, IBV_WC_SUCCESS);
	expect_end(&receiver, 2, IBV_WC_SUCCESS);
}

/* The time of each Send begins when this Send is the first one that waits. */
static void a_receive_in_time_ends_the_wait(void **state)
{
	sender.rnr_retry = 6;
	receiver.min_rnr_timer = LONGER_TIMER; /* 1147 ms in total */
	meet();
	for (uint64_t i = 0; i < 3; i++)
		plain_send(&sender, i, "waits");
	for (uint64_t i = 0; i < 3; i++) {
		usleep(450000);
		plain_recv(&receiver, 9);
		expect_end(&sender, i, IBV_WC_SUCCESS);
		expect_end(&receiver, 9, IBV_WC_SUCCESS);
	}
	plain_talk(&sender, &receiver);
}

static void the_greatest_number_of_retries_is_no_limit(void **state)
{
	sender.rnr_retry = 7;
	receiver.min_rnr_timer = 1; /* InfiniBand's code of 10 us */
	meet();
	plain_send(&sender, 1, "waits");
	plain_expect_none(&sender, 200);
	plain_recv(&receiver, 2);
	expect_end(&sender, 1, IBV_WC_SUCCESS);
}

/* The Write before the Send is complete. The peer has also placed the Write after the Send, but
 * this Write fails. */
static void only_the_send_gets_the_status(void **state)
{
	struct ibv_sge sge = {.addr = (uintptr_t)sender.buf, .length = 8, .lkey = sender.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {.remote_addr = (uintptr_t)receiver.buf,
					     .rkey = receiver.mr->rkey}},
			   *bad;

	sender.rnr_retry = 0; /* the first try still waits for the time that the peer has set */
	meet();
	assert_int_equal(ibv_post_send(sender.qp, &wr, &bad), 0);
	plain_send(&sender, 2, "without a receive");
	wr.wr_id = 3;
	assert_int_equal(ibv_post_send(sender.qp, &wr, &bad), 0);
	expect_end(&sender, 1, IBV_WC_SUCCESS);
	expect_end(&sender, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_end(&sender, 3, IBV_WC_WR_FLUSH_ERR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_send_without_a_receive_fails_after_its_retries),
		TEST(after_a_reset_the_limits_hold_again),
		TEST(the_time_begins_with_the_arrival),
		TEST(a_receive_in_time_ends_the_wait),
		TEST(the_greatest_number_of_retries_is_no_limit),
		TEST(only_the_send_gets_the_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
