/* SPDX-License-Identifier: BSD-3-Clause */
/* test_close.c -- connections end in each possible way and leave no resources. */
#include "ends.h"
#include "lib/fds.h"

#define CYCLES 200

static void connect_and_part(struct ends *d)
{
	struct rpma_conn *cli, *srv;

	ends_connect(d, NULL, &cli, &srv);
	OK(rpma_conn_disconnect(cli));
	ends_expect_event(srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(srv));
	ends_expect_event(cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_delete(&cli));
	OK(rpma_conn_delete(&srv));
}

/* Whichever thread uses a socket last closes it, so wait until no socket is left. */
static int settled_fds(void)
{
	int n = open_fds();

	for (int quiet = 0; quiet < 40; quiet++) {
		ends_sleep_ms(5);
		if (open_fds() != n) {
			n = open_fds();
			quiet = 0;
		}
	}
	return n;
}

static void expect_fds(int n)
{
	for (int ms = 0; ms < 20000 && open_fds() != n; ms += 5)
		ends_sleep_ms(5);
	assert_int_equal(open_fds(), n);
}

static void cycles_leave_no_descriptor_open(void **state)
{
	struct ends d = {0};
	int before;

	ends_listen(&d, NULL);
	connect_and_part(
		/* the first connection opens descriptors that the process keeps */
		&d);
	before = settled_fds();
	for (int i = 0; i < CYCLES; i++)
		connect_and_part(&d);
	expect_fds(before);
	ends_close(&d);
}

static void rejects_leave_no_descriptor_open(void **state)
{
	struct rpma_conn_req *req;
	struct rpma_conn *cli;
	struct ends d = {0};
	int before;

	ends_listen(&d, NULL);
	before = settled_fds();
	for (int i = 0; i < 50; i++) {
		OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
		OK(rpma_conn_req_connect(&req, NULL, &cli));
		OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
		OK(rpma_conn_req_delete(&req));
		ends_expect_event(cli, RPMA_CONN_REJECTED);
		OK(rpma_conn_delete(&cli));
	}
	expect_fds(before);
	ends_close(&d);
}

static void closing_everything_leaves_no_descriptor_open(void **state)
{
	struct ends d;
	int before;

	ends_open(&d, NULL); /* the device keeps a few descriptors of its own */
	ends_close(&d);
	before = settled_fds();
	ends_open(&d, NULL);
	ends_close(&d);
	expect_fds(before);
}

static void deletion_without_disconnect_closes_the_peer(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_delete(&d.cli));
	assert_null(d.cli);
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_close(&d);
	ends_open(&d, NULL);
	OK(rpma_conn_delete(&d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	ends_close(&d);
}

static void deletion_works_in_both_orders(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_delete(&d.cli));
	OK(rpma_conn_delete(&d.srv));
	ends_close(&d);
	ends_open(&d, NULL);
	OK(rpma_conn_delete(&d.srv));
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void disconnect_after_the_peer_closed_succeeds(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.cli));
	OK(rpma_conn_disconnect(d.srv));
	OK(rpma_conn_delete(&d.srv));
	OK(rpma_conn_disconnect(d.cli));
	ends_close(&d);
}

static void both_ends_may_disconnect_at_once(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.cli));
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_close(&d);
}

static void closed_is_reported_once(void **state)
{
	enum rpma_conn_event ev;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	assert_false(ends_event_within(d.cli, 50, &ev));
	assert_false(ends_event_within(d.srv, 0, &ev));
	ends_close(&d);
}

/* The client posts its last message unsignalled, and disconnects immediately afterwards. */
static void last_message_arrives_before_closed(void **state)
{
	struct ibv_wc wc = {0};
	struct ends d;

	if (!ends_is_tcp())
		/* InfiniBand drops the unfinished requests of a connection that ends */
		skip();
	ends_open(&d, NULL);
	strcpy((char *)d.cli_buf, "bye");
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, NULL));
	OK(rpma_send(d.cli, d.cli_mr, 0, 4, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_string_equal((char *)d.srv_buf, "bye");
	ends_close(&d);
}

/* The last write arrives even if the writer deletes the connection right after the disconnect. */
static void last_write_arrives_before_deletion_after_a_disconnect(void **state)
{
	struct ends d;

	if (!ends_is_tcp())
		/* InfiniBand drops the unfinished requests of a connection that ends */
		skip();
	ends_open(&d, NULL);
	ends_fill(d.cli_buf, 60000, 9);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 60000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_disconnect(d.cli));
	OK(rpma_conn_delete(&d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	assert_true(ends_is_filled(d.srv_buf, 60000, 9));
	ends_close(&d);
}

static void receives_are_flushed_when_the_peer_closes(void **state)
{
	struct ibv_wc wc = {0};
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_disconnect(d.srv);
	ends_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	ends_close(&d);
}

static void posting_after_closed_fails_at_once_or_completes_with_an_error(void **state)
{
	struct ends d;

	if (!ends_late_posts_complete())
		skip(); /* a device can return either result */
	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	ends_disconnect(d.cli);
	if (rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
		assert_int_equal(ends_wait_failure(d.cli), IBV_WC_WR_FLUSH_ERR);
	ends_close(&d);
}

/* The connection's end flushes more requests than the completion queue can hold. */
static void end_with_more_work_than_completions_is_harmless(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d;

	if (!ends_sends_wait())
		skip(); /* the first Send without a receive ends the connection */
	ends_open(&d, NULL);
	for (int i = 0; i < 10; i++) {
		OK(rpma_recv(d.cli, d.cli_mr, 0, 64, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (int i = 0; i < 10; i++)
		if (rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 64, RPMA_F_COMPLETION_ON_ERROR,
			      NULL))
			break;
	OK(rpma_conn_delete(&d.srv));
	assert_true(ends_event_within(d.cli, 5000, &ev));
	assert_int_equal(ev, RPMA_CONN_CLOSED);
	ends_disconnect(d.cli);
	assert_int_equal(ends_wait_failure(d.cli),
			 ends_acknowledges() ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
	ends_close(&d);
}

static void requests_left_by_a_deleted_endpoint_are_rejected(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};
	int fd;

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_get_fd(d.ep, &fd));
	assert_true(ends_readable(fd, 5000));
	OK(rpma_ep_shutdown(&d.ep));
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cycles_leave_no_descriptor_open),
		cmocka_unit_test(rejects_leave_no_descriptor_open),
		cmocka_unit_test(closing_everything_leaves_no_descriptor_open),
		cmocka_unit_test(deletion_without_disconnect_closes_the_peer),
		cmocka_unit_test(deletion_works_in_both_orders),
		cmocka_unit_test(disconnect_after_the_peer_closed_succeeds),
		cmocka_unit_test(both_ends_may_disconnect_at_once),
		cmocka_unit_test(closed_is_reported_once),
		cmocka_unit_test(last_message_arrives_before_closed),
		cmocka_unit_test(last_write_arrives_before_deletion_after_a_disconnect),
		cmocka_unit_test(receives_are_flushed_when_the_peer_closes),
		cmocka_unit_test(end_with_more_work_than_completions_is_harmless),
		cmocka_unit_test(requests_left_by_a_deleted_endpoint_are_rejected),
		cmocka_unit_test(posting_after_closed_fails_at_once_or_completes_with_an_error),
	};

	/* each further thread of the device opens descriptors */
	setenv("SOFTRNIC_THREADS", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
