/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other processes call the Unix socket of a connection before its peer does, whenever the socket
 * listens.
 */
#include "ends.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shm_state.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/link_shm_socket.h"
#include "softrnic/verbs/id.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)

static struct ends ends;
static void (*call)(int fd); /* what a caller of the Unix socket does */
static int called, callers[64];
static int n_callers; /* number of callers at the same time */

/* Connect to the Unix socket. Returns -1 if the listener is not such a socket. */
static int call_socket(int listener)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);
	int fd;

	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	if (name.sun_family != AF_UNIX)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, len), 0);
	return fd;
}

int __real_listen(int fd, int calls);
int __wrap_listen(int fd, int calls);

int __wrap_listen(int listener, int calls)
{
	int ret = __real_listen(listener, calls), fd;

	for (int i = 0; !ret && i < n_callers; i++) {
		fd = call_socket(listener);
		if (fd < 0)
			break;
		call(fd);
		callers[called++] = fd;
	}
	return ret;
}

static void say_nothing(int fd)
{
}

static void say_nonsense(int fd)
{
	assert_int_equal(send(fd, "rings, please", 13, MSG_NOSIGNAL), 13);
}

static void guess(int fd)
{
	struct shm_packet packet = shm_packet_of(SHM_PACKET_NONCE, (uint8_t[16]){6});

	assert_int_equal(shm_socket_send(fd, &packet, -1), 0);
}

static void leave(int fd)
{
	assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
}

static struct conn *conn_of(struct end *e)
{
	return container_of(e->id, struct cmid, pub)->conn;
}

static uint64_t state_of(struct end *e)
{
	struct conn *c = conn_of(e);
	uint64_t state;

	conn_enter(c);
	state = stream_counters(c->stream)->shm_state;
	conn_leave(c);
	return state;
}

static bool has_hung_up(struct end *e)
{
	struct conn *c = conn_of(e);
	bool hangup;

	conn_enter(c);
	hangup = c->hangup;
	conn_leave(c);
	return hangup;
}

static void exchange(void)
{
	assert_int_equal(end_post_recv(&ends.server, 1), 0);
	assert_int_equal(end_post_send(&ends.client, 2, 8), 0);
	assert_int_equal(end_wait_wc(&ends.client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&ends.server).status, IBV_WC_SUCCESS);
}

/* Wait until both ends have moved to rings, or until one of them has a reason to stay on TCP. */
static uint64_t outcome(void)
{
	uint64_t until = clock_now_ns() + LIMIT_NS, s, c;

	do {
		exchange();
		s = state_of(&ends.server);
		c = state_of(&ends.client);
	} while ((s <= SHM_OFFERED || c <= SHM_OFFERED) && clock_now_ns() < until);
	return s == SHM_USED ? c : s;
}

static void expect(uint64_t state, void (*what)(int fd), int n)
{
	call = what;
	n_callers = n;
	called = 0;
	ends_open(&ends);
	assert_int_equal(softrnic_listen(ends.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(ends.client.id, NULL), 0);
	ends_establish(&ends);
	assert_string_equal(shm_state_str(outcome()), shm_state_str(state));
	assert_int_equal(called, n);
	exchange();
	assert_false(has_hung_up(&ends.server));
	assert_false(has_hung_up(&ends.client));
	ends_close(&ends);
	while (called > 0)
		close(callers[--called]);
}

static void a_silent_caller_first(void **state)
{
	expect(SHM_USED, say_nothing, 1);
	expect(SHM_USED, say_nothing, 10);
}

static void nonsense_first(void **state)
{
	expect(SHM_USED, say_nonsense, 10);
}

static void a_caller_without_a_nonce_first(void **state)
{
	expect(SHM_USED, guess, 1);
	expect(SHM_USED, guess, 40);
}

static void callers_that_leave_first(void **state)
{
	expect(SHM_USED, leave, 10);
}

static void too_many_callers(void **state)
{
	expect(SHM_WHY_STRANGERS, guess, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_caller_first),
		cmocka_unit_test(nonsense_first),
		cmocka_unit_test(a_caller_without_a_nonce_first),
		cmocka_unit_test(callers_that_leave_first),
		cmocka_unit_test(too_many_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
