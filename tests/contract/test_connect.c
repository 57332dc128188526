/* SPDX-License-Identifier: BSD-3-Clause */
/* test_connect.c -- connections are established, and each end gets the other's private data. */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "ends.h"

static void expect_pdata(const struct rpma_conn_private_data *got, const uint8_t *want, size_t len)
{
	if (!ends_is_tcp()) { /* InfiniBand's private data have a fixed length, padded with zeros */
		assert_true(got->len >= len);
		assert_memory_equal(got->ptr, want, len);
		return;
	}
	assert_int_equal(got->len, len);
	if (len)
		assert_memory_equal(got->ptr, want, len);
	else
		assert_null(got->ptr);
}

/* Both ends send private data of the same length but with different bytes. */
static void exchange_pdata(uint8_t len)
{
	uint8_t ask[255], answer[255];
	struct rpma_conn_private_data to_srv = {ask, len}, to_cli = {answer, len}, got;
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_fill(ask, len, 1);
	ends_fill(answer, len, 2);
	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, len ? &to_srv : NULL, &d.cli));
	assert_null(req);
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_get_private_data(req, &got));
	expect_pdata(&got, ask, len);
	OK(rpma_conn_req_connect(&req, len ? &to_cli : NULL, &d.srv));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	ends_expect_event(d.srv, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_private_data(d.cli, &got));
	expect_pdata(&got, answer, len);
	OK(rpma_conn_get_private_data(d.srv, &got));
	expect_pdata(&got, ask, len);
	ends_close(&d);
}

static void private_data_arrive_exactly(void **state)
{
	static const uint8_t lens[] = {0, 1, 28, 56, 251, 255};

	/* A request has room for 56 bytes on InfiniBand and for 251 on siw. */
	for (size_t i = 0; i < sizeof(lens); i++)
		if (!ends_is_kernels() || lens[i] <= (ends_is_tcp() ? 251 : 56)) {
			print_message("%u bytes\n", lens[i]);
			exchange_pdata(lens[i]);
		}
}

static void private_data_of_one_side_only(void **state)
{
	uint8_t ask[28];
	struct rpma_conn_private_data to_srv = {ask, sizeof(ask)}, got;
	struct ends_opts opts = {.cli_pdata = &to_srv};
	struct ends d;

	ends_fill(ask, sizeof(ask), 3);
	ends_open(&d, &opts);
	OK(rpma_conn_get_private_data(d.cli, &got));
	expect_pdata(&got, NULL, 0);
	OK(rpma_conn_get_private_data(d.srv, &got));
	expect_pdata(&got, ask, sizeof(ask));
	ends_close(&d);
}

static void empty_private_data_are_an_error_that_consumes_the_request(void **state)
{
	uint8_t byte = 0;
	struct rpma_conn_private_data empty = {&byte, 0};
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	assert_int_equal(rpma_conn_req_connect(&req, &empty, &d.cli), RPMA_E_INVAL);
	assert_null(req);
	assert_null(d.cli);
	ends_close(&d);
}

static void request_given_up_is_rejected_at_the_client(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	OK(rpma_conn_req_delete(&req));
	assert_null(req);
	ends_expect_event(d.cli, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&d.cli));
	/* The endpoint still works after the refusal. */
	ends_connect(&d, NULL, &d.cli, &d.srv);
	ends_close(&d);
}

static void unconnected_request_can_be_deleted(void **state)
{
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_delete(&req));
	assert_null(req);
	OK(rpma_conn_req_delete(&req));
	ends_close(&d);
}

static bool has_ipv6_loopback(void)
{
	struct ifaddrs *all, *it;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (it = all; it && !found; it = it->ifa_next)
		found = it->ifa_addr && it->ifa_addr->sa_family == AF_INET6 &&
			IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)it->ifa_addr)->sin6_addr);
	freeifaddrs(all);
	return found;
}

static void ipv6_works_as_well(void **state)
{
	struct ends_opts opts = {.addr = "::1"};
	struct ends d;

	if (!has_ipv6_loopback() || ends_is_kernels())
		skip(); /* rdma_cm has no device for a loopback address */
	ends_open(&d, &opts);
	ends_fill(d.cli_buf, 100, 4);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 100, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, 100);
	assert_true(ends_is_filled(d.srv_buf, 100, 4));
	ends_close(&d);
}

static void two_endpoints_serve_their_own_clients(void **state)
{
	struct ends a, b;

	ends_open(&a, NULL);
	ends_open(&b, NULL);
	assert_string_not_equal(a.port, b.port);
	ends_fill(a.cli_buf, 64, 5);
	ends_fill(b.cli_buf, 64, 6);
	OK(rpma_write(a.cli, a.at_srv, 0, a.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_write(b.cli, b.at_srv, 0, b.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(a.cli, a.at_srv, 0, 64);
	ends_flush(b.cli, b.at_srv, 0, 64);
	assert_true(ends_is_filled(a.srv_buf, 64, 5));
	assert_true(ends_is_filled(b.srv_buf, 64, 6));
	ends_close(&a);
	ends_close(&b);
}

static void port_in_use_is_refused_to_a_second_endpoint(void **state)
{
	struct rpma_ep *second = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	assert_int_equal(rpma_ep_listen(d.peer, ends_addr(), d.port, &second), RPMA_E_PROVIDER);
	assert_null(second);
	ends_close(&d);
}

static void shutdown_of_the_endpoint_keeps_its_connections(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_ep_shutdown(&d.ep));
	assert_null(d.ep);
	ends_fill(d.cli_buf, 100, 7);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 100, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, 100);
	assert_true(ends_is_filled(d.srv_buf, 100, 7));
	ends_close(&d);
}

static void endpoint_without_request_does_not_block_when_asked_not_to(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct ends d = {0};
	int fd;

	ends_listen(&d, NULL);
	OK(rpma_ep_get_fd(d.ep, &fd));
	ends_set_nonblock(fd);
	assert_int_equal(rpma_ep_next_conn_req(d.ep, NULL, &req), RPMA_E_NO_EVENT);
	assert_null(req);
	assert_false(ends_readable(fd, 0));
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	assert_true(ends_readable(fd, 5000));
	OK(rpma_ep_next_conn_req(d.ep, NULL, &req));
	assert_false(ends_readable(fd, 0));
	OK(rpma_conn_req_connect(&req, NULL, &d.srv));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	ends_close(&d);
}

static void connection_without_event_does_not_block_when_asked_not_to(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_event_fd(d.cli, &fd));
	ends_set_nonblock(fd);
	assert_int_equal(rpma_conn_next_event(d.cli, &ev), RPMA_E_NO_EVENT);
	assert_int_equal(ev, RPMA_CONN_UNDEFINED);
	OK(rpma_conn_disconnect(d.srv));
	assert_true(ends_event_within(d.cli, 5000, &ev));
	assert_int_equal(ev, RPMA_CONN_CLOSED);
	ends_close(&d);
}

#define WAITERS 4

static void *take_one_request(void *arg)
{
	struct ends *d = arg;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	if (rpma_ep_next_conn_req(d->ep, NULL, &req) || rpma_conn_req_connect(&req, NULL, &conn))
		return NULL;
	return conn;
}

static void several_threads_wait_at_one_endpoint(void **state)
{
	struct rpma_conn *cli[WAITERS];
	pthread_t thread[WAITERS];
	struct rpma_conn_req *req;
	struct ends d = {0};

	ends_listen(&d, NULL);
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_one_request, &d), 0);
	ends_sleep_ms(50);
	for (int i = 0; i < WAITERS; i++) {
		OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
		OK(rpma_conn_req_connect(&req, NULL, &cli[i]));
	}
	for (int i = 0; i < WAITERS; i++)
		ends_expect_event(cli[i], RPMA_CONN_ESTABLISHED);
	for (int i = 0; i < WAITERS; i++) {
		struct rpma_conn *srv = NULL;

		pthread_join(thread[i], (void **)&srv);
		assert_non_null(srv);
		ends_expect_event(srv, RPMA_CONN_ESTABLISHED);
		OK(rpma_conn_delete(&srv));
	}
	for (int i = 0; i < WAITERS; i++) {
		ends_expect_event(cli[i], RPMA_CONN_CLOSED);
		OK(rpma_conn_delete(&cli[i]));
	}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_arrive_exactly),
		cmocka_unit_test(private_data_of_one_side_only),
		cmocka_unit_test(empty_private_data_are_an_error_that_consumes_the_request),
		cmocka_unit_test(request_given_up_is_rejected_at_the_client),
		cmocka_unit_test(unconnected_request_can_be_deleted),
		cmocka_unit_test(ipv6_works_as_well),
		cmocka_unit_test(two_endpoints_serve_their_own_clients),
		cmocka_unit_test(port_in_use_is_refused_to_a_second_endpoint),
		cmocka_unit_test(shutdown_of_the_endpoint_keeps_its_connections),
		cmocka_unit_test(endpoint_without_request_does_not_block_when_asked_not_to),
		cmocka_unit_test(connection_without_event_does_not_block_when_asked_not_to),
		cmocka_unit_test(several_threads_wait_at_one_endpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
