/* SPDX-License-Identifier: BSD-3-Clause */
/* test_message.c -- Sends and receives; test_waiting.c has the Sends that wait for a receive. */
#include "ends.h"

#define MSG 1024

static void messages_of_every_size_arrive(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 8, 9, 1447, 4096, 65536, 1 << 20};
	struct ends_opts opts = {.buf_size = 1 << 20};
	struct ends d;

	ends_open(&d, &opts);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ends_fill(d.cli_buf, sizes[i], (unsigned)i);
		OK(rpma_recv(d.srv, d.srv_mr, 0, 1 << 20, &opts));
		OK(rpma_send(d.cli, d.cli_mr, 0, sizes[i], RPMA_F_COMPLETION_ALWAYS, &d));
		ends_expect_wc(d.cli, IBV_WC_SEND, &d);
		ends_expect_received(d.srv, sizes[i], &opts);
		assert_true(ends_is_filled(d.srv_buf, sizes[i], (unsigned)i));
	}
	ends_close(&d);
}

static void too_small_a_receive_fails(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ibv_wc wc = {0};
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, MSG, 1);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 16, &d));
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_wait_wc(d.srv, &wc);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	assert_true(ends_is_zero(d.srv_buf + 16, MSG));
	if (ends_errors_disconnect()) {
		assert_true(ends_event_within(d.srv, 5000, &ev));
		assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
		assert_true(ends_event_within(d.cli, 5000, &ev));
		assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	}
	ends_close(&d);
}

static void post_early_receives(struct ends *d, struct rpma_conn_req *req, int is_server)
{
	if (is_server)
		OK(rpma_conn_req_recv(req, d->srv_mr, 0, MSG, d));
	else
		OK(rpma_conn_req_recv(req, d->cli_mr, 0, MSG, d));
}

static void receives_may_be_posted_before_connecting(void **state)
{
	struct ends_opts opts = {.before_connect = post_early_receives};
	struct ends d;

	ends_open(&d, &opts);
	strcpy((char *)d.cli_buf + MSG, "ping");
	strcpy((char *)d.srv_buf + MSG, "pong");
	OK(rpma_send(d.cli, d.cli_mr, MSG, 5, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_received(d.srv, 5, &d);
	OK(rpma_send(d.srv, d.srv_mr, MSG, 5, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_received(d.cli, 5, &d);
	assert_string_equal((char *)d.srv_buf, "ping");
	assert_string_equal((char *)d.cli_buf, "pong");
	ends_close(&d);
}

/* The server sends right after it accepts; the client sends nothing. */
static void passive_side_speaks_first(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};
	struct rpma_cq *cq;
	int fd;

	if (ends_is_kernels() && ends_is_tcp())
		/* siw ends the connection if the passive side sends right after the MPA reply */
		skip();
	ends_listen(&d, NULL);
	d.cli_buf = ends_map(ENDS_BUF);
	d.srv_buf = ends_map(ENDS_BUF);
	d.cli_mr = ends_reg(&d, d.cli_buf, ENDS_BUF);
	d.srv_mr = ends_reg(&d, d.srv_buf, ENDS_BUF);
	ends_fill(d.srv_buf, MSG, 5);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_recv(req, d.cli_mr, 0, MSG, &d));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.srv));
	OK(rpma_send(d.srv, d.srv_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	ends_expect_event(d.srv, RPMA_CONN_ESTABLISHED);
	/* The server's device holds the Send until the initiator sends (RFC 5044 s7.1.2). */
	if (ends_is_plain() && ends_is_tcp()) {
		OK(rpma_conn_get_cq(d.cli, &cq));
		OK(rpma_cq_get_fd(cq, &fd));
		assert_false(ends_readable(fd, 50));
		OK(rpma_write(d.cli, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	ends_expect_received(d.cli, MSG, &d);
	assert_true(ends_is_filled(d.cli_buf, MSG, 5));
	ends_close(&d);
}

/* The send queue frees the slots of unsignalled Sends although the program never polls the
 * completion queue. */
static void unsignalled_sends_never_fill_the_queue(void **state)
{
	const unsigned n = ends_is_kernels() ? 1000 : 10000; /* the guest lab is slow */
	struct ends d;

	ends_open(&d, NULL);
	for (unsigned i = 0; i < n; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, 8, NULL));
		OK(rpma_recv(d.cli, d.cli_mr, 0, 8, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
		ends_expect_received(d.srv, 8, NULL);
		OK(rpma_send(d.srv, d.srv_mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
		ends_expect_received(d.cli, 8, NULL);
	}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_every_size_arrive),
		cmocka_unit_test(too_small_a_receive_fails),
		cmocka_unit_test(receives_may_be_posted_before_connecting),
		cmocka_unit_test(passive_side_speaks_first),
		cmocka_unit_test(unsignalled_sends_never_fill_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
