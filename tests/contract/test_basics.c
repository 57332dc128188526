/* SPDX-License-Identifier: BSD-3-Clause */
/* test_basics.c -- the basic operations between two ends. */
#include "ends.h"

static void write_arrives_after_flush(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	memset(d.cli_buf, 0xa5, 4096);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 4096, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, d.at_srv, 0, 4096, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	assert_memory_equal(d.srv_buf, d.cli_buf, 4096);
	assert_int_equal(d.srv_buf[4096], 0);
	ends_close(&d);
}

static void read_fetches(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	memset(d.srv_buf + 100, 0x3c, 1000);
	OK(rpma_read(d.cli, d.cli_mr, 7, d.at_srv, 100, 1000, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
	assert_memory_equal(d.cli_buf + 7, d.srv_buf + 100, 1000);
	assert_int_equal(d.cli_buf[6], 0);
	assert_int_equal(d.cli_buf[1007], 0);
	ends_close(&d);
}

static void send_meets_receive(void **state)
{
	struct ends d;
	struct ibv_wc wc = {0};

	ends_open(&d, NULL);
	strcpy((char *)d.cli_buf, "hello");
	OK(rpma_recv(d.srv, d.srv_mr, 64, 32, &wc));
	OK(rpma_send(d.cli, d.cli_mr, 0, 6, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_SEND, &d);
	ends_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 6);
	assert_string_equal((char *)d.srv_buf + 64, "hello");
	ends_close(&d);
}

static void disconnect_closes_both(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_arrives_after_flush),
		cmocka_unit_test(read_fetches),
		cmocka_unit_test(send_meets_receive),
		cmocka_unit_test(disconnect_closes_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
