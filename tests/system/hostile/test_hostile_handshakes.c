/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_handshakes.c -- peers that never complete a connection, because they are slow or
 * silent, are too many, or send invalid bytes. Valid clients must connect as if no such peers
 * existed.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define SLOW          200
#define CROWD         1100 /* more handshakes than an endpoint permits at the same time */
#define HONEST_MAX_MS (SYSTEM_SANITIZED ? 20000 : 5000)
#define REQUEST_MS    3000
/* Limit for a valid client: much shorter than the target's limit for a handshake. */
#define PROMPT_MS 5000

static struct remote target;
static struct client honest;
static struct raw peer;
static int log_fd;
static const char key[16] = "MPA ID Req Frame";

static uint64_t now_ms(void)
{
	return clock_now_ns() / NSEC_PER_MS;
}

/* A test can read the target's log. The log is printed at the end. */
static int start_logging(const char *limit)
{
	int ours = dup(STDERR_FILENO), ret;

	log_fd = memfd_create("log", 0);
	if (ours < 0 || log_fd < 0 || dup2(log_fd, STDERR_FILENO) < 0)
		return -1;
	ret = remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:65536:0xff", NULL},
			   (const char *[]){limit, "SOFTRNIC_LOG=notice", NULL});
	dup2(ours, STDERR_FILENO);
	close(ours);
	return ret;
}

static const char *logged(void)
{
	static char text[1 << 20];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static int lines_with(const char *what)
{
	int n = 0;

	for (const char *at = logged(); (at = strstr(at, what)); at++)
		n++;
	return n;
}

static int start_with(const char *limit)
{
	gauge_raise_nofile();
	return start_logging(limit) || client_open(&honest, 4096);
}

static int start(void **state)
{
	return start_with("SOFTRNIC_REQUEST_MS=3000"); /* REQUEST_MS */
}

static int start_patient(void **state)
{
	return start_with("SOFTRNIC_REQUEST_MS=9000");
}

static int stop(void **state)
{
	int ret;

	client_close(&honest);
	ret = proc_finish(&target.proc);
	fputs(logged(), stderr);
	close(log_fd);
	return ret;
}

static void connect_honestly(void)
{
	uint64_t begin = now_ms();

	OK(client_connect(&honest, target.port, NULL));
	OK(client_echo(&honest, 32));
	client_disconnect(&honest);
	if (now_ms() - begin > HONEST_MAX_MS)
		fail_msg("an honest connection took %d ms", (int)(now_ms() - begin));
}

/* Connect a socket that sends only the bytes of the test. */
static int dial(void)
{
	assert_int_equal(raw_dial(&peer, target.port), 0);
	return peer.fd;
}

static bool has_ended(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

static bool ends_until(int fd, uint64_t ms)
{
	bool ended;

	while (!(ended = has_ended(fd)) && now_ms() < ms)
		usleep(1000);
	return ended;
}

static void a_slow_handshake_delays_no_other(void **state)
{
	uint64_t begin = now_ms();
	int fd[SLOW], connects = 0, sent = 0;

	for (int i = 0; i < SLOW; i++)
		fd[i] = dial();
	while (now_ms() - begin < 2 * REQUEST_MS) {
		if (now_ms() - begin >= (uint64_t)sent * 1000) {
			for (int i = 0; i < SLOW; i++)
				send(fd[i], key + sent, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			sent++;
		}
		connect_honestly();
		connects++;
	}
	/* A single byte must not extend the limit. If each byte extended it, the limit would not
	 * have passed yet. */
	for (int i = 0; i < SLOW; i++) {
		assert_true(ends_until(fd[i], begin + 2 * REQUEST_MS + REQUEST_MS / 2));
		close(fd[i]);
	}
	print_message("%d honest connections among %d slow ones\n", connects, SLOW);
	assert_true(connects > 5);
}

static void a_silent_handshake_ends_at_the_limit(void **state)
{
	uint64_t begin;

	for (size_t len = 0; len <= 20; len += 10) {
		begin = now_ms();
		dial();
		assert_int_equal(raw_send(&peer, "MPA ID Req Frame\x40\x02\x00\x04", len), 0);
		assert_int_equal(raw_expect_end(&peer, RAW_WAIT_MS), 0);
		assert_true(now_ms() - begin >= REQUEST_MS);
		assert_true(now_ms() - begin <= REQUEST_MS + HONEST_MAX_MS);
		raw_close(&peer);
	}
	connect_honestly();
}

struct nonsense {
	const char *what;
	const char *bytes;
	size_t len;
};

#define NONSENSE(what, bytes)                                                                      \
	{                                                                                          \
		what, bytes, sizeof(bytes) - 1                                                     \
	}

static const struct nonsense nonsense[] = {
	NONSENSE("a web browser", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	NONSENSE("zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	NONSENSE("a key that is nearly right", "MPA ID Req Fram3\x40\x02\x00\x04\x00\x00\x00\x00"),
	NONSENSE("a reply", "MPA ID Rep Frame\x50\x02\x00\x04\x00\x01\x00\x01"),
	NONSENSE("513 bytes of private data", "MPA ID Req Frame\x50\x02\x02\x01\x00\x01\x00\x01"),
	NONSENSE("65535 bytes of private data", "MPA ID Req Frame\x50\x02\xff\xff\x00\x01\x00\x01"),
	NONSENSE("no room for its own IRD", "MPA ID Req Frame\x50\x02\x00\x03\x00\x01\x00"),
	NONSENSE("revision 0", "MPA ID Req Frame\x40\x00\x00\x00"),
	NONSENSE("revision 3", "MPA ID Req Frame\x40\x03\x00\x00"),
};

static void an_invalid_request_is_closed_at_once(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
		uint64_t begin;

		dial();
		begin = now_ms();
		assert_int_equal(raw_send(&peer, nonsense[i].bytes, nonsense[i].len), 0);
		if (raw_expect_end(&peer, RAW_WAIT_MS) || now_ms() - begin > PROMPT_MS)
			fail_msg("%s: not hung up on within %d ms", nonsense[i].what, PROMPT_MS);
		raw_close(&peer);
	}
	connect_honestly();
}

/* MPA permits private data of this length, but rdma_cm cannot deliver them. So the request is
 * refused, and its private data are not truncated. */
static void private_data_that_the_interface_cannot_carry_is_rejected(void **state)
{
	uint8_t frame[MPA_START_MAX];
	static const uint8_t pdata[MPA_PD_MAX];

	for (unsigned len = 255; len <= MPA_PD_MAX - MPA_ENHANCED_LEN; len += 253) {
		struct mpa_start request;
		int n;

		raw_request(&request, RAW_PLAIN);
		request.pd_len = (uint16_t)len;
		n = mpa_start_encode(frame, sizeof(frame), &request, pdata);
		assert_true(n > 0);
		dial();
		assert_int_equal(raw_send(&peer, frame, (size_t)n), 0);
		assert_int_equal(raw_take_reply(&peer), len == 255 ? 0 : -ECONNREFUSED);
		raw_close(&peer);
	}
	connect_honestly();
}

static void connections_without_a_request_delay_no_other(void **state)
{
	for (int i = 0; i < 500; i++) {
		struct linger reset = {.l_onoff = i & 1};

		dial();
		if (i & 2)
			assert_int_equal(raw_send(&peer, key, sizeof(key)), 0);
		setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		raw_close(&peer);
	}
	connect_honestly();
	assert_int_equal(remote_wait_conns(&target, 0, 20000), 0);
}

/* Above the limit the target closes the oldest handshake, because the newest handshake is more
 * likely to be valid. */
static void many_handshakes_do_not_keep_out_a_valid_one(void **state)
{
	static int fd[CROWD];

	if (gauge_raise_nofile() < CROWD + 50) {
		print_message("not tried: ulimit -Hn is too low for %d sockets\n", CROWD);
		return;
	}
	for (int i = 0; i < CROWD; i++)
		fd[i] = dial();
	connect_honestly();
	connect_honestly();
	for (int i = 0; i < CROWD; i++)
		close(fd[i]);
	connect_honestly();
}

/* --- lines in the target's log ------------------------------------------------------------ */

/* Returns an upper limit of the number of periods of the log's rate limit since begin_ms, including
 * the first period. */
static int periods_since(uint64_t begin_ms)
{
	return (int)((now_ms() - begin_ms) / LOG_LIMIT_PERIOD_MS) + 2;
}

static void expect_few_lines(const char *what, int before, uint64_t begin_ms)
{
	int n = lines_with(what) - before;

	print_message("%d more lines say \"%s\"\n", n, what);
	assert_true(before + n > 0);
	assert_true(n <= periods_since(begin_ms) * LOG_LIMIT_LINES);
}

/* Make a complete request whose private data are longer than rdma_cm can deliver. */
static size_t request_too_long(uint8_t frame[MPA_START_MAX])
{
	static const uint8_t pdata[MPA_PD_MAX];
	struct mpa_start request;

	raw_request(&request, RAW_PLAIN);
	request.pd_len = MPA_PD_MAX - MPA_ENHANCED_LEN;
	return (size_t)mpa_start_encode(frame, MPA_START_MAX, &request, pdata);
}

static void refused_requests_do_not_flood_the_log(void **state)
{
	uint8_t frame[MPA_START_MAX];
	size_t len = request_too_long(frame);
	uint64_t begin = now_ms();
	int before = lines_with("request refused");

	for (int i = 0; i < 200; i++) {
		dial();
		assert_int_equal(raw_send(&peer, frame, len), 0);
		assert_int_equal(raw_take_reply(&peer), -ECONNREFUSED);
		raw_close(&peer);
	}
	expect_few_lines("request refused", before, begin);
}

static void many_handshakes_do_not_flood_the_log(void **state)
{
	static int fd[CROWD + 200];
	uint64_t begin = now_ms();
	int before = lines_with("handshakes under way");

	if (gauge_raise_nofile() < ARRAY_LEN(fd) + 50) {
		print_message("not tried: ulimit -Hn is too low for %zu sockets\n", ARRAY_LEN(fd));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(fd); i++)
		fd[i] = dial();
	connect_honestly();
	for (size_t i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
	expect_few_lines("handshakes under way", before, begin);
}

int main(void)
{
	const struct CMUnitTest patient[] = {
		cmocka_unit_test(an_invalid_request_is_closed_at_once),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_handshake_delays_no_other),
		cmocka_unit_test(a_silent_handshake_ends_at_the_limit),
		cmocka_unit_test(private_data_that_the_interface_cannot_carry_is_rejected),
		cmocka_unit_test(connections_without_a_request_delay_no_other),
		cmocka_unit_test(many_handshakes_do_not_keep_out_a_valid_one),
		cmocka_unit_test(refused_requests_do_not_flood_the_log),
		cmocka_unit_test(many_handshakes_do_not_flood_the_log),
	};

	return cmocka_run_group_tests(patient, start_patient, stop) |
	       cmocka_run_group_tests(tests, start, stop);
}
