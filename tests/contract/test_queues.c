/* SPDX-License-Identifier: BSD-3-Clause */
/* test_queues.c -- completion queues: waits, a queue for receives, a shared channel, overrun. */
#include <time.h>

#include "ends.h"

static void each_wait_announces_one_completion(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	for (int i = 0; i < 1000; i++) {
		OK(rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 8, RPMA_F_COMPLETION_ALWAYS, &d));
		OK(rpma_cq_wait(cq));
		OK(rpma_cq_get_wc(cq, 1, &wc, NULL));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	ends_close(&d);
}

/* If a completion is already queued, arming the queue again announces only later completions. */
static void announced_completion_is_not_announced_again(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_cq_get_fd(cq, &fd));
	ends_set_nonblock(fd);
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
	for (int i = 0; i < 100; i++) {
		OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &d));
		assert_true(ends_readable(fd, 5000));
		OK(rpma_cq_wait(cq));
		assert_false(ends_readable(fd, 0));
		OK(rpma_cq_get_wc(cq, 1, &wc, NULL));
		assert_int_equal(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
		assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	}
	ends_close(&d);
}

static void several_completions_are_taken_at_once(void **state)
{
	struct ibv_wc wc[10];
	struct rpma_cq *cq;
	struct ends d;
	int got = 0, n;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	for (uintptr_t i = 0; i < 10; i++)
		OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
			      (void *)i));
	while (got < 10) {
		int ret = rpma_cq_get_wc(cq, 10 - got, wc + got, &n);

		if (ret == RPMA_E_NO_COMPLETION) {
			OK(rpma_cq_wait(cq));
			continue;
		}
		OK(ret);
		got += n;
	}
	for (uintptr_t i = 0; i < 10; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].wr_id, i);
	}
	ends_close(&d);
}

static void receives_complete_in_their_own_queue(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 10, 0, 0);
	struct ends_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg};
	struct rpma_cq *cq, *rcq, *none;
	struct ibv_wc wc = {0};
	struct ends d, plain;

	ends_open(&d, &opts);
	OK(rpma_conn_get_cq(d.srv, &cq));
	OK(rpma_conn_get_rcq(d.srv, &rcq));
	assert_non_null(rcq);
	assert_ptr_not_equal(cq, rcq);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
	OK(rpma_send(d.cli, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_SEND, &d);
	ends_cq_wait_wc(rcq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));

	ends_open(&plain, NULL);
	OK(rpma_conn_get_rcq(plain.srv, &none));
	assert_null(none);
	ends_close(&plain);
}

static void shared_channel_reports_which_queue(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 10, 0, 0);
	struct ends_opts opts = {.srv_cfg = cfg};
	struct rpma_cq *cq, *rcq, *which = NULL;
	struct ibv_wc wc;
	bool is_rcq = false;
	struct ends d;
	int fd, cqfd;

	OK(rpma_conn_cfg_set_compl_channel(cfg, true));
	ends_open(&d, &opts);
	OK(rpma_conn_get_cq(d.srv, &cq));
	OK(rpma_conn_get_rcq(d.srv, &rcq));
	OK(rpma_conn_get_compl_fd(d.srv, &fd));
	OK(rpma_cq_get_fd(cq, &cqfd));
	assert_int_equal(fd, cqfd);
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
	assert_false(ends_readable(fd, 0));
	OK(rpma_send(d.cli, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_wait(d.srv, 0, &which, &is_rcq));
	assert_ptr_equal(which, rcq);
	assert_true(is_rcq);
	OK(rpma_cq_get_wc(rcq, 1, &wc, NULL));
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	OK(rpma_read(d.srv, d.srv_mr, 0, d.at_cli, 0, 8, RPMA_F_COMPLETION_ALWAYS, &d));
	OK(rpma_conn_wait(d.srv, 0, &which, &is_rcq));
	assert_ptr_equal(which, cq);
	assert_false(is_rcq);
	OK(rpma_cq_get_wc(cq, 1, &wc, NULL));
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	ends_set_nonblock(fd);
	assert_int_equal(rpma_conn_wait(d.srv, 0, &which, NULL), RPMA_E_NO_COMPLETION);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void connection_without_shared_channel_is_refused_with_the_reason(void **state)
{
	struct rpma_cq *cq;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	assert_int_equal(rpma_conn_get_compl_fd(d.cli, &fd), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_wait(d.cli, 0, &cq, NULL), RPMA_E_NOT_SHARED_CHNL);
	ends_close(&d);
}

/* A queue that overruns ends its connection. The completions that it already holds can still be
 * polled. */
static void overrun_is_an_error_not_a_hang(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(2, 0, 10, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;
	int n = 0;

	/* siw loses the completions that do not fit, and the connection stays usable */
	SOFTRNIC_ONLY();
	ends_open(&d, &opts);
	OK(rpma_conn_get_cq(d.cli, &cq));
	for (int i = 0; i < 10; i++)
		if (rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL))
			break; /* the overrun has already ended the connection */
	assert_true(ends_event_within(d.cli, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	assert_true(ends_event_within(d.srv, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	while (rpma_cq_get_wc(cq, 1, &wc, NULL) == 0)
		n++;
	assert_int_equal(n, 2);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void full_send_queue_is_an_error_that_passes(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 4, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	int posted = 0, ret = 0;
	struct ends d;

	ends_open(&d, &opts);
	while (posted < 100000 && !ret) {
		ret = rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 4096, RPMA_F_COMPLETION_ON_ERROR,
				NULL);
		posted += !ret;
	}
	if (ret) { /* completions can arrive before this line */
		assert_int_equal(ret, RPMA_E_PROVIDER);
		assert_true(posted >= 4);
	}
	for (int i = 0; i < 1000; i++) {
		ret = rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 8, RPMA_F_COMPLETION_ALWAYS, &d);
		if (!ret)
			break;
		ends_sleep_ms(1);
	}
	OK(ret);
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void idle_connections_use_no_cpu(void **state)
{
	struct ends d;
	long before;

	ends_open(&d, NULL);
	ends_flush(d.cli, d.at_srv, 0, 8);
	ends_sleep_ms(20);
	before = cpu_ms();
	ends_sleep_ms(300);
	assert_in_range(cpu_ms() - before, 0, 10);
	ends_close(&d);
}

static void connection_with_impossible_queues_is_refused(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, UINT32_MAX, 0);
	struct rpma_conn_req *req = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	assert_int_equal(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req),
			 RPMA_E_PROVIDER);
	assert_null(req);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wait_announces_one_completion),
		cmocka_unit_test(announced_completion_is_not_announced_again),
		cmocka_unit_test(several_completions_are_taken_at_once),
		cmocka_unit_test(receives_complete_in_their_own_queue),
		cmocka_unit_test(shared_channel_reports_which_queue),
		cmocka_unit_test(connection_without_shared_channel_is_refused_with_the_reason),
		cmocka_unit_test(overrun_is_an_error_not_a_hang),
		cmocka_unit_test(full_send_queue_is_an_error_that_passes),
		cmocka_unit_test(idle_connections_use_no_cpu),
		cmocka_unit_test(connection_with_impossible_queues_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
