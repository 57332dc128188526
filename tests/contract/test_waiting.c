/* SPDX-License-Identifier: BSD-3-Clause */
/* test_waiting.c -- Sends that arrive long before their receive is posted, and the operations that
 * are allowed to overtake these Sends. */
#include <time.h>

#include "ends.h"

#define MSG 1024

static void send_waits_for_its_receive(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, MSG, 1);
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_sleep_ms(20);
	OK(rpma_conn_get_cq(d.srv, &cq));
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	OK(rpma_recv(d.srv, d.srv_mr, 0, MSG, &d));
	ends_expect_received(d.srv, MSG, &d);
	assert_true(ends_is_filled(d.srv_buf, MSG, 1));
	ends_close(&d);
}

static void waiting_sends_keep_their_order(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	for (size_t i = 0; i < 8; i++) {
		ends_fill(d.cli_buf + i * MSG, MSG, (unsigned)i);
		OK(rpma_send(d.cli, d.cli_mr, i * MSG, MSG - i, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (size_t i = 0; i < 8; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, i * MSG, MSG, &d.srv_buf[i]));
		ends_expect_received(d.srv, MSG - i, &d.srv_buf[i]);
		assert_true(ends_is_filled(d.srv_buf + i * MSG, MSG - i, (unsigned)i));
	}
	ends_close(&d);
}

static void post_flush(struct ends *d, int from_server)
{
	OK(rpma_flush(from_server ? d->srv : d->cli, from_server ? d->at_cli : d->at_srv, 8192, MSG,
		      RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, d));
}

/* Each end flushes, waits, and then posts the next receive; neither end must hang. */
static void flushes_complete_while_sends_wait_on_both_sides(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, MSG, 1);
	ends_fill(d.srv_buf, MSG, 2);
	OK(rpma_write(d.cli, d.at_srv, 8192, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	post_flush(&d, 0);
	post_flush(&d, 1);
	for (size_t i = 0; i < 4; i++) {
		OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
		OK(rpma_send(d.srv, d.srv_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	ends_expect_wc(d.srv, ends_flush_opcode(), &d);
	assert_true(ends_is_filled(d.srv_buf + 8192, MSG, 1));
	for (size_t i = 0; i < 4; i++) {
		OK(rpma_recv(d.cli, d.cli_mr, 4096, MSG, NULL));
		ends_expect_received(d.cli, MSG, NULL);
		OK(rpma_recv(d.srv, d.srv_mr, 4096, MSG, NULL));
		ends_expect_received(d.srv, MSG, NULL);
	}
	assert_true(ends_is_filled(d.cli_buf + 4096, MSG, 2));
	assert_true(ends_is_filled(d.srv_buf + 4096, MSG, 1));
	ends_close(&d);
}

/* RFC 5040 s5.5: the target executes a request after it has delivered all earlier messages. */
static void flush_after_a_waiting_send_waits_with_it(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_write(d.cli, d.at_srv, 8192, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	post_flush(&d, 0);
	ends_sleep_ms(20);
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	OK(rpma_recv(d.srv, d.srv_mr, 0, MSG, NULL));
	ends_expect_received(d.srv, MSG, NULL);
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	ends_close(&d);
}

/* More Sends arrive than can be parked: the sender has to wait, and no Send is lost. */
static void flood_without_receives_is_held_back(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(600, 0, 600, 600);
	struct ends_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg};
	/* A RoCE sender retries the Send only every 655 ms. */
	const unsigned n = ends_is_kernels() ? 5 : 500;
	struct ends d;

	ends_open(&d, &opts);
	for (unsigned i = 0; i < n; i++) {
		memcpy(d.cli_buf + i * 64, &i, sizeof(i));
		OK(rpma_send(d.cli, d.cli_mr, i * 64, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (unsigned i = 0; i < n; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, 64, NULL));
		ends_expect_received(d.srv, 64, NULL);
		assert_memory_equal(d.srv_buf, &i, sizeof(i));
	}
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

/* The message is larger than the parking buffers. */
static void large_message_waits_for_its_receive(void **state)
{
	size_t len = 4u << 20;
	struct ends_opts opts = {.buf_size = len};
	struct ends d;

	ends_open(&d, &opts);
	ends_fill(d.cli_buf, len, 1);
	OK(rpma_send(d.cli, d.cli_mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_sleep_ms(20);
	assert_true(ends_is_zero(d.srv_buf, len));
	OK(rpma_recv(d.srv, d.srv_mr, 0, len, &d));
	ends_expect_received(d.srv, len, &d);
	assert_true(ends_is_filled(d.srv_buf, len, 1));
	ends_close(&d);
}

/* The sender has disconnected properly, but its message still waits for a receive. */
static void message_waits_even_if_its_sender_is_gone(void **state)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	struct ends d;
	int ret;

	if (!ends_is_tcp())
		/* InfiniBand drops the Send; the receive completes only when this end
		 * disconnects */
		skip();
	ends_open(&d, NULL);
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	/* After the end the Send need not be delivered, but each receive completes. */
	OK(rpma_conn_get_cq(d.srv, &cq));
	ret = rpma_recv(d.srv, d.srv_mr, 0, MSG, &d);
	if (!ret) {
		ends_cq_wait_wc(cq, &wc);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	}
	ends_close(&d);
}

/* Deletion waits at most SOFTRNIC_DRAIN_MS for work that cannot complete. */
static void deletion_does_not_wait_for_ever(void **state)
{
	struct timespec begin, end;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	post_flush(&d, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	OK(rpma_conn_delete(&d.cli));
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 0, 20);
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_close(&d);
}

/* RFC 5040 s5.3: if Sends do not wait for receives, a Send without a posted receive ends the
 * connection, and both ends get an event. */
static void a_send_without_a_receive_ends_the_connection(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_send(d.cli, d.cli_mr, 0, MSG, RPMA_F_COMPLETION_ON_ERROR, NULL));
	assert_true(ends_event_within(d.cli, 20000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	assert_true(ends_event_within(d.srv, 20000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest strict[] = {
		cmocka_unit_test(a_send_without_a_receive_ends_the_connection),
		cmocka_unit_test(deletion_does_not_wait_for_ever),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_waits_for_its_receive),
		cmocka_unit_test(waiting_sends_keep_their_order),
		cmocka_unit_test(flushes_complete_while_sends_wait_on_both_sides),
		cmocka_unit_test(flush_after_a_waiting_send_waits_with_it),
		cmocka_unit_test(flood_without_receives_is_held_back),
		cmocka_unit_test(large_message_waits_for_its_receive),
		cmocka_unit_test(message_waits_even_if_its_sender_is_gone),
		cmocka_unit_test(deletion_does_not_wait_for_ever),
	};

	if (!ends_sends_wait())
		return cmocka_run_group_tests(strict, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
