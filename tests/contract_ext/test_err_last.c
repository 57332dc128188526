/* SPDX-License-Identifier: BSD-3-Clause */
/* test_err_last.c -- rpma_err_last() reports the reason of this thread's last failed call. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"

static void expect_said(const char *part)
{
	if (!strstr(rpma_err_last(), part))
		fail_msg("\"%s\" is not in: %s", part, rpma_err_last());
	assert_null(strchr(rpma_err_last(), '\n'));
}

/* Make another call fail first, so that the test detects a text that the next call did not set. */
static void fail_otherwise(void)
{
	assert_int_equal(rpma_peer_delete(NULL), RPMA_E_INVAL);
	expect_said("rpma_peer_delete: ");
}

static void *say_nothing_then_something(void *text)
{
	snprintf(text, 64, "%s", rpma_err_last());
	fail_otherwise();
	return NULL;
}

static void each_thread_has_its_own(void **state)
{
	char text[64] = "x";
	pthread_t thread;

	assert_int_equal(rpma_mr_dereg(NULL), RPMA_E_INVAL);
	assert_int_equal(pthread_create(&thread, NULL, say_nothing_then_something, text), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(text, "");
	expect_said("rpma_mr_dereg: ");
	expect_said("rpma_mr_dereg(3)");
}

/* The text names the failed call and the value, and contains advice, even if the log is off. */
static void a_port_in_use_is_named_with_advice(void **state)
{
	enum rpma_log_level before;
	struct rpma_ep *second;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &before));
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	fail_otherwise();
	assert_int_equal(rpma_ep_listen(d.peer, ends_addr(), d.port, &second), RPMA_E_PROVIDER);
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, before));
	expect_said(d.port);
	expect_said("Address already in use");
	expect_said("choose another port");
	ends_close(&d);
}

static void what_is_no_failure_leaves_the_text(void **state)
{
	enum rpma_conn_event event;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	fail_otherwise();
	assert_int_equal(rpma_conn_next_event_timeout(d.cli, 0, &event), RPMA_E_NO_EVENT);
	struct rpma_cq *cq;
	OK(rpma_conn_get_cq(d.cli, &cq));
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	ends_flush(d.cli, d.at_srv, 0, 8);
	expect_said("rpma_peer_delete: ");
	ends_close(&d);
}

static void a_wait_that_ends_at_its_limit_is_explained(void **state)
{
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	struct rpma_cq *cq;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	fail_otherwise();
	assert_int_equal(rpma_cq_wait_timeout(cq, 20), RPMA_E_NO_COMPLETION);
	expect_said("within 20 ms no completion was announced");
	assert_int_equal(rpma_conn_next_event_timeout(d.cli, 21, &event), RPMA_E_NO_EVENT);
	expect_said("within 21 ms the connection reported no event");
	assert_int_equal(rpma_ep_next_conn_req_timeout(d.ep, NULL, 22, &req), RPMA_E_NO_EVENT);
	expect_said("within 22 ms no connection request came");
	/* a call with limit 0 does not wait, so it sets no text about an expired wait */
	fail_otherwise();
	assert_int_equal(rpma_cq_wait_timeout(cq, 0), RPMA_E_NO_COMPLETION);
	assert_int_equal(rpma_ep_next_conn_req_timeout(d.ep, NULL, 0, &req), RPMA_E_NO_EVENT);
	expect_said("rpma_peer_delete: ");
	ends_close(&d);
}

static void an_operation_says_what_is_wrong_with_it(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	assert_int_equal(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, 0, NULL), RPMA_E_INVAL);
	expect_said("flags 0");
	assert_int_equal(rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, 5ull << 30,
				   RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	expect_said("5368709120");
	expect_said("split the transfer");
	ends_close(&d);
}

/*
 * Bind a TCP port, and also listen on the port if a backlog is given, like a program without iWARP.
 */
static int tcp_port(int backlog, char port[8])
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(ends_addr())};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	if (backlog)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(port, 8, "%u", (unsigned)ntohs(sin.sin_port));
	return fd;
}

static void dial(struct ends *d, const char *port)
{
	struct rpma_conn_req *req;
	struct ibv_context *ctx;
	enum rpma_rejection rejection = RPMA_REJECTION_CLOSED;

	if (!d->peer) {
		OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
		OK(rpma_peer_new(ctx, &d->peer));
	}
	OK(rpma_conn_req_new(d->peer, ends_addr(), port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
	OK(rpma_conn_get_rejection(d->cli, &rejection));
	assert_int_equal(rejection, RPMA_REJECTION_NONE);
}

static void expect_rejection(struct ends *d, enum rpma_rejection want, const char *words)
{
	enum rpma_rejection rejection;

	fail_otherwise();
	ends_expect_event(d->cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_get_rejection(d->cli, &rejection));
	assert_int_equal(rejection, want);
	expect_said(words);
	OK(rpma_conn_delete(&d->cli));
}

static void a_port_without_a_listener_is_reported(void **state)
{
	struct ends d = {0};
	char port[8];
	int fd;

	SOFTRNIC_ONLY();
	fd = tcp_port(0, port);
	dial(&d, port);
	expect_rejection(&d, RPMA_REJECTION_NO_LISTENER,
			 "the host refused the connection (status -111): no program listens there");
	OK(rpma_peer_delete(&d.peer));
	close(fd);
}

static void it_is_known_that_the_application_refused(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};

	SOFTRNIC_ONLY();
	ends_listen(&d, NULL);
	dial(&d, d.port);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_reject(&req, NULL));
	expect_rejection(&d, RPMA_REJECTION_REFUSED, "the application there refused");
	ends_close(&d);
}

static void expect_open(const char *port, int timeout_ms, int want, const char *words)
{
	struct rpma_conn_open_attr attr = {.size = sizeof(attr),
					   .addr = ends_addr(),
					   .port = port,
					   .timeout_ms = timeout_ms,
					   .retry_ms = 1};
	enum rpma_conn_event event;
	struct rpma_conn *conn;
	struct rpma_peer *peer;
	struct ibv_context *ctx;

	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	fail_otherwise();
	assert_int_equal(rpma_conn_open(peer, &attr, &event, &conn), want);
	expect_said(words);
	OK(rpma_peer_delete(&peer));
}

static void *hang_up_on_all(void *fd)
{
	int peer;

	while ((peer = accept(*(int *)fd, NULL, NULL)) >= 0)
		close(peer);
	return NULL;
}

static void it_is_known_that_what_listens_hung_up(void **state)
{
	struct ends d = {0};
	pthread_t thread;
	char port[8];
	int fd;

	SOFTRNIC_ONLY();
	fd = tcp_port(8, port);
	assert_int_equal(pthread_create(&thread, NULL, hang_up_on_all, &fd), 0);
	expect_open(port, 5000, RPMA_E_AGAIN, "accepted TCP, then ended or reset it");
	dial(&d, port);
	expect_rejection(
		&d, RPMA_REJECTION_CLOSED,
		"no connection (status -104): the program that listens there accepted TCP, then "
		"ended or reset it");
	shutdown(fd, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	OK(rpma_peer_delete(&d.peer));
	close(fd);
}

static void a_port_that_accepts_and_sends_nothing_is_reported(void **state)
{
	char port[8];
	int fd;

	SOFTRNIC_ONLY();
	fd = tcp_port(8, port);
	expect_open(port, 200, RPMA_E_NO_EVENT,
		    "accepted the TCP connection, and then sent no answer");
	close(fd);
}

static void *greet_all(void *fd)
{
	int peer;

	while ((peer = accept(*(int *)fd, NULL, NULL)) >= 0) {
		(void)!write(peer, "220 mail\r\n", 10);
		while (read(peer, &(char){0}, 1) > 0) {
		}
		close(peer);
	}
	return NULL;
}

static void a_port_of_another_protocol_is_called_so(void **state)
{
	pthread_t thread;
	char port[8];
	int fd;

	SOFTRNIC_ONLY();
	fd = tcp_port(8, port);
	assert_int_equal(pthread_create(&thread, NULL, greet_all, &fd), 0);
	expect_open(port, 5000, RPMA_E_NOSUPP,
		    "the program that listens there does not speak iWARP");
	shutdown(fd, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(fd);
}

static void no_answer_in_time_is_explained(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req;
	struct ends d = {0};

	OK(rpma_conn_cfg_set_connect_timeout(cfg, 200));
	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	fail_otherwise();
	ends_expect_event(d.cli, RPMA_CONN_UNREACHABLE);
	expect_said("no connection: ");
	expect_said("allow more time");
	OK(rpma_conn_delete(&d.cli));
	OK(rpma_conn_cfg_delete(&cfg));
	ends_close(&d);
}

static void the_version_at_run_time_is_the_headers(void **state)
{
	assert_int_equal(rpma_version(), RPMA_VERSION);
	assert_true(rpma_version() >= RPMA_HAS_ERR_LAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_has_its_own),
		cmocka_unit_test(a_port_in_use_is_named_with_advice),
		cmocka_unit_test(what_is_no_failure_leaves_the_text),
		cmocka_unit_test(a_wait_that_ends_at_its_limit_is_explained),
		cmocka_unit_test(an_operation_says_what_is_wrong_with_it),
		cmocka_unit_test(a_port_without_a_listener_is_reported),
		cmocka_unit_test(it_is_known_that_the_application_refused),
		cmocka_unit_test(it_is_known_that_what_listens_hung_up),
		cmocka_unit_test(a_port_that_accepts_and_sends_nothing_is_reported),
		cmocka_unit_test(a_port_of_another_protocol_is_called_so),
		cmocka_unit_test(no_answer_in_time_is_explained),
		cmocka_unit_test(the_version_at_run_time_is_the_headers),
	};

	return cmocka_run_group_tests_name("err_last", tests, NULL, NULL);
}
