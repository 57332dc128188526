/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doorbell.c -- a Write without a completion is sent with the request that is posted after it,
 * or earlier if a rule demands it. The clock stands still in most tests. So no time passes between
 * two calls, and the timer never sends anything: each rule is shown to work alone.
 */
#include "writes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "softrnic/rnic/qp.h"

/* --- the timer ---------------------------------------------------------------------------- */

/* Only timers for Writes count: a polling thread also sets a timer for its lease. */
static __thread bool timer_is_watched;
static _Atomic uint64_t timer_cost_ns;
static uint64_t timer_max_ns;

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
	uint64_t ns =
		(uint64_t)when->it_value.tv_sec * NSEC_PER_SEC + (uint64_t)when->it_value.tv_nsec;

	advance_clock(timer_cost_ns);
	if (timer_is_watched && ns > timer_max_ns)
		timer_max_ns = ns;
	return __real_timerfd_settime(fd, flags, when, old);
}

/* Post this many Writes; each setting of a timer costs cost_ns. Returns the longest delay to which
 * a timer was set. */
static uint64_t watch_timer(struct pair *p, int writes, uint64_t cost_ns)
{
	timer_cost_ns = cost_ns;
	timer_max_ns = 0;
	for (int i = 0; i < writes; i++) {
		advance_clock(50 * NSEC_PER_US);
		timer_is_watched = true;
		write_quietly(p);
		timer_is_watched = false;
		flush(p);
	}
	timer_cost_ns = 0;
	return timer_max_ns;
}

/* --- which Writes wait -------------------------------------------------------------------- */

/* Post this many Writes and a flush. Returns the number of sends. */
static uint64_t sends_of_round(struct pair *p, int writes)
{
	uint64_t before = sends(p);

	for (int i = 0; i < writes; i++)
		write_quietly(p);
	flush(p);
	assert_int_equal(p->words[0], p->next); /* the value that the last Write wrote */
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

static bool is_sent_at_once(struct pair *p)
{
	uint64_t before = sends(p);

	write_quietly(p);
	return sends(p) == before + 1;
}

/* No post follows a waiting Write, so the timer sends it. */
static void wait_in_vain(struct pair *p)
{
	write_quietly(p);
	start_clock();
	assert_true(arrives(p));
	stop_clock();
}

static void where_nothing_follows_soon_writes_leave_at_once(void **state)
{
	int at_once = 0, tries = 0;
	struct pair p;

	pair_open(&p);
	teach(&p);
	while (at_once < 5) {
		if (at_once == 0) {
			assert_true(++tries < TRIES);
			wait_in_vain(&p);
			write_quietly(&p);
			flush(&p);
		}
		advance_clock(50 * NSEC_PER_US);
		at_once = is_sent_at_once(&p) ? at_once + 1 : 0;
	}
	pair_close(&p);
}

/* A loop over many connections returns to each connection only after the longest delay of a
 * Write. */
static void a_write_of_a_loop_over_connections_waits_for_its_flush(void **state)
{
	enum { PAIRS = 4, ROUNDS = 10 };
	uint64_t sent = 0;
	struct pair p[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		pair_open(&p[i]);
		teach(&p[i]);
	}
	for (int i = 0; i < PAIRS * ROUNDS; i++) {
		advance_clock(80 * NSEC_PER_US);
		sent += sends_of_round(&p[i % PAIRS], 1);
	}
	/* Writes do not wait if an answer of the peer follows them. */
	assert_in_range(sent, PAIRS * ROUNDS, PAIRS * ROUNDS * 3 / 2);
	for (int i = 0; i < PAIRS; i++)
		pair_close(&p[i]);
}

/* A program writes a log, and sometimes writes a word for which the reader polls its own memory. */
static void a_write_that_nothing_follows_now_and_then_soon_leaves_at_once(void **state)
{
	enum { LONE = 20, PAIRS = 8 };
	int waited = 0;
	struct pair p;

	pair_open(&p);
	for (int i = 0; i < LONE; i++) {
		stop_clock();
		for (int k = 0; k < PAIRS; k++) {
			write_quietly(&p);
			flush(&p);
		}
		waited += !is_sent_at_once(&p);
		start_clock();
		assert_true(arrives(&p));
		usleep(1000);
	}
	assert_in_range(waited, 0, 4);
	pair_close(&p);
}

/* --- events that send a waiting Write ----------------------------------------------------- */

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

/* A poll that finds a completion has no reason to look at the connections, but still sends. */
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

/* A Write without a completion leaves the queue when it is sent. */
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

static void the_timer_is_set_to_tens_of_microseconds(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	assert_in_range(watch_timer(&p, 20, 0), 1, 80 * NSEC_PER_US);
	pair_close(&p);
}

static void an_expensive_timer_is_set_to_a_millisecond_at_most(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	assert_in_range(watch_timer(&p, 1000, 100 * NSEC_PER_US), 80 * NSEC_PER_US,
			1100 * NSEC_PER_US);
	pair_close(&p);
}

/* --- a timer that is expensive to set, so that it fires late ------------------------------ */

static void write_and_flush(struct pair *p, int times)
{
	stop_clock();
	while (times-- > 0) {
		write_quietly(p);
		flush(p);
	}
}

static void make_timer_expensive(struct pair *p)
{
	teach(p);
	assert_true(watch_timer(p, 1000, 100 * NSEC_PER_US) >= 500 * NSEC_PER_US);
}

/* The result is the same for up to some ten thousand pairs between two Writes that no request
 * follows. */
static void hardly_a_write_that_nothing_follows_waits_for_a_late_timer(void **state)
{
	enum { LONE = 12, PAIRS = 600 };
	int waited = 0;
	struct pair p;

	pair_open(&p);
	make_timer_expensive(&p);
	for (int i = 0; i < LONE; i++) {
		write_and_flush(&p, PAIRS);
		waited += !is_sent_at_once(&p);
		start_clock();
		assert_true(arrives(&p));
		usleep(1000);
	}
	assert_in_range(waited, 1, 3);
	pair_close(&p);
}

/* The timer fired before the flush only because the thread was held up. */
static void a_late_timer_before_a_flush_costs_some_hundred_pairs(void **state)
{
	enum { HELD_UP = 6, PAIRS = 300 };
	int waited = 0, sent = 0;
	struct pair p;

	pair_open(&p);
	make_timer_expensive(&p);
	for (int i = 0; i < HELD_UP; i++) {
		write_and_flush(&p, PAIRS);
		waited += !is_sent_at_once(&p);
		start_clock();
		assert_true(arrives(&p));
		flush(&p);
	}
	assert_in_range(waited, HELD_UP / 2, HELD_UP);
	write_and_flush(&p, PAIRS);
	while (sends_of_round(&p, 1) != 1)
		assert_true(++sent < TRIES);
	pair_close(&p);
}

/* --- the end of a connection -------------------------------------------------------------- */

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

/* The posting thread, the polling thread and the timer compete to send; no Write is lost. */
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
		cmocka_unit_test(a_write_of_a_loop_over_connections_waits_for_its_flush),
		cmocka_unit_test(a_write_that_nothing_follows_now_and_then_soon_leaves_at_once),
		cmocka_unit_test(a_signalled_write_sends),
		cmocka_unit_test(a_posted_receive_sends),
		cmocka_unit_test(a_poll_sends),
		cmocka_unit_test(a_poll_that_finds_a_completion_sends),
		cmocka_unit_test(an_armed_queue_sends),
		cmocka_unit_test(enough_bytes_are_sent),
		cmocka_unit_test(a_full_queue_is_sent),
		cmocka_unit_test(the_timer_sends),
		cmocka_unit_test(the_timer_is_set_to_tens_of_microseconds),
		cmocka_unit_test(a_disconnect_sends),
		cmocka_unit_test(a_failed_queue_pair_sends_before),
		cmocka_unit_test(a_destroyed_queue_pair_sends_before),
		cmocka_unit_test(deregistration_of_the_source_sends_before),
		cmocka_unit_test(a_fork_sends_before),
		cmocka_unit_test(writes_of_one_thread_are_sent_by_any),
		/* these tests are last, because the process remembers how expensive its timer is */
		cmocka_unit_test(an_expensive_timer_is_set_to_a_millisecond_at_most),
		cmocka_unit_test(hardly_a_write_that_nothing_follows_waits_for_a_late_timer),
		cmocka_unit_test(a_late_timer_before_a_flush_costs_some_hundred_pairs),
	};

	/* moving to rings would cost sends that the test does not expect */
	setenv("SOFTRNIC_SHM", "0", 1);
	/* while the clock stands still, a leader that spins would not stop */
	setenv("SOFTRNIC_SPIN_US", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
