/* SPDX-License-Identifier: BSD-3-Clause */
/* test_timeouts.c -- waits with a limit: a wait ends at its limit, not before, and loses no
 * event. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "ends.h"
#include "timing.h"

enum { SHORT_MS = 60 };

static void post_flush(struct ends *d, const void *op_context)
{
	OK(rpma_flush(d->cli, d->at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
		      op_context));
}

static void an_idle_queue_times_out(void **state)
{
	struct rpma_cq *cq;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	TAKES(SHORT_MS, RPMA_E_NO_COMPLETION, rpma_cq_wait_timeout(cq, SHORT_MS));
	TAKES(0, RPMA_E_NO_COMPLETION, rpma_cq_wait_timeout(cq, 0));
	ends_close(&d);
}

/* The explicit limit applies although the descriptor is non-blocking. */
static void a_descriptor_that_does_not_block_waits_all_the_same(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_cq_get_fd(cq, &fd));
	ends_set_nonblock(fd);
	TAKES(SHORT_MS, RPMA_E_NO_COMPLETION, rpma_cq_wait_timeout(cq, SHORT_MS));
	post_flush(&d, &d);
	OK(rpma_cq_wait_timeout(cq, SLACK_MS));
	OK(rpma_cq_get_wc(cq, 1, &wc, NULL));
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ends_close(&d);
}

/* A completion can arrive exactly at the limit. Either this wait or the next one returns the
 * completion. */
static void a_completion_at_the_deadline_is_not_lost(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	for (uintptr_t i = 0; i < 300; i++) {
		int ret;

		post_flush(&d, (void *)i);
		ret = rpma_cq_wait_timeout(cq, (int)(i % 2));
		if (ret == RPMA_E_NO_COMPLETION)
			ret = rpma_cq_wait_timeout(cq, SLACK_MS);
		OK(ret);
		while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
			OK(rpma_cq_wait_timeout(cq, SLACK_MS));
		OK(ret);
		assert_int_equal(wc.wr_id, i);
	}
	ends_close(&d);
}

static void shared_channel_waits_know_the_queue(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 4, 0, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	struct rpma_cq *cq = NULL, *main_cq, *rcq;
	bool is_rcq = false;
	struct ends d;

	OK(rpma_conn_cfg_set_compl_channel(cfg, true));
	ends_open(&d, &opts);
	OK(rpma_conn_get_cq(d.cli, &main_cq));
	OK(rpma_conn_get_rcq(d.cli, &rcq));
	assert_int_equal(rpma_cq_wait_timeout(main_cq, 0), RPMA_E_SHARED_CHANNEL);
	TAKES(SHORT_MS, RPMA_E_NO_COMPLETION,
	      rpma_conn_wait_timeout(d.cli, SHORT_MS, &cq, &is_rcq));
	assert_null(cq);
	post_flush(&d, NULL);
	OK(rpma_conn_wait_timeout(d.cli, SLACK_MS, &cq, &is_rcq));
	assert_ptr_equal(cq, main_cq);
	assert_false(is_rcq);
	OK(rpma_recv(d.cli, d.cli_mr, 0, 8, NULL));
	OK(rpma_send(d.srv, d.srv_mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_wait_timeout(d.cli, -1, &cq, &is_rcq));
	assert_ptr_equal(cq, rcq);
	assert_true(is_rcq);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void events_and_requests_time_out(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	struct ends d;

	ends_open(&d, NULL);
	TAKES(SHORT_MS, RPMA_E_NO_EVENT, rpma_conn_next_event_timeout(d.cli, SHORT_MS, &ev));
	TAKES(SHORT_MS, RPMA_E_NO_EVENT, rpma_ep_next_conn_req_timeout(d.ep, NULL, SHORT_MS, &req));
	assert_int_equal(ev, RPMA_CONN_UNDEFINED);
	assert_null(req);
	OK(rpma_conn_disconnect(d.srv));
	OK(rpma_conn_next_event_timeout(d.cli, SLACK_MS, &ev));
	assert_int_equal(ev, RPMA_CONN_CLOSED);
	ends_close(&d);
}

static void a_request_in_time_is_taken(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req_timeout(d.ep, NULL, -1, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.srv));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	ends_close(&d);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

/* Set a timer that fires every few milliseconds, without SA_RESTART, so that poll(2) ends with
 * EINTR. */
static void storm(bool on)
{
	struct sigaction act = {.sa_handler = on ? on_alarm : SIG_DFL};
	struct itimerval every = {0};

	if (on)
		every.it_interval.tv_usec = every.it_value.tv_usec = 5000;
	else
		assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	if (on)
		assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void signals_neither_end_nor_shorten_a_wait(void **state)
{
	enum rpma_conn_event ev;
	struct rpma_cq *cq;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	alarms = 0;
	storm(true);
	TAKES(150, RPMA_E_NO_COMPLETION, rpma_cq_wait_timeout(cq, 150));
	TAKES(150, RPMA_E_NO_EVENT, rpma_conn_next_event_timeout(d.cli, 150, &ev));
	storm(false);
	assert_true(alarms > 3);
	ends_close(&d);
}

enum { WAITERS = 4, WAITER_MS = 3000 };

struct waiter {
	struct rpma_cq *cq;
	int ret;
	uint64_t ms;
};

static void *wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	uint64_t begin = now_ms();

	w->ret = rpma_cq_wait_timeout(w->cq, WAITER_MS);
	w->ms = now_ms() - begin;
	return NULL;
}

/* One announcement wakes one waiter. The other waiters wait until their limits, although the
 * descriptor was readable for a moment. */
static void of_several_waiters_one_is_woken_and_the_others_keep_their_limit(void **state)
{
	struct waiter w[WAITERS] = {0};
	pthread_t thread[WAITERS];
	struct rpma_cq *cq;
	struct ends d;
	int woken = 0;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	for (int i = 0; i < WAITERS; i++) {
		w[i].cq = cq;
		assert_int_equal(pthread_create(&thread[i], NULL, wait_in_thread, &w[i]), 0);
	}
	ends_sleep_ms(50);
	post_flush(&d, NULL);
	for (int i = 0; i < WAITERS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		woken += w[i].ret == 0;
		if (w[i].ret)
			assert_int_equal(w[i].ret, RPMA_E_NO_COMPLETION);
		assert_in_range(w[i].ms, w[i].ret ? WAITER_MS - 1 : 0, WAITER_MS + SLACK_MS);
	}
	assert_int_equal(woken, 1);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_queue_times_out),
		cmocka_unit_test(a_descriptor_that_does_not_block_waits_all_the_same),
		cmocka_unit_test(a_completion_at_the_deadline_is_not_lost),
		cmocka_unit_test(shared_channel_waits_know_the_queue),
		cmocka_unit_test(events_and_requests_time_out),
		cmocka_unit_test(a_request_in_time_is_taken),
		cmocka_unit_test(signals_neither_end_nor_shorten_a_wait),
		cmocka_unit_test(of_several_waiters_one_is_woken_and_the_others_keep_their_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
