/* SPDX-License-Identifier: BSD-3-Clause */
/* test_connecting.c -- a connect with a limit, its cancellation, a rejection with private data,
 * ports and addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "timing.h"

enum { LIMIT_MS = 300 };

/* Returns a listening TCP socket that speaks no iWARP. */
static int tcp_listener(int backlog, struct sockaddr_in *sin, char port[8])
{
	socklen_t len = sizeof(*sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*sin = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = inet_addr(ends_addr())};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)sin, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)sin, &len), 0);
	snprintf(port, 8, "%u", (unsigned)ntohs(sin->sin_port));
	return fd;
}

enum { FILLERS = 8 };

/* Linux drops SYNs to a listener whose queue is full, so the client gets no answer, not even a
 * reset. */
static int black_hole(char port[8], int filler[FILLERS])
{
	struct sockaddr_in sin;
	int fd = tcp_listener(0, &sin, port);

	for (int i = 0; i < FILLERS; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(filler[i] >= 0);
		if (connect(filler[i], (struct sockaddr *)&sin, sizeof(sin)))
			assert_int_equal(errno, EINPROGRESS);
	}
	return fd;
}

static void close_hole(int fd, const int filler[FILLERS])
{
	for (int i = 0; i < FILLERS; i++)
		close(filler[i]);
	close(fd);
}

static struct rpma_conn_cfg *cfg_limited(int ms)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);

	OK(rpma_conn_cfg_set_connect_timeout(cfg, ms));
	return cfg;
}

/* Begin to connect to a port of this host, with a limit. Returns the time of the call. */
static uint64_t dial(struct ends *d, const char *port, int limit_ms)
{
	uint64_t begin;
	struct rpma_conn_cfg *cfg = cfg_limited(limit_ms);
	struct rpma_conn_req *req;
	struct ibv_context *ctx;

	if (!d->peer) {
		OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
		OK(rpma_peer_new(ctx, &d->peer));
	}
	OK(rpma_conn_req_new(d->peer, ends_addr(), port, cfg, &req));
	begin = now_ms();
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
	OK(rpma_conn_cfg_delete(&cfg));
	return begin;
}

static void hang_up(struct ends *d)
{
	OK(rpma_conn_delete(&d->cli));
	OK(rpma_peer_delete(&d->peer));
}

static void expect_unreachable_after(struct ends *d, const char *port, int ms)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	uint64_t begin = dial(d, port, ms);

	OK(rpma_conn_next_event_timeout(d->cli, ms + SLACK_MS, &ev));
	assert_int_equal(ev, RPMA_CONN_UNREACHABLE);
	assert_in_range(now_ms() - begin, ms, ms + SLACK_MS);
}

static void a_listener_that_never_answers_is_unreachable_at_the_limit(void **state)
{
	struct ends d = {0};
	struct sockaddr_in sin;
	char port[8];
	int fd;

	if (!ends_is_tcp())
		skip();
	fd = tcp_listener(8, &sin, port);
	expect_unreachable_after(&d, port, LIMIT_MS);
	hang_up(&d);
	close(fd);
}

static void an_endpoint_that_takes_no_request_is_unreachable_at_the_limit(void **state)
{
	struct ends d = {0};

	ends_listen(&d, NULL);
	expect_unreachable_after(&d, d.port, LIMIT_MS);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void a_black_hole_is_unreachable_at_the_limit(void **state)
{
	int filler[FILLERS], fd;
	struct ends d = {0};
	char port[8];

	if (ends_is_kernels())
		skip(); /* siw blocks in the call until TCP answers; RoCE does not use TCP */
	fd = black_hole(port, filler);
	expect_unreachable_after(&d, port, LIMIT_MS);
	hang_up(&d);
	close_hole(fd, filler);
}

/* The time limit of a connect does not end an established connection. The limit is long enough for
 * a connect on a busy machine. */
static void an_established_connection_outlives_the_limit(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_limited(4000);
	struct ends_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg};
	enum rpma_conn_event ev;
	struct ends d;

	ends_open(&d, &opts);
	assert_int_equal(rpma_conn_next_event_timeout(d.cli, 5000, &ev), RPMA_E_NO_EVENT);
	ends_flush(d.cli, d.at_srv, 0, 8);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void *cancel_soon(void *conn)
{
	ends_sleep_ms(100);
	OK(rpma_conn_cancel(conn));
	return NULL;
}

/* This thread waits for the event, and another thread cancels the connect. */
static void cancel_while_waiting(const char *port)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d = {0};
	uint64_t begin = now_ms();
	pthread_t thread;

	dial(&d, port, 3600000);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, d.cli), 0);
	OK(rpma_conn_next_event(d.cli, &ev));
	assert_int_equal(ev, RPMA_CONN_UNREACHABLE);
	assert_in_range(now_ms() - begin, 99, 100 + SLACK_MS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* A second cancel is no error, and causes no event. */
	OK(rpma_conn_cancel(d.cli));
	assert_int_equal(rpma_conn_next_event_timeout(d.cli, 20, &ev), RPMA_E_NO_EVENT);
	hang_up(&d);
}

static void a_connect_is_cancelled_from_another_thread(void **state)
{
	int filler[FILLERS], fd;
	struct sockaddr_in sin;
	char port[8];

	if (!ends_is_tcp()) {
		struct ends d = {0};

		ends_listen(&d, NULL);
		/* no program accepts the request, so the connect is pending */
		cancel_while_waiting(d.port);
		ends_close(&d);
		return;
	}
	/* TCP is connected; the answer to the MPA request is missing */
	fd = tcp_listener(8, &sin, port);
	cancel_while_waiting(port);
	close(fd);
	if (ends_is_kernels())
		return;
	fd = black_hole(port, filler); /* TCP itself is still connecting */
	cancel_while_waiting(port);
	close_hole(fd, filler);
}

static void the_other_end_of_a_cancelled_connect_cannot_accept(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	dial(&d, d.port, 0);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_cancel(d.cli));
	ends_expect_event(d.cli, RPMA_CONN_UNREACHABLE);
	/* the kernel's connection manager of InfiniBand continues until the id is destroyed */
	if (!ends_is_tcp()) {
		OK(rpma_conn_delete(&d.cli));
		if (rpma_conn_req_connect(&req, NULL, &d.srv) == 0)
			assert_false(ends_event_within(d.srv, LIMIT_MS, &ev) &&
				     ev == RPMA_CONN_ESTABLISHED);
	} else if (rpma_conn_req_connect(&req, NULL, &d.srv) == 0) {
		do
			assert_true(ends_event_within(d.srv, SLACK_MS, &ev));
		while (ev == RPMA_CONN_ESTABLISHED);
		assert_true(ev == RPMA_CONN_LOST || ev == RPMA_CONN_CLOSED);
	}
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void cancelling_what_is_established_changes_nothing(void **state)
{
	enum rpma_conn_event ev;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_conn_cancel(d.cli));
	OK(rpma_conn_cancel(d.srv));
	assert_int_equal(rpma_conn_next_event_timeout(d.cli, 20, &ev), RPMA_E_NO_EVENT);
	ends_flush(d.cli, d.at_srv, 0, 8);
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	ends_disconnect(d.srv);
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	OK(rpma_conn_cancel(d.cli));
	ends_close(&d);
}

static void reject_with(uint8_t len)
{
	uint8_t no[255];
	const struct rpma_conn_private_data answer = {no, len};
	struct rpma_conn_private_data got = {0};
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_fill(no, sizeof(no), len);
	ends_listen(&d, NULL);
	dial(&d, d.port, 0);
	OK(rpma_conn_get_private_data(d.cli, &got));
	assert_null(got.ptr);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_reject(&req, len ? &answer : NULL));
	assert_null(req);
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_get_private_data(d.cli, &got));
	if (!ends_is_tcp()) /* InfiniBand's private data have a fixed length */
		assert_true(got.len >= len);
	else
		assert_int_equal(got.len, len);
	if (len)
		assert_memory_equal(got.ptr, no, len);
	else if (ends_is_tcp())
		assert_null(got.ptr);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void a_rejection_brings_its_private_data(void **state)
{
	reject_with(0);
	reject_with(1);
	reject_with(100);
	if (ends_is_kernels())
		return; /* InfiniBand carries only 148 bytes */
	reject_with(251);
	reject_with(255);
}

static void a_request_that_is_deleted_is_rejected_without_data(void **state)
{
	struct rpma_conn_private_data got = {0};
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	dial(&d, d.port, 0);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_delete(&req));
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_get_private_data(d.cli, &got));
	if (ends_is_tcp())
		assert_null(got.ptr);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

static void only_a_request_of_another_can_be_rejected(void **state)
{
	char x = 'x';
	const struct rpma_conn_private_data empty = {&x, 0};
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	assert_int_equal(rpma_conn_req_reject(&req, NULL), RPMA_E_INVAL);
	assert_null(req);
	dial(&d, d.port, 0);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	assert_int_equal(rpma_conn_req_reject(&req, &empty), RPMA_E_INVAL);
	assert_null(req);
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&d.cli));
	ends_close(&d);
}

/* Listen on any free port of `at`, connect from `from`, and compare the client's address with
 * `seen_as`. */
static void meet(const char *at, const char *from, const char *seen_as)
{
	char addr[RPMA_ADDR_MAX], small[4] = "old";
	struct rpma_conn_req *req;
	struct ibv_context *ctx;
	struct ends d = {0};
	uint16_t port = 0;

	OK(rpma_utils_get_ibv_context(from, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &d.peer));
	OK(rpma_ep_listen(d.peer, at, "0", &d.ep));
	OK(rpma_ep_get_port(d.ep, &port));
	assert_true(port > 0);
	snprintf(d.port, sizeof(d.port), "%u", (unsigned)port);
	OK(rpma_conn_req_new(d.peer, from, d.port, NULL, &req));
	OK(rpma_conn_req_get_remote_addr(req, addr, sizeof(addr)));
	assert_string_equal(addr, seen_as);
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_get_remote_addr(req, addr, sizeof(addr)));
	assert_string_equal(addr, seen_as);
	OK(rpma_conn_req_connect(&req, NULL, &d.srv));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_remote_addr(d.cli, addr, sizeof(addr)));
	assert_string_equal(addr, seen_as);
	OK(rpma_conn_get_remote_addr(d.srv, addr, strlen(seen_as) + 1));
	assert_string_equal(addr, seen_as);
	assert_int_equal(rpma_conn_get_remote_addr(d.srv, addr, strlen(seen_as)), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_get_remote_addr(d.srv, small, 1), RPMA_E_INVAL);
	assert_string_equal(small, "old");
	ends_close(&d);
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&sin6, sizeof(sin6));

	if (fd >= 0)
		close(fd);
	return has;
}

static void a_free_port_and_addresses_are_reported(void **state)
{
	meet(ends_addr(), ends_addr(), ends_addr());
	meet("0.0.0.0", ends_addr(), ends_addr());
	if (!has_ipv6() || ends_is_kernels())
		return; /* no device serves a loopback address */
	meet("::1", "::1", "::1");
	meet("::", ends_addr(), ends_addr());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_that_never_answers_is_unreachable_at_the_limit),
		cmocka_unit_test(an_endpoint_that_takes_no_request_is_unreachable_at_the_limit),
		cmocka_unit_test(a_black_hole_is_unreachable_at_the_limit),
		cmocka_unit_test(an_established_connection_outlives_the_limit),
		cmocka_unit_test(a_connect_is_cancelled_from_another_thread),
		cmocka_unit_test(the_other_end_of_a_cancelled_connect_cannot_accept),
		cmocka_unit_test(cancelling_what_is_established_changes_nothing),
		cmocka_unit_test(a_rejection_brings_its_private_data),
		cmocka_unit_test(a_request_that_is_deleted_is_rejected_without_data),
		cmocka_unit_test(only_a_request_of_another_can_be_rejected),
		cmocka_unit_test(a_free_port_and_addresses_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
