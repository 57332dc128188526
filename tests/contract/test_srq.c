/* SPDX-License-Identifier: BSD-3-Clause */
/* test_srq.c -- receives shared by several connections. */
#include "ends.h"

#define CONNS 4
#define SLOT  128

/* Four clients. The server ends of their connections take receives from one shared queue. */
struct star {
	struct ends d;
	struct rpma_srq *srq;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn *cli[CONNS], *srv[CONNS];
	uint32_t qp_num[CONNS];
};

static void star_open(struct star *s, uint32_t srq_rcq_size, uint32_t conn_rcq_size)
{
	struct rpma_srq_cfg *srq_cfg;
	struct ends_opts opts = {0};

	memset(s, 0, sizeof(*s));
	ends_listen(&s->d, NULL);
	s->d.cli_buf = ends_map(ENDS_BUF);
	s->d.srv_buf = ends_map(ENDS_BUF);
	s->d.cli_mr = ends_reg(&s->d, s->d.cli_buf, ENDS_BUF);
	s->d.srv_mr = ends_reg(&s->d, s->d.srv_buf, ENDS_BUF);
	OK(rpma_srq_cfg_new(&srq_cfg));
	OK(rpma_srq_cfg_set_rcq_size(srq_cfg, srq_rcq_size));
	OK(rpma_srq_new(s->d.peer, srq_cfg, &s->srq));
	OK(rpma_srq_cfg_delete(&srq_cfg));
	s->cfg = ends_cfg(0, conn_rcq_size, 0, 0);
	OK(rpma_conn_cfg_set_srq(s->cfg, s->srq));
	opts.srv_cfg = s->cfg;
	for (int i = 0; i < CONNS; i++) {
		ends_connect(&s->d, &opts, &s->cli[i], &s->srv[i]);
		OK(rpma_conn_get_qp_num(s->srv[i], &s->qp_num[i]));
	}
}

static void star_close(struct star *s)
{
	for (int i = 0; i < CONNS; i++) {
		OK(rpma_conn_disconnect(s->cli[i]));
		ends_expect_event(s->srv[i], RPMA_CONN_CLOSED);
		OK(rpma_conn_delete(&s->srv[i]));
		OK(rpma_conn_delete(&s->cli[i]));
	}
	OK(rpma_conn_cfg_delete(&s->cfg));
	OK(rpma_srq_delete(&s->srq));
	ends_close(&s->d);
}

static void star_send(struct star *s, int i)
{
	uint8_t *src = s->d.cli_buf + i * SLOT;

	memset(src, 'A' + i, SLOT);
	OK(rpma_send(s->cli[i], s->d.cli_mr, (size_t)i * SLOT, SLOT, RPMA_F_COMPLETION_ON_ERROR,
		     NULL));
}

/* A receive completion names its buffer and its connection. */
static void star_check(struct star *s, const struct ibv_wc *wc, int *from)
{
	const uint8_t *slot = (const uint8_t *)(uintptr_t)wc->wr_id;
	int i;

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->opcode, IBV_WC_RECV);
	assert_int_equal(wc->byte_len, SLOT);
	for (i = 0; i < CONNS && s->qp_num[i] != wc->qp_num; i++)
		;
	assert_in_range(i, 0, CONNS - 1);
	assert_int_equal(slot[0], 'A' + i);
	assert_int_equal(slot[SLOT - 1], 'A' + i);
	from[i]++;
}

static void post_shared(struct star *s, size_t slot)
{
	OK(rpma_srq_recv(s->srq, s->d.srv_mr, slot * SLOT, SLOT, s->d.srv_buf + slot * SLOT));
}

static void four_connections_share_receives_and_their_queue(void **state)
{
	int from[CONNS] = {0};
	struct rpma_cq *rcq;
	struct ibv_wc wc;
	struct star s;

	star_open(&s, 20, 0);
	OK(rpma_srq_get_rcq(s.srq, &rcq));
	assert_non_null(rcq);
	for (size_t i = 0; i < 3 * CONNS; i++)
		post_shared(&s, i);
	for (int i = 0; i < 3 * CONNS; i++)
		star_send(&s, i % CONNS);
	for (int i = 0; i < 3 * CONNS; i++) {
		ends_cq_wait_wc(rcq, &wc);
		star_check(&s, &wc, from);
	}
	for (int i = 0; i < CONNS; i++)
		assert_int_equal(from[i], 3);
	star_close(&s);
}

/* Each connection waits for a receive, and continues when a receive is posted. */
static void posted_receives_wake_waiting_connections(void **state)
{
	int from[CONNS] = {0};
	struct rpma_cq *rcq;
	struct ibv_wc wc;
	struct star s;

	if (!ends_sends_wait())
		skip(); /* a Send without a receive ends the connection */
	star_open(&s, 20, 0);
	OK(rpma_srq_get_rcq(s.srq, &rcq));
	for (int i = 0; i < CONNS; i++)
		star_send(&s, i);
	ends_sleep_ms(20);
	assert_int_equal(rpma_cq_get_wc(rcq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	for (size_t i = 0; i < CONNS; i++) {
		post_shared(&s, i);
		ends_cq_wait_wc(rcq, &wc);
		star_check(&s, &wc, from);
	}
	for (int i = 0; i < CONNS; i++)
		assert_int_equal(from[i], 1);
	star_close(&s);
}

/* The shared receive queue has no completion queue, so the connection's own queues get the
 * completions. */
static void completions_go_to_the_connections_when_the_srq_has_no_queue(void **state)
{
	for (uint32_t rcq_size = 0; rcq_size <= 10; rcq_size += 10) {
		int from[CONNS] = {0};
		struct rpma_cq *cq;
		struct ibv_wc wc;
		struct star s;

		star_open(&s, 0, rcq_size);
		OK(rpma_srq_get_rcq(s.srq, &cq));
		assert_null(cq);
		for (int i = 0; i < CONNS; i++) {
			post_shared(&s, (size_t)i);
			star_send(&s, i);
			if (rcq_size)
				OK(rpma_conn_get_rcq(s.srv[i], &cq));
			else
				OK(rpma_conn_get_cq(s.srv[i], &cq));
			ends_cq_wait_wc(cq, &wc);
			star_check(&s, &wc, from);
			assert_int_equal(from[i], 1);
		}
		star_close(&s);
	}
}

static void srq_with_queue_and_shared_channel_exclude_each_other(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req = NULL;
	struct rpma_srq *srq;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_srq_new(d.peer, NULL, &srq)); /* by default the SRQ has its own completion queue */
	OK(rpma_conn_cfg_set_srq(cfg, srq));
	OK(rpma_conn_cfg_set_compl_channel(cfg, true));
	assert_int_equal(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req), RPMA_E_INVAL);
	assert_null(req);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	assert_int_equal(rpma_ep_next_conn_req(d.ep, cfg, &req), RPMA_E_INVAL);
	ends_expect_event(d.cli, RPMA_CONN_REJECTED); /* the device ends the connection */
	OK(rpma_conn_delete(&d.cli));
	OK(rpma_conn_cfg_delete(&cfg));
	OK(rpma_srq_delete(&srq));
	ends_close(&d);
}

static void full_srq_is_an_error_that_passes(void **state)
{
	int from[CONNS] = {0}, ret = 0;
	struct rpma_cq *rcq;
	struct ibv_wc wc;
	struct star s;
	size_t n = 0;

	star_open(&s, 20, 0);
	OK(rpma_srq_get_rcq(s.srq, &rcq));
	while (n < 100) {
		ret = rpma_srq_recv(s.srq, s.d.srv_mr, n * SLOT, SLOT, s.d.srv_buf + n * SLOT);
		if (ret)
			break;
		n++;
	}
	assert_int_equal(ret, RPMA_E_PROVIDER);
	assert_in_range(n, 20, 99);
	star_send(&s, 0);
	ends_cq_wait_wc(rcq, &wc);
	star_check(&s, &wc, from);
	post_shared(&s, n);
	star_close(&s);
}

static void one_connection_in_error_leaves_the_others_alone(void **state)
{
	int from[CONNS] = {0};
	struct rpma_cq *rcq;
	struct ibv_wc wc;
	struct star s;

	star_open(&s, 20, 0);
	OK(rpma_srq_get_rcq(s.srq, &rcq));
	post_shared(&s, 0);
	post_shared(&s, 1);
	OK(rpma_conn_delete(&s.cli[0]));
	ends_expect_event(s.srv[0], RPMA_CONN_CLOSED);
	/* The unused receives belong to the shared queue, so the connection's end does not flush
	 * them. */
	assert_int_equal(rpma_cq_get_wc(rcq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	for (int i = 1; i < 3; i++) {
		star_send(&s, i);
		ends_cq_wait_wc(rcq, &wc);
		star_check(&s, &wc, from);
	}
	OK(rpma_conn_delete(&s.srv[0]));
	ends_connect(&s.d, NULL, &s.cli[0], &s.srv[0]);
	star_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_connections_share_receives_and_their_queue),
		cmocka_unit_test(posted_receives_wake_waiting_connections),
		cmocka_unit_test(completions_go_to_the_connections_when_the_srq_has_no_queue),
		cmocka_unit_test(srq_with_queue_and_shared_channel_exclude_each_other),
		cmocka_unit_test(full_srq_is_an_error_that_passes),
		cmocka_unit_test(one_connection_in_error_leaves_the_others_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
