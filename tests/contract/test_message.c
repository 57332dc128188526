/* SPDX-License-Identifier: BSD-3-Clause */
/* test_message.c -- sends and receives, also when one is there long before the other. */
#include "duo.h"

#define MSG 1024

static void expect_received(struct rpma_conn *conn, size_t len, const void *op_context)
{
	struct ibv_wc wc = {0};

	duo_wait_wc(conn, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("receive failed: %s", ibv_wc_status_str(wc.status));
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, len);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, op_context);
}

static void messages_of_every_size_arrive(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 8, 9, 1447, 4096, 65536, 1 << 20};
	struct duo_opts opts = {.buf_size = 1 << 20};
	struct duo d;

	duo_open(&d, &opts);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		duo_fill(d.cli_buf, sizes[i], (unsigned)i);
		OK(rpma_recv(d.srv, d.srv_mr, 0, 1 << 20, &opts));
		OK(rpma_send(d.cli, d.cli_mr, 0, sizes[i], RPMA_F_COMPLETION_ALWAYS, &d));
		duo_expect_wc(d.cli, IBV_WC_SEND, &d);
		expect_received(d.srv, sizes[i], &opts);
		assert_true(duo_is_filled(d.srv_buf, sizes[i], (unsigned)i));
	}
	duo_close(&d);
}

static void send_waits_for_its_receive(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, NULL);
	duo_fill(d.cli_buf, MSG, 1);
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	duo_sleep_ms(20);
	OK(rpma_conn_get_cq(d.srv, &cq));
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	OK(rpma_recv(d.srv, d.srv_mr, 0, MSG, &d));
	expect_received(d.srv, MSG, &d);
	assert_true(duo_is_filled(d.srv_buf, MSG, 1));
	duo_close(&d);
}

static void waiting_sends_keep_their_order(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	for (size_t i = 0; i < 8; i++) {
		duo_fill(d.cli_buf + i * MSG, MSG, (unsigned)i);
		OK(rpma_send(d.cli, d.cli_mr, i * MSG, MSG - i, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (size_t i = 0; i < 8; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, i * MSG, MSG, &d.srv_buf[i]));
		expect_received(d.srv, MSG - i, &d.srv_buf[i]);
		assert_true(duo_is_filled(d.srv_buf + i * MSG, MSG - i, (unsigned)i));
	}
	duo_close(&d);
}

static void post_flush(struct duo *d, int from_server)
{
	OK(rpma_flush(from_server ? d->srv : d->cli, from_server ? d->at_cli : d->at_srv, 8192, MSG,
		      RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, d));
}

/* "Flush, wait, then post the next receive" on both sides at once must never hang. */
static void flushes_complete_while_sends_wait_on_both_sides(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	duo_fill(d.cli_buf, MSG, 1);
	duo_fill(d.srv_buf, MSG, 2);
	OK(rpma_write(d.cli, d.at_srv, 8192, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	post_flush(&d, 0);
	post_flush(&d, 1);
	for (size_t i = 0; i < 4; i++) {
		OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
		OK(rpma_send(d.srv, d.srv_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	duo_expect_wc(d.cli, duo_flush_opcode(), &d);
	duo_expect_wc(d.srv, duo_flush_opcode(), &d);
	assert_true(duo_is_filled(d.srv_buf + 8192, MSG, 1));
	for (size_t i = 0; i < 4; i++) {
		OK(rpma_recv(d.cli, d.cli_mr, 4096, MSG, NULL));
		expect_received(d.cli, MSG, NULL);
		OK(rpma_recv(d.srv, d.srv_mr, 4096, MSG, NULL));
		expect_received(d.srv, MSG, NULL);
	}
	assert_true(duo_is_filled(d.cli_buf + 4096, MSG, 2));
	assert_true(duo_is_filled(d.srv_buf + 4096, MSG, 1));
	duo_close(&d);
}

/* RFC 5040 s5.5: a request is not executed before what was sent ahead of it is delivered. */
static void flush_behind_a_waiting_send_waits_with_it(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_write(d.cli, d.at_srv, 8192, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	post_flush(&d, 0);
	duo_sleep_ms(20);
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	OK(rpma_recv(d.srv, d.srv_mr, 0, MSG, NULL));
	expect_received(d.srv, MSG, NULL);
	duo_expect_wc(d.cli, duo_flush_opcode(), &d);
	duo_close(&d);
}

/* More than is kept aside: the sender has to wait, nothing is lost. */
static void flood_without_receives_is_held_back(void **state)
{
	struct rpma_conn_cfg *cfg = duo_cfg(600, 0, 600, 600);
	struct duo_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg};
	struct duo d;

	duo_open(&d, &opts);
	for (unsigned i = 0; i < 500; i++) {
		memcpy(d.cli_buf + i * 64, &i, sizeof(i));
		OK(rpma_send(d.cli, d.cli_mr, i * 64, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (unsigned i = 0; i < 500; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, 64, NULL));
		expect_received(d.srv, 64, NULL);
		assert_memory_equal(d.srv_buf, &i, sizeof(i));
	}
	duo_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void too_small_a_receive_fails(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ibv_wc wc = {0};
	struct duo d;

	duo_open(&d, NULL);
	duo_fill(d.cli_buf, MSG, 1);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 16, &d));
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	duo_wait_wc(d.srv, &wc);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	assert_true(duo_is_zero(d.srv_buf + 16, MSG));
	assert_true(duo_event_within(d.srv, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	assert_true(duo_event_within(d.cli, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	duo_close(&d);
}

static void post_early_receives(struct duo *d, struct rpma_conn_req *req, int is_server)
{
	if (is_server)
		OK(rpma_conn_req_recv(req, d->srv_mr, 0, MSG, d));
	else
		OK(rpma_conn_req_recv(req, d->cli_mr, 0, MSG, d));
}

static void receives_may_be_posted_before_connecting(void **state)
{
	struct duo_opts opts = {.before_connect = post_early_receives};
	struct duo d;

	duo_open(&d, &opts);
	strcpy((char *)d.cli_buf + MSG, "ping");
	strcpy((char *)d.srv_buf + MSG, "pong");
	OK(rpma_send(d.cli, d.cli_mr, MSG, 5, RPMA_F_COMPLETION_ON_ERROR, NULL));
	expect_received(d.srv, 5, &d);
	OK(rpma_send(d.srv, d.srv_mr, MSG, 5, RPMA_F_COMPLETION_ON_ERROR, NULL));
	expect_received(d.cli, 5, &d);
	assert_string_equal((char *)d.srv_buf, "ping");
	assert_string_equal((char *)d.cli_buf, "pong");
	duo_close(&d);
}

/* The server sends right behind its accept; the client only listens. */
static void passive_side_speaks_first(void **state)
{
	struct rpma_conn_req *req;
	struct duo d = {0};
	struct rpma_cq *cq;
	int fd;

	duo_listen(&d, NULL);
	d.cli_buf = duo_map(DUO_BUF);
	d.srv_buf = duo_map(DUO_BUF);
	d.cli_mr = duo_reg(&d, d.cli_buf, DUO_BUF);
	d.srv_mr = duo_reg(&d, d.srv_buf, DUO_BUF);
	duo_fill(d.srv_buf, MSG, 5);
	OK(rpma_conn_req_new(d.peer, "127.0.0.1", d.port, NULL, &req));
	OK(rpma_conn_req_recv(req, d.cli_mr, 0, MSG, &d));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.srv));
	OK(rpma_send(d.srv, d.srv_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	duo_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	duo_expect_event(d.srv, RPMA_CONN_ESTABLISHED);
	if (duo_is_plain()) { /* held until the initiator has sent something (RFC 5044 s7.1.2) */
		OK(rpma_conn_get_cq(d.cli, &cq));
		OK(rpma_cq_get_fd(cq, &fd));
		assert_false(duo_readable(fd, 50));
		OK(rpma_write(d.cli, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	expect_received(d.cli, MSG, &d);
	assert_true(duo_is_filled(d.cli_buf, MSG, 5));
	duo_close(&d);
}

/* Its slots are taken back although nobody polls for them. */
static void unsignalled_sends_never_fill_the_queue(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	for (unsigned i = 0; i < 10000; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, 8, NULL));
		OK(rpma_recv(d.cli, d.cli_mr, 0, 8, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
		expect_received(d.srv, 8, NULL);
		OK(rpma_send(d.srv, d.srv_mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
		expect_received(d.cli, 8, NULL);
	}
	duo_close(&d);
}

static void immediate_data_fail_cleanly(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	assert_int_equal(
		rpma_send_with_imm(d.cli, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, 42, NULL),
		RPMA_E_PROVIDER);
	assert_int_equal(rpma_write_with_imm(d.cli, d.at_srv, 0, d.cli_mr, 0, 8,
					     RPMA_F_COMPLETION_ALWAYS, 42, NULL),
			 RPMA_E_PROVIDER);
	/* Nothing of it was sent, and the connection is as good as before. */
	duo_fill(d.cli_buf, 8, 1);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
	OK(rpma_send(d.cli, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &d));
	duo_expect_wc(d.cli, IBV_WC_SEND, &d);
	expect_received(d.srv, 8, &d);
	duo_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_every_size_arrive),
		cmocka_unit_test(send_waits_for_its_receive),
		cmocka_unit_test(waiting_sends_keep_their_order),
		cmocka_unit_test(flushes_complete_while_sends_wait_on_both_sides),
		cmocka_unit_test(flush_behind_a_waiting_send_waits_with_it),
		cmocka_unit_test(flood_without_receives_is_held_back),
		cmocka_unit_test(too_small_a_receive_fails),
		cmocka_unit_test(receives_may_be_posted_before_connecting),
		cmocka_unit_test(passive_side_speaks_first),
		cmocka_unit_test(unsignalled_sends_never_fill_the_queue),
		cmocka_unit_test(immediate_data_fail_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
