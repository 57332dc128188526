/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shared_cq.c -- many connections share one completion queue and its descriptor. */
#include <sys/epoll.h>
#include <unistd.h>

#include "ends.h"

enum { CONNS = 64, LEN = 512 };

static struct rpma_conn_cfg *cfg_with(struct rpma_cq *cq)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 8, 8);

	OK(rpma_conn_cfg_set_cq(cfg, cq));
	return cfg;
}

struct crowd {
	struct ends ends; /* the first connection, and the memory that all connections use */
	struct rpma_cq *cq;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn *cli[CONNS], *srv[CONNS];
	uint32_t qp_num[CONNS];
};

/* All clients complete in one queue, each server end in a queue of its own. */
static void crowd_open(struct crowd *c, int n, uint32_t cq_size)
{
	struct ends_opts opts = {0};

	memset(c, 0, sizeof(*c));
	ends_open(&c->ends, &opts);
	OK(rpma_cq_new(c->ends.peer, cq_size, &c->cq));
	c->cfg = cfg_with(c->cq);
	opts.cli_cfg = c->cfg;
	for (int i = 0; i < n; i++) {
		ends_connect(&c->ends, &opts, &c->cli[i], &c->srv[i]);
		OK(rpma_conn_get_qp_num(c->cli[i], &c->qp_num[i]));
	}
}

static void crowd_close(struct crowd *c)
{
	for (int i = 0; i < CONNS; i++) {
		OK(rpma_conn_delete(&c->cli[i]));
		OK(rpma_conn_delete(&c->srv[i]));
	}
	OK(rpma_cq_delete(&c->cq));
	assert_null(c->cq);
	OK(rpma_conn_cfg_delete(&c->cfg));
	ends_close(&c->ends);
}

static void write_and_flush(struct crowd *c, int i, const void *op_context)
{
	OK(rpma_write(c->cli[i], c->ends.at_srv, (size_t)i * LEN, c->ends.cli_mr, (size_t)i * LEN,
		      LEN, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(c->cli[i], c->ends.at_srv, (size_t)i * LEN, LEN, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, op_context));
}

static void check_wc(const struct crowd *c, const struct ibv_wc *wc, bool *seen)
{
	size_t i = (size_t)wc->wr_id;

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_in_range(i, 0, CONNS - 1);
	assert_int_equal(wc->qp_num, c->qp_num[i]);
	assert_false(seen[i]);
	seen[i] = true;
	assert_true(ends_is_filled(c->ends.srv_buf + i * LEN, LEN, (unsigned)i));
}

static void one_descriptor_reports_all_and_qp_num_names_the_connection(void **state)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int epfd = epoll_create1(EPOLL_CLOEXEC), fd, got, done = 0;
	const int conns = ends_max_conns(CONNS);
	bool seen[CONNS] = {false};
	struct ibv_wc wc[16];
	struct crowd c;

	crowd_open(&c, conns, 2 * (uint32_t)conns);
	for (unsigned i = 0; i < (unsigned)conns; i++)
		ends_fill(c.ends.cli_buf + i * LEN, LEN, i);
	OK(rpma_cq_get_fd(c.cq, &fd));
	ends_set_nonblock(fd);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev), 0);
	for (int i = 0; i < conns; i++)
		write_and_flush(&c, i, (void *)(uintptr_t)i);
	while (done < conns) {
		assert_int_equal(epoll_wait(epfd, &ev, 1, 20000), 1);
		OK(rpma_cq_wait(c.cq));
		while (!rpma_cq_get_wc(c.cq, 16, wc, &got))
			for (int i = 0; i < got; i++, done++)
				check_wc(&c, &wc[i], seen);
	}
	assert_int_equal(rpma_cq_get_wc(c.cq, 16, wc, &got), RPMA_E_NO_COMPLETION);
	close(epfd);
	crowd_close(&c);
}

static void the_connection_names_the_common_queue(void **state)
{
	struct rpma_cq *cq = NULL, *rcq = NULL;
	struct crowd c;
	bool is_rcq;
	int fd;

	crowd_open(&c, 1, 16);
	OK(rpma_conn_get_cq(c.cli[0], &cq));
	assert_ptr_equal(cq, c.cq);
	OK(rpma_conn_get_rcq(c.cli[0], &rcq));
	assert_null(rcq);
	assert_int_equal(rpma_conn_wait_timeout(c.cli[0], 0, &cq, &is_rcq), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_get_compl_fd(c.cli[0], &fd), RPMA_E_NOT_SHARED_CHNL);
	crowd_close(&c);
}

static void receives_can_have_a_queue_of_their_own_beside_it(void **state)
{
	struct ends_opts opts = {0};
	struct rpma_cq *rcq = NULL;
	struct ibv_wc wc;
	struct crowd c;

	crowd_open(&c, 0, 16);
	OK(rpma_conn_cfg_set_rcq_size(c.cfg, 4));
	opts.cli_cfg = c.cfg;
	ends_connect(&c.ends, &opts, &c.cli[0], &c.srv[0]);
	OK(rpma_conn_get_rcq(c.cli[0], &rcq));
	assert_non_null(rcq);
	OK(rpma_recv(c.cli[0], c.ends.cli_mr, 0, 64, &c));
	OK(rpma_write(c.cli[0], NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_send(c.srv[0], c.ends.srv_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_cq_wait_wc(rcq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(rpma_cq_get_wc(c.cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	crowd_close(&c);
}

static void a_queue_in_use_is_not_deleted_and_goes_on_working(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct ibv_wc wc;
	struct crowd c;

	crowd_open(&c, 1, 16);
	assert_int_equal(rpma_cq_delete(&c.cq), RPMA_E_AGAIN);
	assert_non_null(c.cq);
	write_and_flush(&c, 0, &c);
	ends_cq_wait_wc(c.cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	OK(rpma_conn_delete(&c.cli[0]));
	/* A connection request that is not yet a connection also counts as a user of the queue. */
	OK(rpma_conn_req_new(c.ends.peer, ends_addr(), c.ends.port, c.cfg, &req));
	assert_int_equal(rpma_cq_delete(&c.cq), RPMA_E_AGAIN);
	OK(rpma_conn_req_delete(&req));
	crowd_close(&c);
}

static void a_connections_own_queue_is_not_for_deletion(void **state)
{
	struct rpma_cq *own = NULL;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &own));
	assert_int_equal(rpma_cq_delete(&own), RPMA_E_INVAL);
	assert_non_null(own);
	ends_flush(d.cli, d.at_srv, 0, 8);
	ends_close(&d);
}

/* Unpolled completions of a deleted connection can stay in the queue or vanish. All other
 * completions stay. */
static void a_deleted_connection_leaves_the_queue_in_order(void **state)
{
	struct ibv_wc wc;
	struct crowd c;
	int fd, ret;

	crowd_open(&c, 2, 16);
	OK(rpma_cq_get_fd(c.cq, &fd));
	write_and_flush(&c, 0, (void *)(uintptr_t)5);
	assert_true(ends_readable(fd, 20000));
	OK(rpma_conn_delete(&c.cli[0]));
	while ((ret = rpma_cq_get_wc(c.cq, 1, &wc, NULL)) == 0) {
		assert_int_equal(wc.wr_id, 5);
		assert_int_equal(wc.qp_num, c.qp_num[0]);
	}
	assert_int_equal(ret, RPMA_E_NO_COMPLETION);
	write_and_flush(&c, 1, (void *)(uintptr_t)6);
	ends_cq_wait_wc(c.cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(wc.qp_num, c.qp_num[1]);
	crowd_close(&c);
}

static void a_lost_connection_fails_in_the_common_queue_alone(void **state)
{
	bool failed = false;
	struct ibv_wc wc;
	struct crowd c;

	crowd_open(&c, 2, 16);
	OK(rpma_recv(c.cli[0], c.ends.cli_mr, 0, 8, (void *)(uintptr_t)9));
	OK(rpma_conn_delete(&c.srv[0]));
	ends_disconnect(c.cli[0]);
	while (!failed) {
		ends_cq_wait_wc(c.cq, &wc);
		assert_int_equal(wc.qp_num, c.qp_num[0]);
		failed = wc.status != IBV_WC_SUCCESS;
	}
	assert_int_equal(wc.wr_id, 9);
	write_and_flush(&c, 1, (void *)(uintptr_t)1);
	ends_cq_wait_wc(c.cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, c.qp_num[1]);
	crowd_close(&c);
}

static void a_shared_channel_does_not_go_with_it(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct crowd c;

	crowd_open(&c, 0, 16);
	OK(rpma_conn_cfg_set_compl_channel(c.cfg, true));
	assert_int_equal(rpma_conn_req_new(c.ends.peer, ends_addr(), c.ends.port, c.cfg, &req),
			 RPMA_E_INVAL);
	assert_null(req);
	crowd_close(&c);
}

static void taken_back_each_connection_has_its_own_again(void **state)
{
	struct ends_opts opts = {0};
	struct rpma_cq *cq = NULL;
	struct crowd c;

	crowd_open(&c, 0, 16);
	OK(rpma_conn_cfg_set_cq(c.cfg, NULL));
	OK(rpma_conn_cfg_set_cq_size(c.cfg, 10));
	opts.cli_cfg = c.cfg;
	ends_connect(&c.ends, &opts, &c.cli[0], &c.srv[0]);
	OK(rpma_conn_get_cq(c.cli[0], &cq));
	assert_non_null(cq);
	assert_ptr_not_equal(cq, c.cq);
	crowd_close(&c);
}

/* A server receives from all connections in one queue, and waits on its one descriptor. */
static void a_server_receives_from_all_in_one_queue(void **state)
{
	struct ends_opts opts = {0};
	const int conns = ends_max_conns(CONNS);
	bool seen[CONNS] = {false};
	struct ibv_wc wc;
	struct crowd c;

	crowd_open(&c, 0, 4 * (uint32_t)conns);
	opts.srv_cfg = c.cfg;
	for (int i = 0; i < conns; i++) {
		ends_connect(&c.ends, &opts, &c.cli[i], &c.srv[i]);
		OK(rpma_conn_get_qp_num(c.srv[i], &c.qp_num[i]));
		OK(rpma_recv(c.srv[i], c.ends.srv_mr, (size_t)i * LEN, LEN, (void *)(uintptr_t)i));
		ends_fill(c.ends.cli_buf + (size_t)i * LEN, LEN, (unsigned)i);
	}
	for (int i = conns - 1; i >= 0; i--)
		OK(rpma_send(c.cli[i], c.ends.cli_mr, (size_t)i * LEN, LEN,
			     RPMA_F_COMPLETION_ON_ERROR, NULL));
	for (int i = 0; i < conns; i++) {
		ends_cq_wait_wc(c.cq, &wc);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, LEN);
		check_wc(&c, &wc, seen);
	}
	crowd_close(&c);
}

static void a_shared_receive_queue_without_a_queue_completes_there_too(void **state)
{
	struct ends_opts opts = {0};
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_srq *srq;
	struct ibv_wc wc;
	struct crowd c;

	crowd_open(&c, 0, 16);
	OK(rpma_srq_cfg_new(&srq_cfg));
	OK(rpma_srq_cfg_set_rcq_size(srq_cfg, 0));
	OK(rpma_srq_new(c.ends.peer, srq_cfg, &srq));
	OK(rpma_srq_recv(srq, c.ends.srv_mr, 0, LEN, &c));
	OK(rpma_conn_cfg_set_srq(c.cfg, srq));
	opts.srv_cfg = c.cfg;
	ends_connect(&c.ends, &opts, &c.cli[0], &c.srv[0]);
	OK(rpma_send(c.cli[0], c.ends.cli_mr, 0, LEN, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_cq_wait_wc(c.cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	OK(rpma_conn_delete(&c.srv[0]));
	OK(rpma_srq_delete(&srq));
	OK(rpma_srq_cfg_delete(&srq_cfg));
	crowd_close(&c);
}

static void a_queue_that_overflows_breaks_connections_and_loses_nothing_silently(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct crowd c;

	/* siw loses the completions that do not fit, and the connection stays usable */
	SOFTRNIC_ONLY();
	crowd_open(&c, 1, 2);
	for (int i = 0; i < 6; i++)
		OK(rpma_write(c.cli[0], c.ends.at_srv, 0, c.ends.cli_mr, 0, 8,
			      RPMA_F_COMPLETION_ALWAYS, NULL));
	assert_true(ends_event_within(c.cli[0], 20000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	crowd_close(&c);
}

static void a_queue_of_impossible_size_is_refused(void **state)
{
	struct rpma_cq *cq = NULL;
	struct crowd c;

	crowd_open(&c, 0, 1);
	assert_int_equal(rpma_cq_new(c.ends.peer, UINT32_MAX, &cq), RPMA_E_PROVIDER);
	assert_null(cq);
	crowd_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_descriptor_reports_all_and_qp_num_names_the_connection),
		cmocka_unit_test(the_connection_names_the_common_queue),
		cmocka_unit_test(receives_can_have_a_queue_of_their_own_beside_it),
		cmocka_unit_test(a_queue_in_use_is_not_deleted_and_goes_on_working),
		cmocka_unit_test(a_connections_own_queue_is_not_for_deletion),
		cmocka_unit_test(a_deleted_connection_leaves_the_queue_in_order),
		cmocka_unit_test(a_lost_connection_fails_in_the_common_queue_alone),
		cmocka_unit_test(a_shared_channel_does_not_go_with_it),
		cmocka_unit_test(a_server_receives_from_all_in_one_queue),
		cmocka_unit_test(a_shared_receive_queue_without_a_queue_completes_there_too),
		cmocka_unit_test(
			a_queue_that_overflows_breaks_connections_and_loses_nothing_silently),
		cmocka_unit_test(a_queue_of_impossible_size_is_refused),
		cmocka_unit_test(taken_back_each_connection_has_its_own_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
