/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs without rdma_cm in one process connect ("meet"), in every order, and again after
 * a reset. */
#include "plain.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct plain dials, awaits;

static int open_pair(void **state)
{
	plain_pair_open(&dials, &awaits);
	return 0;
}

static int close_pair(void **state)
{
	plain_close(&dials);
	plain_close(&awaits);
	return 0;
}

static void numbers_are_those_of_ports(void **state)
{
	assert_true(dials.qp->qp_num >> 8 >= 1024);
	assert_true(awaits.qp->qp_num >> 8 >= 1024);
	assert_int_not_equal(dials.qp->qp_num, awaits.qp->qp_num);
}

static void the_end_that_dials_may_be_ready_first(void **state)
{
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
}

static void the_end_that_awaits_may_be_ready_first(void **state)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
}

/* The server of perftest's bandwidth tests never leaves RTR. */
static void an_end_in_rtr_receives_and_answers(void **state)
{
	plain_init(&awaits);
	plain_recv(&awaits, 1);
	plain_rtr(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_send(&dials, 2, "to an end in RTR");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	assert_string_equal(awaits.buf, "to an end in RTR");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
}

/* The dial arrives while the queue pair is in INIT; posted requests wait. */
static void a_dial_waits_until_its_queue_pair_is_ready(void **state)
{
	plain_ready(&dials, awaits.qp->qp_num);
	plain_send(&dials, 1, "early");
	plain_expect_none(&dials, 50);
	plain_init(&awaits);
	plain_recv(&awaits, 2);
	plain_expect_none(&awaits, 50);
	plain_rtr(&awaits, dials.qp->qp_num);
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	assert_string_equal(awaits.buf, "early");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
	plain_rts(&awaits);
	plain_talk(&awaits, &dials);
}

/* Returns the number of rounds: PLAIN_ROUNDS if it is set. */
static int rounds(int usual)
{
	const char *s = getenv("PLAIN_ROUNDS");

	return s ? atoi(s) : usual;
}

static void after_a_reset_both_meet_again(void **state)
{
	for (int i = 0, n = rounds(100); i < n; i++) {
		struct plain *first = i & 1 ? &dials : &awaits, *other = i & 1 ? &awaits : &dials;

		plain_ready(first, other->qp->qp_num);
		plain_ready(other, first->qp->qp_num);
		plain_talk(&dials, &awaits);
		plain_reset(i & 2 ? first : other);
		plain_reset(i & 2 ? other : first);
	}
}

/* The other end may dial again while this end still has its former stream. */
static void one_end_may_be_a_reset_ahead(void **state)
{
	for (int i = 0, n = rounds(20); i < n; i++) {
		struct plain *ahead = i & 1 ? &dials : &awaits, *late = i & 1 ? &awaits : &dials;

		plain_ready(&dials, awaits.qp->qp_num);
		plain_ready(&awaits, dials.qp->qp_num);
		plain_talk(&dials, &awaits);
		plain_reset(ahead);
		plain_ready(ahead, late->qp->qp_num);
		usleep(2000);
		plain_reset(late);
		plain_ready(late, ahead->qp->qp_num);
		plain_talk(&dials, &awaits);
		plain_reset(&dials);
		plain_reset(&awaits);
	}
}

static void receives_survive_the_end_of_an_idle_peer(void **state)
{
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_recv(&dials, 1);
	plain_destroy_qp(&awaits);
	plain_expect_none(&dials, 100);
	assert_int_equal(plain_state(&dials), IBV_QPS_RTS);
}

static void requests_that_are_posted_after_the_peer_has_ended_fail(void **state)
{
	dials.timeout = 1;
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_destroy_qp(&awaits);
	usleep(50000);
	plain_send(&dials, 1, "to nobody");
	plain_send(&dials, 2, "likewise");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(plain_state(&dials), IBV_QPS_ERR);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

#define RETRY_MS 536 /* timeout 17: 4.096 us * 2^17 */

/* Post three messages. The peer has a receive for the first message only. */
static void post_three(void)
{
	dials.timeout = 17;
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_recv(&dials, 9);
	plain_recv(&awaits, 1);
	plain_send(&dials, 2, "received");
	plain_send(&dials, 3, "without a receive");
	plain_send(&dials, 4, "likewise");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
}

static void expect_end(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = plain_wait(&dials);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static void expect_failure_after_the_retries(uint64_t ended)
{
	expect_end(3, IBV_WC_RETRY_EXC_ERR);
	assert_in_range(now_ms() - ended, RETRY_MS, 9000); /* the machine may be busy */
	expect_end(4, IBV_WC_WR_FLUSH_ERR);
	expect_end(9, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(plain_state(&dials), IBV_QPS_ERR);
}

/* The peer has acknowledged the first message, and disconnects in good order. */
static void outstanding_requests_fail_after_the_retries_and_not_with_the_peer(void **state)
{
	uint64_t ended;

	post_three();
	ended = now_ms();
	plain_destroy_qp(&awaits);
	expect_end(2, IBV_WC_SUCCESS);
	assert_int_equal(plain_state(&dials), IBV_QPS_RTS);
	expect_failure_after_the_retries(ended);
}

/* As on a card, a peer that is set up again does not get messages from before its reset. */
static void a_peer_that_comes_again_does_not_get_outstanding_requests(void **state)
{
	uint64_t ended;

	post_three();
	expect_end(2, IBV_WC_SUCCESS);
	ended = now_ms();
	plain_reset(&awaits);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_recv(&awaits, 1);
	expect_failure_after_the_retries(ended);
	plain_expect_none(&awaits, 20);
	plain_reset(&dials);
	plain_reset(&awaits);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
}

static void a_move_to_err_does_not_wait_for_the_retries(void **state)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	post_three();
	expect_end(2, IBV_WC_SUCCESS);
	plain_destroy_qp(&awaits);
	plain_expect_none(&dials, 20);
	assert_int_equal(softrnic_modify_qp(dials.qp, &err, IBV_QP_STATE), 0);
	expect_end(3, IBV_WC_WR_FLUSH_ERR);
	expect_end(4, IBV_WC_WR_FLUSH_ERR);
	expect_end(9, IBV_WC_WR_FLUSH_ERR);
	plain_expect_none(&dials, RETRY_MS + 50);
}

/* A move to RESET drops the requests that wait for the retries, and stops the retry clock. */
static void a_reset_does_not_wait_for_the_retries(void **state)
{
	post_three();
	expect_end(2, IBV_WC_SUCCESS);
	plain_reset(&awaits);
	plain_expect_none(&dials, 20);
	plain_reset(&dials);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_expect_none(&dials, RETRY_MS + 50);
	plain_talk(&awaits, &dials);
}

/* SOFTRNIC_RETRY_MS is 300 in this test. */
static void a_peer_that_never_comes_costs_the_time_of_the_retries(void **state)
{
	uint64_t begun;

	dials.timeout = 1;
	plain_ready(&dials, awaits.qp->qp_num);
	plain_recv(&dials, 1);
	begun = now_ms();
	plain_send(&dials, 2, "to nobody");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_RETRY_EXC_ERR);
	/* the upper limit allows for a busy machine */
	assert_in_range(now_ms() - begun, 240, 3000);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(plain_state(&dials), IBV_QPS_ERR);
}

/* After an error a program resets both queue pairs, which keep their numbers. */
static void after_an_error_a_reset_helps(void **state)
{
	uint32_t num = dials.qp->qp_num;

	a_peer_that_never_comes_costs_the_time_of_the_retries(state);
	plain_reset(&dials);
	assert_int_equal(dials.qp->qp_num, num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
}

static uint64_t counter(struct plain *p, const char *name)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(p->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return values[i];
	fail_msg("no counter %s", name);
	return 0;
}

/* SOFTRNIC_SHM_AFTER is 0 in this test. */
static void both_use_rings_if_these_are_permitted(void **state)
{
	const char *shm = getenv("SOFTRNIC_SHM");
	bool rings = shm && shm[0] == '1';

	for (int i = 0; i < 2; i++) {
		plain_ready(i ? &awaits : &dials, i ? dials.qp->qp_num : awaits.qp->qp_num);
		plain_ready(i ? &dials : &awaits, i ? awaits.qp->qp_num : dials.qp->qp_num);
		for (int n = 0; n < 200 && counter(&dials, "shm_rx_bytes") == 0; n++) {
			plain_talk(&dials, &awaits);
			usleep(500); /* meanwhile threads of the engine set up the rings */
		}
		assert_int_equal(counter(&dials, "shm_rx_bytes") > 0, rings);
		assert_int_equal(counter(&dials, "crc"), 0);
		plain_reset(&dials);
		plain_reset(&awaits);
	}
}

static void a_read_and_an_atomic_go_to_a_peer(void **state)
{
	struct ibv_sge sge = {.addr = (uintptr_t)dials.buf, .length = 8, .lkey = dials.mr->lkey};
	struct ibv_send_wr add = {.sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .wr.atomic = {.remote_addr = (uintptr_t)awaits.buf,
						.compare_add = 5,
						.rkey = awaits.mr->rkey}};
	struct ibv_send_wr read = {.sg_list = &sge,
				   .num_sge = 1,
				   .next = &add,
				   .opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {.remote_addr = (uintptr_t)awaits.buf,
					       .rkey = awaits.mr->rkey}},
			   *bad;
	uint64_t value = 40;

	memcpy(awaits.buf, &value, sizeof(value));
	plain_ready(&dials, awaits.qp->qp_num);
	/* posted before the two queue pairs are connected */
	assert_int_equal(ibv_post_send(dials.qp, &read, &bad), 0);
	plain_init(&awaits);
	plain_rtr(&awaits, dials.qp->qp_num);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
	memcpy(&value, dials.buf, sizeof(value));
	assert_int_equal(value, 40);
	memcpy(&value, awaits.buf, sizeof(value));
	assert_int_equal(value, 45);
}

static void a_read_fills_several_pieces(void **state)
{
	struct ibv_sge sges[] = {
		{.addr = (uintptr_t)dials.buf + 1000, .length = 3, .lkey = dials.mr->lkey},
		{.addr = (uintptr_t)dials.buf, .length = 600, .lkey = dials.mr->lkey},
	};
	struct ibv_send_wr read = {.sg_list = sges,
				   .num_sge = 2,
				   .opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {.remote_addr = (uintptr_t)awaits.buf,
					       .rkey = awaits.mr->rkey}},
			   *bad;

	for (int i = 0; i < 603; i++)
		awaits.buf[i] = (char)(i % 251);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	assert_int_equal(ibv_post_send(dials.qp, &read, &bad), 0);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
	assert_memory_equal(dials.buf + 1000, awaits.buf, 3);
	assert_memory_equal(dials.buf, awaits.buf + 3, 600);
}

static void a_peer_that_permits_no_reads_ends_them_at_once(void **state)
{
	struct ibv_sge sge = {.addr = (uintptr_t)dials.buf, .length = 8, .lkey = dials.mr->lkey};
	struct ibv_send_wr read = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {.remote_addr = (uintptr_t)awaits.buf,
					       .rkey = awaits.mr->rkey}},
			   *bad;

	awaits.rd_atomic = 0;
	plain_ready(&dials, awaits.qp->qp_num);
	assert_int_equal(ibv_post_send(dials.qp, &read, &bad), 0);
	plain_ready(&awaits, dials.qp->qp_num);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_REM_INV_REQ_ERR);
}

static void a_queue_pair_may_be_its_own_peer(void **state)
{
	static char big[1 << 20];
	struct ibv_mr *mr = softrnic_reg_mr(dials.pd, big, sizeof(big),
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)big, .length = sizeof(big) / 2, .lkey = mr->lkey};
	struct ibv_send_wr write = {.sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_WRITE,
				    .wr.rdma = {.remote_addr = (uintptr_t)big + sizeof(big) / 2,
						.rkey = mr->rkey}},
			   *bad;

	memset(big, 0x5a, sizeof(big) / 2);
	for (int i = 0; i < 3; i++) {
		plain_ready(&dials, dials.qp->qp_num);
		plain_recv(&dials, 1);
		plain_send(&dials, 2, "to myself");
		for (int n = 0; n < 2; n++)
			assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
		assert_string_equal(dials.buf, "to myself");
		memset(big + sizeof(big) / 2, 0, sizeof(big) / 2);
		assert_int_equal(ibv_post_send(dials.qp, &write, &bad), 0);
		assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
		assert_memory_equal(big, big + sizeof(big) / 2, sizeof(big) / 2);
		plain_reset(&dials);
	}
	assert_int_equal(softrnic_dereg_mr(mr), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_are_those_of_ports),
		TEST(the_end_that_dials_may_be_ready_first),
		TEST(the_end_that_awaits_may_be_ready_first),
		TEST(an_end_in_rtr_receives_and_answers),
		TEST(a_dial_waits_until_its_queue_pair_is_ready),
		TEST(after_a_reset_both_meet_again),
		TEST(one_end_may_be_a_reset_ahead),
		TEST(receives_survive_the_end_of_an_idle_peer),
		TEST(requests_that_are_posted_after_the_peer_has_ended_fail),
		TEST(outstanding_requests_fail_after_the_retries_and_not_with_the_peer),
		TEST(a_peer_that_comes_again_does_not_get_outstanding_requests),
		TEST(a_move_to_err_does_not_wait_for_the_retries),
		TEST(a_reset_does_not_wait_for_the_retries),
		TEST(a_peer_that_never_comes_costs_the_time_of_the_retries),
		TEST(after_an_error_a_reset_helps),
		TEST(both_use_rings_if_these_are_permitted),
		TEST(a_read_and_an_atomic_go_to_a_peer),
		TEST(a_read_fills_several_pieces),
		TEST(a_peer_that_permits_no_reads_ends_them_at_once),
		TEST(a_queue_pair_may_be_its_own_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
