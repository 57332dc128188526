/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dial.c -- connecting to addresses that do not answer. Runs with a SOFTRNIC_CONNECT_MS of
 * 1500. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Connect to a port of this host; the caller checks the outcome. */
static void dial(struct ends *d, const char *port)
{
	struct rpma_conn_req *req;
	struct ibv_context *ctx;

	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &d->peer));
	OK(rpma_conn_req_new(d->peer, "127.0.0.1", port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
}

static void hang_up(struct ends *d)
{
	OK(rpma_conn_delete(&d->cli));
	OK(rpma_peer_delete(&d->peer));
}

/* Returns a listening TCP socket that speaks no iWARP. */
static int tcp_listener(char port[8])
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(port, 8, "%u", (unsigned)ntohs(sin.sin_port));
	return fd;
}

static void closed_port_rejects(void **state)
{
	struct ends d = {0};
	char port[8];

	ends_free_port(port);
	dial(&d, port);
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	hang_up(&d);
}

static void silent_listener_is_unreachable(void **state)
{
	struct ends d = {0};
	uint64_t begin = now_ms();
	char port[8];
	int fd = tcp_listener(port);

	dial(&d, port);
	ends_expect_event(d.cli, RPMA_CONN_UNREACHABLE);
	assert_in_range(now_ms() - begin, 3000, 9500); /* the default limit is 10 s */
	hang_up(&d);
	close(fd);
}

static void endpoint_that_takes_no_request_is_unreachable(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, "127.0.0.1", d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	ends_expect_event(d.cli, RPMA_CONN_UNREACHABLE);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void accepting_a_client_that_gave_up_fails_or_closes(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, "127.0.0.1", d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_delete(&d.cli));
	ends_sleep_ms(50);
	if (rpma_conn_req_connect(&req, NULL, &d.srv) == 0) {
		do
			assert_true(ends_event_within(d.srv, 5000, &ev));
		while (ev == RPMA_CONN_ESTABLISHED);
		assert_true(ev == RPMA_CONN_LOST || ev == RPMA_CONN_CLOSED);
	}
	assert_null(req);
	ends_close(&d);
}

static void garbage_instead_of_a_reply_is_an_error(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d = {0};
	char port[8], junk[64];
	int fd = tcp_listener(port), peer;

	memset(junk, 'x', sizeof(junk));
	dial(&d, port);
	peer = accept(fd, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(send(peer, junk, sizeof(junk), MSG_NOSIGNAL), sizeof(junk));
	assert_true(ends_event_within(d.cli, 5000, &ev));
	assert_true(ev == RPMA_CONN_LOST || ev == RPMA_CONN_REJECTED);
	hang_up(&d);
	close(peer);
	close(fd);
}

static void garbage_instead_of_a_request_is_no_request(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ends d = {0};
	char junk[64];
	int epfd;

	memset(junk, 'x', sizeof(junk));
	ends_listen(&d, NULL);
	sin.sin_port = htons((uint16_t)atoi(d.port));
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(fd, junk, sizeof(junk), MSG_NOSIGNAL), sizeof(junk));
	assert_true(recv(fd, junk, 1, 0) <= 0); /* the connecting side hangs up */
	OK(rpma_ep_get_fd(d.ep, &epfd));
	assert_false(ends_readable(epfd, 20));
	close(fd);
	ends_connect(&d, NULL, &d.cli, &d.srv);
	ends_close(&d);
}

static void impossible_port_is_refused(void **state)
{
	struct ends d = {0};
	struct rpma_conn_req *req = NULL;

	ends_listen(&d, NULL);
	assert_int_equal(rpma_conn_req_new(d.peer, "127.0.0.1", "65536", NULL, &req),
			 RPMA_E_PROVIDER);
	assert_null(req);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_port_rejects),
		cmocka_unit_test(impossible_port_is_refused),
		cmocka_unit_test(silent_listener_is_unreachable),
		cmocka_unit_test(endpoint_that_takes_no_request_is_unreachable),
		cmocka_unit_test(accepting_a_client_that_gave_up_fails_or_closes),
		cmocka_unit_test(garbage_instead_of_a_reply_is_an_error),
		cmocka_unit_test(garbage_instead_of_a_request_is_no_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
