/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stalled.c -- a connection ends after more Sends than the receiving end can park. */
#include "ends.h"

/* size of a message; BIGS messages are more than all parking buffers, sockets and rings can hold */
#define BIG  16384
#define BIGS 600

/* Sends without a receive delay the sender's FIN, but the connection's end is still reported. Each
 * Send that completed at the sender then gets a receive, in order. */
static unsigned end_behind_waiting_sends(size_t len, unsigned n)
{
	struct rpma_conn_cfg *cfg = ends_cfg(700, 0, 700, 700);
	struct ends_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg, .buf_size = n * len};
	struct ibv_wc wc = {0};
	unsigned done = 0;
	struct ends d;

	ends_open(&d, &opts);
	for (unsigned i = 0; i < n; i++) {
		memcpy(d.cli_buf + i * len, &i, sizeof(i));
		OK(rpma_send(d.cli, d.cli_mr, i * len, len, RPMA_F_COMPLETION_ALWAYS, NULL));
	}
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	for (; done < n; done++) {
		ends_wait_wc(d.cli, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	for (unsigned i = 0; i < done; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, len, NULL));
		ends_expect_received(d.srv, len, NULL);
		assert_memory_equal(d.srv_buf, &i, sizeof(i));
	}
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
	return done;
}

static void the_end_is_reported_where_it_has_arrived(void **state)
{
	assert_int_equal(end_behind_waiting_sends(64, 500), 500);
}

static void the_end_is_reported_where_buffers_hold_it_up(void **state)
{
	assert_in_range(end_behind_waiting_sends(BIG, BIGS), 16, BIGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_is_reported_where_it_has_arrived),
		cmocka_unit_test(the_end_is_reported_where_buffers_hold_it_up),
	};

	if (!ends_is_tcp() || !ends_sends_wait())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
