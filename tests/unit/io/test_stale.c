/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection gets an event of a former socket or dial, because another thread dialed again
 * while the event was under way. The test calls inner functions of src/softrnic/io, on a dial that
 * does not complete.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "softrnic/io/conn_impl.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/io/link_tcp.h"

#define CROWD 16

static void ignore(void *owner, enum stream_event event, int status)
{
}

static int tcp_state(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_state;
}

/* A listener whose queue is full, so that a dial gets no answer. */
static int full_listener(struct sockaddr_in *sin, int crowd[CROWD])
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*sin);

	*sin = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)sin, len), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)sin, &len), 0);
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(crowd[i] >= 0);
		connect(crowd[i], (struct sockaddr *)sin, sizeof(*sin));
	}
	return fd;
}

static void a_stale_event_does_not_say_that_tcp_is_up(void **state)
{
	int crowd[CROWD], owner;
	struct stream_params params = {0};
	struct stream_update u;
	struct sockaddr_in sin;
	struct conn *c;
	int fd = full_listener(&sin, crowd);

	assert_int_equal(conn_new(STREAM_INITIATOR, true, ignore, &owner, &c), 0);
	c->dst = link_addr_from((struct sockaddr *)&sin);
	conn_enter(c);
	assert_int_equal(stream_connect(c->stream, &params, clock_now_ns(), &u), 0);
	assert_int_equal(conn_dial(c, NULL), 0);
	conn_leave(c);
	assert_int_equal(tcp_state(link_tcp_of(c->link)->fd), TCP_SYN_SENT);
	conn_want(c, READY_READ | READY_WRITE | READY_HANGUP);
	assert_string_equal(stream_state_str(stream_state(c->stream)), "DIALING");
	conn_enter(c);
	assert_int_equal(stream_cancel(c->stream, &u), 0);
	conn_perform(c, &u);
	conn_leave(c);
	conn_put(c);
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stale_event_does_not_say_that_tcp_is_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
