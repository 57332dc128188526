/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client connects to a port that has no listener yet, and retries for SOFTRNIC_REFUSED_MS:
 * perftest and qperf send their port to the peer before they listen on it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ends.h"

#define PATIENCE_MS 5000

/* Let the client be refused. On return the time for its retries is not over. */
static void begin(struct ends *e)
{
	ends_open(e);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	usleep(100000);
}

static void a_listener_that_comes_a_little_late_is_reached(void **state)
{
	struct ends e;

	begin(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	ends_establish(&e);
	ends_close(&e);
}

static void the_port_that_the_user_chose_is_kept(void **state)
{
	struct sockaddr_in src = end_loopback(0);
	struct ends e;
	uint16_t port, chosen;

	end_open(&e.listener);
	port = end_bind(&e.listener);
	end_open(&e.client);
	chosen = end_bind(&e.client); /* a port that was free a moment ago */
	end_close(&e.client);
	end_open(&e.client);
	src.sin_port = htons(chosen);
	assert_int_equal(softrnic_bind_addr(e.client.id, (struct sockaddr *)&src), 0);
	end_aim(&e.client, port);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	usleep(100000);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	ends_establish(&e);
	assert_int_equal(e.server.id->route.addr.dst_sin.sin_port, src.sin_port);
	assert_int_equal(e.client.id->route.addr.src_sin.sin_port, src.sin_port);
	ends_close(&e);
}

/* A socket that dials its own port, on which no socket listens, connects to itself over TCP. */
static void no_address_reaches_itself(void **state)
{
	struct end e;
	uint16_t port;

	end_open(&e);
	port = end_bind(&e);
	end_aim(&e, port);
	assert_int_equal(softrnic_connect(e.id, NULL), 0);
	assert_int_equal(end_expect(&e, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
	softrnic_destroy_qp(e.id);
	end_close(&e);
}

static uint64_t cpu_us(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void in_the_end_it_is_refused_and_the_waiting_costs_next_to_nothing(void **state)
{
	uint64_t begun = clock_now_ns(), cpu = cpu_us(), waited_ns;
	struct ends e;

	begin(&e);
	assert_int_equal(end_expect(&e.client, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
	waited_ns = clock_now_ns() - begun;
	assert_true(waited_ns >= PATIENCE_MS * NSEC_PER_MS);
	assert_true((cpu_us() - cpu) * 4000 < waited_ns);
	ends_close(&e);
}

/* The error must not be "unreachable", because the host has answered. */
static void the_time_to_connect_ends_with_the_refusal_too(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_set_limits(e.client.id, 300, 0), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	assert_int_equal(end_expect(&e.client, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
	ends_close(&e);
}

static void no_dial_follows_a_cancel(void **state)
{
	struct ends e;

	begin(&e);
	assert_int_equal(softrnic_cancel_connect(e.client.id), 0);
	assert_int_equal(end_expect(&e.client, RDMA_CM_EVENT_UNREACHABLE), -ECANCELED);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_false(end_hears_within(&e.listener, 200));
	assert_false(end_hears_within(&e.client, 0));
	ends_close(&e);
}

static void no_dial_follows_the_end_of_its_id(void **state)
{
	struct ends e;

	begin(&e);
	softrnic_destroy_qp(e.client.id);
	end_close(&e.client);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_false(end_hears_within(&e.listener, 200));
	ends_close(&e);
}

static void a_child_neither_dials_nor_disturbs(void **state)
{
	struct ends e;
	int status;
	pid_t pid;

	begin(&e);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		usleep(100000);
		_exit(softrnic_cancel_connect(e.client.id) == ENODEV ? 0 : 1);
	}
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	ends_establish(&e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(end_hears_within(&e.listener, 0));
	ends_close(&e);
}

static int be_patient(void **state)
{
	return setenv("SOFTRNIC_REFUSED_MS", "5000", 1); /* PATIENCE_MS */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_that_comes_a_little_late_is_reached),
		cmocka_unit_test(the_port_that_the_user_chose_is_kept),
		cmocka_unit_test(no_address_reaches_itself),
		cmocka_unit_test(in_the_end_it_is_refused_and_the_waiting_costs_next_to_nothing),
		cmocka_unit_test(the_time_to_connect_ends_with_the_refusal_too),
		cmocka_unit_test(no_dial_follows_a_cancel),
		cmocka_unit_test(no_dial_follows_the_end_of_its_id),
		cmocka_unit_test(a_child_neither_dials_nor_disturbs),
	};

	return cmocka_run_group_tests(tests, be_patient, NULL);
}
