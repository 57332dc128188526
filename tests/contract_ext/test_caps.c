/* SPDX-License-Identifier: BSD-3-Clause */
/* test_caps.c -- the capabilities of the peer, and the counters of a connection. */
#include "ends_ext.h"

#define OURS                                                                                       \
	(RPMA_CAP_SOFTRNIC | RPMA_CAP_FLUSH | RPMA_CAP_FLUSH_ALL | RPMA_CAP_ATOMIC_WRITE |         \
	 RPMA_CAP_VERIFY | RPMA_CAP_QUERY | RPMA_CAP_IMM | RPMA_CAP_ATOMICS)

/* A device assumes that its peer is the same kind of device. */
static uint32_t of_device(void)
{
	uint32_t caps = ends_is_tcp() ? 0 : RPMA_CAP_IMM;

	if (ends_atomic_write_opcode() == ENDS_WC_ATOMIC_WRITE)
		caps |= RPMA_CAP_ATOMIC_WRITE;
	if (ends_flush_opcode() == ENDS_WC_FLUSH)
		caps |= RPMA_CAP_FLUSH;
	return caps;
}

static void both_ends_know_what_the_other_can(void **state)
{
	uint32_t cli = 77, srv = 77;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_remote_caps(d.cli, &cli));
	OK(rpma_conn_get_remote_caps(d.srv, &srv));
	if (ends_is_kernels())
		assert_int_equal(cli, of_device());
	else if (ends_is_plain())
		assert_int_equal(cli, 0);
	else
		assert_int_equal(cli & OURS, OURS);
	assert_int_equal(cli, srv);
	ends_close(&d);
}

static void nothing_is_known_before_the_connection_stands(void **state)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	uint32_t caps = 77;
	struct ends d = {0};

	/* on a device the capabilities are available before the connection is established */
	SOFTRNIC_ONLY();
	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	/* no program accepts the request, so the connection is not established */
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(rpma_conn_get_remote_caps(conn, &caps), RPMA_E_AGAIN);
	assert_int_equal(caps, 77);
	OK(rpma_conn_delete(&conn));
	ends_close(&d);
}

static void what_was_known_stays_known_after_the_end(void **state)
{
	uint32_t before, after;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_remote_caps(d.srv, &before));
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_disconnect(d.srv);
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_get_remote_caps(d.srv, &after));
	assert_int_equal(before, after);
	ends_close(&d);
}

static void counters_count(void **state)
{
	uint64_t tx, rx;
	struct ends d;

	SOFTRNIC_ONLY(); /* devices have no counters */
	ends_open(&d, NULL);
	tx = ends_counter(d.cli, "tx_bytes");
	rx = ends_counter(d.srv, "rx_bytes");
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 10000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, 10000);
	assert_true(ends_counter(d.cli, "tx_bytes") - tx > 10000);
	assert_true(ends_counter(d.srv, "rx_bytes") - rx > 10000);
	assert_int_equal(ends_counter(d.srv, "flushes_in"), ends_is_plain() ? 0 : 1);
	assert_int_equal(ends_counter(d.srv, "reads_in"), ends_is_plain() ? 1 : 0);
	ends_close(&d);
}

/* Expect checksums as this variant of the test sets them. By default they are off between ends on
 * one host. */
static void counters_tell_whether_frames_have_checksums(void **state)
{
	const char *crc = getenv("SOFTRNIC_CRC");
	struct ends d;

	SOFTRNIC_ONLY();
	ends_open(&d, NULL);
	assert_int_equal(ends_counter(d.cli, "crc"), crc && !strcmp(crc, "on"));
	assert_int_equal(ends_counter(d.srv, "crc"), crc && !strcmp(crc, "on"));
	ends_close(&d);
}

static void counters_tell_how_many_they_are(void **state)
{
	struct rpma_counter one = {NULL, 0};
	size_t all = 0, n = 1;
	struct ends d;

	ends_open(&d, NULL);
	if (ends_is_kernels()) {
		assert_int_equal(rpma_conn_get_counters(d.cli, NULL, &all), RPMA_E_NOSUPP);
		ends_close(&d);
		return;
	}
	OK(rpma_conn_get_counters(d.cli, NULL, &all));
	assert_true(all > 1);
	OK(rpma_conn_get_counters(d.cli, &one, &n));
	assert_int_equal(n, all);
	assert_non_null(one.name);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_know_what_the_other_can),
		cmocka_unit_test(nothing_is_known_before_the_connection_stands),
		cmocka_unit_test(what_was_known_stays_known_after_the_end),
		cmocka_unit_test(counters_count),
		cmocka_unit_test(counters_tell_whether_frames_have_checksums),
		cmocka_unit_test(counters_tell_how_many_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
