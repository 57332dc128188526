/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over descriptors: time limits, the end of a stream, cut frames, and another protocol at
 * the other end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/poll.h"
#include "rpmem/wire/stream.h"

static struct wire_stream a, b;
static int fds[2];

static int connect_streams(void **state)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	wire_stream_init(&a, fds[0], fds[0]);
	wire_stream_init(&b, fds[1], fds[1]);
	return 0;
}

static int close_streams(void **state)
{
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return 0;
}

static void frames_sent_together_come_one_by_one(void **state)
{
	struct wire_frame frame;

	assert_int_equal(
		wire_stream_send(&a, WIRE_LANES, (const uint8_t *)"12345678", 8, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, (const uint8_t *)"abcd", 4, CLOCK_NEVER),
			 0);
	assert_int_equal(wire_stream_try_receive(&b, &frame), 0);
	assert_int_equal(frame.type, WIRE_LANES);
	assert_int_equal(wire_stream_try_receive(&b, &frame), 0);
	assert_int_equal(frame.type, WIRE_CLOSE);
	assert_memory_equal(frame.body, "abcd", 4);
	assert_int_equal(wire_stream_try_receive(&b, &frame), -EAGAIN);
}

static void a_frame_may_come_byte_by_byte(void **state)
{
	struct wire_seal seal = {0};
	struct wire_frame frame;
	uint8_t bytes[WIRE_FRAME_MAX];
	size_t len = wire_frame_encode(&seal, WIRE_CLOSE, (const uint8_t *)"abcd", 4, bytes);

	for (size_t i = 0; i < len; i++) {
		assert_int_equal(wire_stream_try_receive(&b, &frame), -EAGAIN);
		assert_int_equal(write(fds[0], bytes + i, 1), 1);
	}
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), 0);
	assert_int_equal(frame.len, 4);
}

static void a_silent_end_costs_the_time_limit_and_no_more(void **state)
{
	struct wire_frame frame;

	assert_int_equal(wire_stream_receive(&b, &frame, poll_deadline(20)), -ETIMEDOUT);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), 0);
}

static void an_end_that_reads_nothing_costs_the_time_limit(void **state)
{
	static uint8_t body[WIRE_BODY_MAX];
	int rc = 0;

	for (int i = 0; i < 10000 && !rc; i++)
		rc = wire_stream_send(&a, WIRE_CLOSE, body, sizeof(body), poll_deadline(20));
	assert_int_equal(rc, -ETIMEDOUT);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), -ETIMEDOUT);
}

static void a_closed_end_is_seen_after_its_last_frame(void **state)
{
	struct wire_frame frame;

	assert_int_equal(wire_stream_send(&b, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), 0);
	close(fds[1]);
	fds[1] = -1;
	assert_int_equal(wire_stream_receive(&a, &frame, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_receive(&a, &frame, CLOCK_NEVER), -ECONNRESET);
	assert_int_equal(wire_stream_receive(&a, &frame, CLOCK_NEVER), -ECONNRESET);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), -ECONNRESET);
}

static void a_send_to_a_closed_end_raises_no_signal(void **state)
{
	close(fds[1]);
	fds[1] = -1;
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), -ECONNRESET);
}

static void both_directions_are_sealed_from_the_next_frame_on(void **state)
{
	static const struct wire_key there = {{1}}, back = {{2}};
	struct wire_frame frame;

	assert_int_equal(wire_stream_send(&a, WIRE_PROOF, NULL, 0, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), 0);
	wire_stream_seal(&a, &there, &back);
	wire_stream_seal(&b, &back, &there);
	assert_int_equal(wire_stream_send(&a, WIRE_CLOSE, NULL, 0, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_send(&b, WIRE_ANSWER, NULL, 0, CLOCK_NEVER), 0);
	assert_int_equal(wire_stream_receive(&a, &frame, CLOCK_NEVER), 0);
	assert_int_equal(frame.type, WIRE_ANSWER);
}

static void pmdks_daemon_is_called_by_its_name(void **state)
{
	struct wire_frame frame;
	struct error err;

	assert_int_equal(write(fds[0], "\0\0\0\0", 4), 4);
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), -EPROTO);
	assert_int_equal(wire_stream_explain(&b, -EPROTO, "rpmemd on x", &err), ERROR_FAILED);
	assert_non_null(strstr(err.text, "rpmemd on x is the rpmemd of PMDK"));
	assert_int_equal(err.cause, EPROTO);
}

static void what_a_shell_prints_is_quoted(void **state)
{
	struct wire_frame frame;
	struct error err;

	assert_int_equal(write(fds[0], "Welcome\033!\nto", 12), 12);
	assert_int_equal(wire_stream_receive(&b, &frame, CLOCK_NEVER), -EPROTO);
	wire_stream_explain(&b, -EPROTO, "rpmemd on x", &err);
	assert_non_null(strstr(err.text, "rpmemd on x sent \"Welcome?!\""));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, connect_streams, close_streams)
	const struct CMUnitTest tests[] = {
		TEST(frames_sent_together_come_one_by_one),
		TEST(a_frame_may_come_byte_by_byte),
		TEST(a_silent_end_costs_the_time_limit_and_no_more),
		TEST(an_end_that_reads_nothing_costs_the_time_limit),
		TEST(a_closed_end_is_seen_after_its_last_frame),
		TEST(a_send_to_a_closed_end_raises_no_signal),
		TEST(both_directions_are_sealed_from_the_next_frame_on),
		TEST(pmdks_daemon_is_called_by_its_name),
		TEST(what_a_shell_prints_is_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
