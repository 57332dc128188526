/* SPDX-License-Identifier: BSD-3-Clause */
/* test_close.c -- how connections end, and that they leave nothing behind. */
#include "duo.h"
#include "lib/fds.h"

#define CYCLES 200

static void connect_and_part(struct duo *d)
{
	struct rpma_conn *cli, *srv;

	duo_connect(d, NULL, &cli, &srv);
	OK(rpma_conn_disconnect(cli));
	duo_expect_event(srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(srv));
	duo_expect_event(cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_delete(&cli));
	OK(rpma_conn_delete(&srv));
}

/* Sockets are closed by the thread that uses them last: wait until none is left. */
static int settled_fds(void)
{
	int n = open_fds();

	for (int quiet = 0; quiet < 40; quiet++) {
		duo_sleep_ms(5);
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
		duo_sleep_ms(5);
	assert_int_equal(open_fds(), n);
}

static void cycles_leave_no_descriptor_behind(void **state)
{
	struct duo d = {0};
	int before;

	duo_listen(&d, NULL);
	before = settled_fds();
	for (int i = 0; i < CYCLES; i++)
		connect_and_part(&d);
	expect_fds(before);
	duo_close(&d);
}

static void rejects_leave_no_descriptor_behind(void **state)
{
	struct rpma_conn_req *req;
	struct rpma_conn *cli;
	struct duo d = {0};
	int before;

	duo_listen(&d, NULL);
	before = settled_fds();
	for (int i = 0; i < 50; i++) {
		OK(rpma_conn_req_new(d.peer, duo_addr(), d.port, NULL, &req));
		OK(rpma_conn_req_connect(&req, NULL, &cli));
		OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
		OK(rpma_conn_req_delete(&req));
		duo_expect_event(cli, RPMA_CONN_REJECTED);
		OK(rpma_conn_delete(&cli));
	}
	expect_fds(before);
	duo_close(&d);
}

static void everything_closed_leaves_no_descriptor_behind(void **state)
{
	struct duo d;
	int before;

	duo_open(&d, NULL); /* the device itself keeps a few */
	duo_close(&d);
	before = settled_fds();
	duo_open(&d, NULL);
	duo_close(&d);
	expect_fds(before);
}

static void deletion_without_disconnect_closes_the_peer(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_delete(&d.cli));
	assert_null(d.cli);
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	duo_close(&d);
	duo_open(&d, NULL);
	OK(rpma_conn_delete(&d.srv));
	duo_expect_event(d.cli, RPMA_CONN_CLOSED);
	duo_close(&d);
}

static void deletion_works_in_both_orders(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_delete(&d.cli));
	OK(rpma_conn_delete(&d.srv));
	duo_close(&d);
	duo_open(&d, NULL);
	OK(rpma_conn_delete(&d.srv));
	OK(rpma_conn_delete(&d.cli));
	duo_close(&d);
}

static void disconnect_after_the_peer_closed_succeeds(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_disconnect(d.srv));
	duo_expect_event(d.cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.cli));
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.cli));
	OK(rpma_conn_disconnect(d.srv));
	OK(rpma_conn_delete(&d.srv));
	OK(rpma_conn_disconnect(d.cli));
	duo_close(&d);
}

static void both_ends_may_disconnect_at_once(void **state)
{
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_disconnect(d.cli));
	OK(rpma_conn_disconnect(d.srv));
	duo_expect_event(d.cli, RPMA_CONN_CLOSED);
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	duo_close(&d);
}

static void closed_is_reported_once(void **state)
{
	enum rpma_conn_event ev;
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_conn_disconnect(d.cli));
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(d.srv));
	duo_expect_event(d.cli, RPMA_CONN_CLOSED);
	assert_false(duo_event_within(d.cli, 50, &ev));
	assert_false(duo_event_within(d.srv, 0, &ev));
	duo_close(&d);
}

/* The client's last message is posted unsignalled, and the client disconnects at once. */
static void last_message_arrives_before_closed(void **state)
{
	struct ibv_wc wc = {0};
	struct duo d;

	if (!duo_is_tcp())
		skip(); /* InfiniBand's end drops what is under way */
	duo_open(&d, NULL);
	strcpy((char *)d.cli_buf, "bye");
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, NULL));
	OK(rpma_send(d.cli, d.cli_mr, 0, 4, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_disconnect(d.cli));
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	duo_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_string_equal((char *)d.srv_buf, "bye");
	duo_close(&d);
}

/* ... even if it deletes the connection instead. */
static void last_write_arrives_before_deletion(void **state)
{
	struct duo d;

	if (!duo_is_tcp())
		skip(); /* InfiniBand's end drops what is under way */
	duo_open(&d, NULL);
	duo_fill(d.cli_buf, 60000, 9);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 60000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_delete(&d.cli));
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	assert_true(duo_is_filled(d.srv_buf, 60000, 9));
	duo_close(&d);
}

static void receives_are_flushed_when_the_peer_closes(void **state)
{
	struct ibv_wc wc = {0};
	struct duo d;

	duo_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
	OK(rpma_conn_disconnect(d.cli));
	duo_expect_event(d.srv, RPMA_CONN_CLOSED);
	duo_part(d.srv);
	duo_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	duo_close(&d);
}

static void posting_after_closed_fails_at_once_or_completes_with_an_error(void **state)
{
	struct duo d;

	if (!duo_late_posts_complete())
		skip(); /* either is allowed */
	duo_open(&d, NULL);
	OK(rpma_conn_disconnect(d.srv));
	duo_expect_event(d.cli, RPMA_CONN_CLOSED);
	duo_part(d.cli);
	if (rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
		assert_int_equal(duo_wait_failure(d.cli), IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}

/* Then more is flushed than the completion queue holds. */
static void end_with_more_work_than_completions_is_harmless(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct duo d;

	if (!duo_sends_wait())
		skip(); /* these end the connection themselves */
	duo_open(&d, NULL);
	for (int i = 0; i < 10; i++) {
		OK(rpma_recv(d.cli, d.cli_mr, 0, 64, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	for (int i = 0; i < 10; i++)
		if (rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 64, RPMA_F_COMPLETION_ON_ERROR,
			      NULL))
			break;
	OK(rpma_conn_delete(&d.srv));
	assert_true(duo_event_within(d.cli, 5000, &ev));
	assert_int_equal(ev, RPMA_CONN_CLOSED);
	duo_part(d.cli);
	assert_int_equal(duo_wait_failure(d.cli), IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}

static void requests_left_behind_by_an_endpoint_are_rejected(void **state)
{
	struct rpma_conn_req *req;
	struct duo d = {0};
	int fd;

	duo_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, duo_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_get_fd(d.ep, &fd));
	assert_true(duo_readable(fd, 5000));
	OK(rpma_ep_shutdown(&d.ep));
	duo_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&d.cli));
	duo_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cycles_leave_no_descriptor_behind),
		cmocka_unit_test(rejects_leave_no_descriptor_behind),
		cmocka_unit_test(everything_closed_leaves_no_descriptor_behind),
		cmocka_unit_test(deletion_without_disconnect_closes_the_peer),
		cmocka_unit_test(deletion_works_in_both_orders),
		cmocka_unit_test(disconnect_after_the_peer_closed_succeeds),
		cmocka_unit_test(both_ends_may_disconnect_at_once),
		cmocka_unit_test(closed_is_reported_once),
		cmocka_unit_test(last_message_arrives_before_closed),
		cmocka_unit_test(last_write_arrives_before_deletion),
		cmocka_unit_test(receives_are_flushed_when_the_peer_closes),
		cmocka_unit_test(end_with_more_work_than_completions_is_harmless),
		cmocka_unit_test(requests_left_behind_by_an_endpoint_are_rejected),
		cmocka_unit_test(posting_after_closed_fails_at_once_or_completes_with_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
