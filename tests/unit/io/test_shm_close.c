/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_close.c -- a peer passes TCP sockets that linger: their last close blocks for seconds,
 * until the sent bytes are acknowledged. A thread that receives from the Unix socket or closes it
 * must not wait for this close.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ownfd.h"
#include "lib/lingering.h"
#include "softrnic/io/link_shm_close.h"
#include "softrnic/io/link_shm_socket.h"

#define LINGER_S 20
#define PASSED   257
/* limit for all calls of a test together, because the machine may be busy */
#define SOON_NS (2 * NSEC_PER_SEC)

static void pass(int to, const void *bytes, size_t len)
{
	assert_int_equal(lingering_pass(to, bytes, len), len);
}

static int begin(void **state)
{
	struct rlimit files = {.rlim_cur = 4096, .rlim_max = 4096};

	setrlimit(RLIMIT_NOFILE, &files);
	return lingering_begin(PASSED, LINGER_S);
}

static int end(void **state)
{
	lingering_end();
	for (int ms = 0; ms < 10000 && shm_closing_is_slow(); ms++)
		usleep(1000);
	return shm_closing_is_slow();
}

static void meet(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(ownfd_mark(ends[0]), ends[0]);
}

static void many_that_are_received_delay_nothing(void **state)
{
	struct shm_packet packet;
	uint64_t spent = 0, begun;
	int ends[2];

	for (int i = 0; i < PASSED; i++) {
		meet(ends);
		pass(ends[1], "x", 1);
		begun = clock_now_ns();
		assert_int_equal(shm_socket_recv(ends[0], SHM_PACKET_NONCE, &packet, NULL),
				 -EPROTO);
		shm_socket_close(ends[0]);
		spent += clock_now_ns() - begun;
		close(ends[1]);
	}
	assert_true(spent < SOON_NS);
	/* from now on this process moves no further connection to rings */
	assert_true(shm_closing_is_slow());
}

static void many_that_come_as_wake_ups_delay_nothing(void **state)
{
	uint64_t begun;
	int ends[2];

	meet(ends);
	for (int i = 0; i < 8; i++)
		pass(ends[1], "x", 1);
	begun = clock_now_ns();
	assert_int_equal(shm_socket_drain(ends[0]), -ECONNRESET);
	shm_socket_close(ends[0]); /* the socket still has descriptors that were not received */
	assert_true(clock_now_ns() - begun < SOON_NS);
	close(ends[1]);
}

static void one_instead_of_the_memory_delays_nothing(void **state)
{
	struct shm_packet packet;
	uint64_t begun;
	int ends[2], passed;
	char bytes[48] = "softring\0\0\0\2";

	meet(ends);
	pass(ends[1], bytes, sizeof(bytes));
	begun = clock_now_ns();
	assert_int_equal(shm_socket_recv(ends[0], SHM_PACKET_MEMORY, &packet, &passed), 0);
	shm_close_passed(&passed, 1);
	shm_socket_close(ends[0]);
	assert_true(clock_now_ns() - begun < SOON_NS);
	close(ends[1]);
}

/* The usual case: only wake-ups in the socket are unread. */
static void a_socket_without_any_is_closed_at_once(void **state)
{
	int ends[2];

	meet(ends);
	shm_socket_wake(ends[1]);
	shm_socket_close(ends[0]);
	assert_int_equal(fcntl(ends[0], F_GETFD), -1);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_that_are_received_delay_nothing, begin, end),
		cmocka_unit_test_setup_teardown(many_that_come_as_wake_ups_delay_nothing, begin,
						end),
		cmocka_unit_test_setup_teardown(one_instead_of_the_memory_delays_nothing, begin,
						end),
		cmocka_unit_test(a_socket_without_any_is_closed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
