/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doorbell.c -- Writes that nobody awaits leave with what is posted behind them, and at the
 * latest when something says so. The clock stands still in most tests: then whatever follows comes
 * at once, and the timer, which looks at the clock, never sends anything; so each rule is seen to
 * do it alone.
 */
#include "writes.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic/rnic/qp.h"

/* --- what waits --------------------------------------------------------------------------- */

/* So many Writes and a flush: by how many sends? */
static uint64_t sends_of_round(struct pair *p, int writes)
{
	uint64_t before = sends(p);

	for (int i = 0; i < writes; i++)
		write_quietly(p);
	flush(p);
	assert_int_equal(p->words[0], p->next); /* that of the last one */
	return sends(p) - before;
}

static void check_one_send(int writes)
{
	struct pair p;
	int tries = 0;

	pair_open(&p);
	teach(&p);
	while (sends_of_round(&p, writes) != 1)
		assert_true(++tries < TRIES);
	pair_close(&p);
}

static void a_write_and_its_flush_leave_by_one_send(void **state)
{
	check_one_send(1);
}

static void many_writes_leave_by_one_send_in_their_order(void **state)
{
	check_one_send(63);
}

static void the_first_writes_of_a_connection_leave_at_once(void **state)
{
	struct pair p;
	uint64_t before;

	pair_open(&p);
	stop_clock();
	before = sends(&p);
	write_quietly(&p);
	assert_int_equal(sends(&p), before + 1);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void where_nothing_follows_soon_writes_leave_at_once(void **state)
{
	struct pair p;
	uint64_t before;

	pair_open(&p);
	teach(&p);
	write_quietly(&p); /* waits, and the timer finds it */
	start_clock();
	assert_true(arrives(&p));
	for (int i = 0; i < 5; i++) {
		usleep(1000);
		before = sends(&p);
		write_quietly(&p);
		assert_int_equal(sends(&p), before + 1);
	}
	pair_close(&p);
}

/* --- at the latest ------------------------------------------------------------------------ */

static void a_signalled_write_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(post_write(&p, sizeof(p.next), IBV_SEND_SIGNALED), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_posted_receive_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(end_post_recv(&p.ends.client, 1), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_poll_sends(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open_waiting(&p);
	assert_int_equal(ibv_poll_cq(p.ends.client.cq, 1, &wc), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

/* Also one that finds a completion, and so has no reason to look at connections. */
static void a_poll_that_finds_a_completion_sends(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p);
	teach(&p);
	assert_int_equal(post_write(&p, sizeof(p.next), IBV_SEND_SIGNALED), 0);
	assert_true(arrives(&p));
	write_quietly(&p);
	assert_int_equal(ibv_poll_cq(p.ends.client.cq, 1, &wc), 1);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void an_armed_queue_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(ibv_req_notify_cq(p.ends.client.cq, 0), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void enough_bytes_are_sent(void **state)
{
	struct pair p;
	uint64_t before;
	uint32_t bytes = 0;

	pair_open(&p);
	teach(&p);
	before = sends(&p);
	for (; bytes <= QP_PATIENT_MAX; bytes += END_BUF)
		assert_int_equal(post_write(&p, END_BUF, 0), 0);
	assert_true(sends(&p) > before);
	pair_close(&p);
}

/* Writes without a completion leave the queue when they are sent. */
static void a_full_queue_is_sent(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	for (int i = 0; i < 3 * END_DEPTH; i++)
		write_quietly(&p);
	flush(&p);
	assert_int_equal(p.words[0], p.next);
	pair_close(&p);
}

static void the_timer_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	start_clock();
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_disconnect_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(softrnic_disconnect(p.ends.client.id), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_failed_queue_pair_sends_before(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(softrnic_modify_qp(p.ends.client.id->qp, &attr, IBV_QP_STATE), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_destroyed_queue_pair_sends_before(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	softrnic_destroy_qp(p.ends.client.id);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void deregistration_of_the_source_sends_before(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	memset(p.ends.client.buf, 7, END_BUF);
	assert_int_equal(post_write(&p, END_BUF, 0), 0);
	p.next = 0x0707070707070707;
	assert_int_equal(softrnic_dereg_mr(p.ends.client.mr), 0);
	p.ends.client.mr = NULL;
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_fork_sends_before(void **state)
{
	struct pair p;
	pid_t child;
	int status;

	pair_open_waiting(&p);
	child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

/* --- threads ------------------------------------------------------------------------------ */

enum { ROUNDS = 20000 };

static void *poll_all_the_time(void *arg)
{
	struct pair *p = arg;
	struct ibv_wc wc;

	while (p->words[1] == 0)
		(void)ibv_poll_cq(p->ends.client.cq, 1, &wc);
	return NULL;
}

/* The poster, the poller and the timer compete; nothing is lost. */
static void writes_of_one_thread_are_sent_by_any(void **state)
{
	uint64_t seed = 1;
	pthread_t poller;
	struct pair p;

	pair_open(&p);
	assert_int_equal(pthread_create(&poller, NULL, poll_all_the_time, &p), 0);
	for (int i = 0; i < ROUNDS; i++) {
		write_quietly(&p);
		if (test_random(&seed) % 64 == 0)
			usleep(test_random(&seed) % 100);
	}
	assert_true(arrives(&p));
	p.words[1] = 1;
	pthread_join(poller, NULL);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_and_its_flush_leave_by_one_send),
		cmocka_unit_test(many_writes_leave_by_one_send_in_their_order),
		cmocka_unit_test(the_first_writes_of_a_connection_leave_at_once),
		cmocka_unit_test(where_nothing_follows_soon_writes_leave_at_once),
		cmocka_unit_test(a_signalled_write_sends),
		cmocka_unit_test(a_posted_receive_sends),
		cmocka_unit_test(a_poll_sends),
		cmocka_unit_test(a_poll_that_finds_a_completion_sends),
		cmocka_unit_test(an_armed_queue_sends),
		cmocka_unit_test(enough_bytes_are_sent),
		cmocka_unit_test(a_full_queue_is_sent),
		cmocka_unit_test(the_timer_sends),
		cmocka_unit_test(a_disconnect_sends),
		cmocka_unit_test(a_failed_queue_pair_sends_before),
		cmocka_unit_test(a_destroyed_queue_pair_sends_before),
		cmocka_unit_test(deregistration_of_the_source_sends_before),
		cmocka_unit_test(a_fork_sends_before),
		cmocka_unit_test(writes_of_one_thread_are_sent_by_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
