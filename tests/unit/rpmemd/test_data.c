/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of a session without an initiator: how long its port is open. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpmemd/data.h"

#define SIZE (16 * 4096u)

static struct device device;
static struct persist persist;
static struct data *data;
static struct data_opts opts;
static void *memory;

static int setup(void **state)
{
	struct error err;

	setenv("RPMA_PROVIDER", "softrnic", 1);
	memory = aligned_alloc(4096, SIZE);
	if (!memory || device_open(&device, "127.0.0.1", &err))
		return -1;
	persist_init(&persist, memory, SIZE, false);
	opts = (struct data_opts){.device = &device,
				  .base = memory,
				  .size = SIZE,
				  .method = WIRE_METHOD_NATIVE,
				  .lanes = 4,
				  .connect_ms = 60000,
				  .persist = &persist};
	return 0;
}

static int teardown(void **state)
{
	data_delete(&data);
	device_close(&device);
	persist_fini(&persist);
	free(memory);
	return 0;
}

/* Connect to the port over TCP. Returns 0 or errno. */
static int knock(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int rc = connect(fd, (struct sockaddr *)&at, sizeof(at)) ? errno : 0;

	close(fd);
	return rc;
}

/* Serve the data path until it stops listening. */
static void step_until_closed(void)
{
	int ms = data_step(data);

	while (ms >= 0) {
		struct pollfd pfd = {.fd = data_get_fd(data), .events = POLLIN};

		poll(&pfd, 1, ms);
		ms = data_step(data);
	}
}

static void nothing_listens_before_a_lane_is_announced(void **state)
{
	assert_int_equal(data_new(&opts, &data, NULL), 0);
	assert_int_equal(data_step(data), -1);
	assert_false(data_was_connected(data));
}

static void lanes_that_do_not_come_are_given_up(void **state)
{
	struct error err;
	uint16_t port, again;

	opts.connect_ms = 20;
	assert_int_equal(data_new(&opts, &data, &err), 0);
	assert_int_equal(data_expect(data, 0, 4, &port, &err), 0);
	assert_int_equal(knock(port), 0);
	step_until_closed();
	assert_int_equal(knock(port), ECONNREFUSED);
	assert_false(data_was_connected(data));
	/* The lanes may be announced again, on another port. */
	assert_int_equal(data_expect(data, 0, 1, &again, &err), 0);
	assert_int_equal(knock(again), 0);
}

static void a_new_announcement_prolongs_the_time(void **state)
{
	uint16_t first, second;

	assert_int_equal(data_new(&opts, &data, NULL), 0);
	assert_int_equal(data_expect(data, 0, 1, &first, NULL), 0);
	assert_int_equal(data_expect(data, 1, 3, &second, NULL), 0);
	assert_int_equal(first, second);
	assert_true(data_step(data) > 0);
	data_delete(&data);
	assert_int_equal(knock(first), ECONNREFUSED);
}

static void the_general_method_ends_its_threads(void **state)
{
	uint16_t port;

	opts.method = WIRE_METHOD_GENERAL;
	opts.nthreads = 2;
	assert_int_equal(data_new(&opts, &data, NULL), 0);
	assert_int_equal(data_expect(data, 0, 1, &port, NULL), 0);
	assert_int_equal(knock(port), 0);
	data_step(data);
}

static void lanes_depend_on_the_limit_of_open_files(void **state)
{
	struct rlimit was, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 300;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_in_range(data_lanes_possible(1024, WIRE_METHOD_NATIVE), 10, 100);
	assert_true(data_lanes_possible(1024, WIRE_METHOD_GENERAL) <
		    data_lanes_possible(1024, WIRE_METHOD_NATIVE));
	assert_int_equal(data_lanes_possible(5, WIRE_METHOD_GENERAL), 5);
	few.rlim_cur = 20;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(data_lanes_possible(1024, WIRE_METHOD_NATIVE), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(nothing_listens_before_a_lane_is_announced),
		TEST(lanes_that_do_not_come_are_given_up),
		TEST(a_new_announcement_prolongs_the_time),
		TEST(the_general_method_ends_its_threads),
		TEST(lanes_depend_on_the_limit_of_open_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
