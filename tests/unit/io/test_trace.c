/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace.c -- a trace has exactly the bytes of the wire, and does not change the connection.
 */
#include "lib/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/safecopy.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/trace/mpa_scan.h"
#include "softrnic/trace/flow.h"
#include "trace_rig.h"

static void exchange_of(enum rig_family family, bool initiator)
{
	struct rig r;

	rig_connect(&r, family, initiator);
	rig_trace(&r);
	rig_exchange(&r, 30);
	rig_end(&r);
	rig_expect(&r, FILE_NAME, TCP_ACK);
}

static void exchanges(void)
{
	for (int i = 0; i < 2; i++) {
		exchange_of(RIG_IPV4, i);
		exchange_of(RIG_IPV6, i);
	}
}

static void both_directions_are_traced_byte_for_byte(void **state)
{
	in_child(exchanges, FILE_NAME);
}

static void packets_tell_addresses(void)
{
	static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
	struct timespec now;
	struct packets p;

	exchange_of(RIG_MAPPED, true);
	exchange_of(RIG_IPV6, true);
	clock_gettime(CLOCK_REALTIME, &now);
	MUST(!packets_load(&p, FILE_NAME));
	MUST(!p.all[0].v6 && !memcmp(p.all[0].src, v4, 4) && !memcmp(p.all[0].dst, v4, 4));
	MUST(p.all[p.n - 1].v6 && !memcmp(p.all[p.n - 1].src, v6, 16));
	MUST(strstr(p.all[0].comment, "unit_io") && strstr(p.all[0].comment, "initiator, "));
	MUST((uint64_t)now.tv_sec - p.all[0].time_ns / 1000000000 < 60);
	packets_fini(&p);
}

/* A socket for both families shows ::ffff:127.0.0.1, but packets on the wire are IPv4. */
static void packets_have_the_connections_real_addresses_and_time(void **state)
{
	in_child(packets_tell_addresses, FILE_NAME);
}

/* The application may change these bytes at any time: hide this from ThreadSanitizer. */
static uint8_t changing[60000];
static atomic_bool stop;

__attribute__((no_sanitize("thread"))) static void *change(void *arg)
{
	for (uint8_t v = 0; !atomic_load(&stop); v++)
		for (size_t i = 0; i < sizeof(changing); i++)
			((volatile uint8_t *)changing)[i] = v;
	return arg;
}

/* Wait until the other thread changes the bytes. */
__attribute__((no_sanitize("thread"))) static void wait_for_change(void)
{
	volatile uint8_t *last = changing + sizeof(changing) - 1;
	uint8_t was = *last;

	while (*last == was)
		sched_yield();
}

static void receive_into_changing(struct rig *r, const uint8_t *bytes)
{
	size_t got = 0;

	MUST(send(r->peer, bytes, sizeof(changing), 0) == sizeof(changing));
	while (got < sizeof(changing)) {
		struct iovec iov = {changing, sizeof(changing) - got};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t n = link_tcp_trace_recvmsg(r->trace, r->us, &msg);

		MUST(n > 0 || errno == EAGAIN);
		got += n > 0 ? (size_t)n : 0;
	}
}

static void exchange_of_changing(void)
{
	uint8_t *bytes;
	pthread_t thread;
	struct rig r;

	MUST(!pthread_create(&thread, NULL, change, NULL));
	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	r.bytes[1] = bytes = malloc(50 * sizeof(changing));
	for (int i = 0; i < 50; i++) {
		memset(bytes + r.len[1], 'a' + i, sizeof(changing));
		wait_for_change();
		rig_send(&r, changing, sizeof(changing));
		receive_into_changing(&r, bytes + r.len[1]);
		r.len[1] += sizeof(changing);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	rig_end(&r);
	rig_expect(&r, FILE_NAME, TCP_ACK);
}

static void memory_that_changes_meanwhile_is_traced_as_it_was_on_the_wire(void **state)
{
	in_child(exchange_of_changing, FILE_NAME);
}

static ssize_t call(ssize_t (*fn)(struct trace *, int, struct msghdr *), struct rig *r, void *a,
		    size_t a_len, void *b, size_t b_len)
{
	struct iovec iov[2] = {{a, a_len}, {b, b_len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = b ? 2 : 1};

	return fn(r->trace, r->us, &msg);
}

static void exchange_with_vanished(void)
{
	char *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char good[10] = "123456789", got[10] = "";
	struct rig r;

	MUST(!safecopy_setup());
	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	MUST(call(link_tcp_trace_sendmsg, &r, good, 10, gone, 4096) == 10);
	MUST(call(link_tcp_trace_sendmsg, &r, gone, 4096, NULL, 0) == -1 && errno == EFAULT);
	MUST(recv(r.peer, got, 10, MSG_WAITALL) == 10);
	MUST(send(r.peer, good, 10, 0) == 10);
	MUST(call(link_tcp_trace_recvmsg, &r, gone, 4096, NULL, 0) == -1 && errno == EFAULT);
	MUST(call(link_tcp_trace_recvmsg, &r, got, 10, NULL, 0) == 10);
	r.bytes[0] = r.bytes[1] = (uint8_t *)good;
	r.len[0] = r.len[1] = 10;
	rig_end(&r);
	rig_expect(&r, FILE_NAME, TCP_ACK);
}

static void memory_that_vanished_is_an_error_as_without_a_trace(void **state)
{
	in_child(exchange_with_vanished, FILE_NAME);
}

static void close_with_unread_bytes(void)
{
	struct pollfd p = {.events = POLLIN};
	struct rig r;

	rig_connect(&r, RIG_IPV4, false);
	rig_trace(&r);
	rig_exchange(&r, 1);
	MUST(send(r.peer, "unread", 6, 0) == 6);
	p.fd = r.us;
	MUST(poll(&p, 1, 10000) == 1);
	link_tcp_trace_delete(r.trace, r.us);
	rig_expect(&r, FILE_NAME, TCP_RST | TCP_ACK);
}

static void peer_resets(struct rig *r)
{
	struct linger at_once = {1, 0};
	struct pollfd p = {r->us, POLLIN, 0};
	char byte;

	MUST(!setsockopt(r->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	close(r->peer);
	MUST(poll(&p, 1, 10000) == 1);
	MUST(call(link_tcp_trace_recvmsg, r, &byte, 1, NULL, 0) == -1 && errno == ECONNRESET);
}

static void reset_by_peer(void)
{
	struct packets all;
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 1);
	peer_resets(&r);
	link_tcp_trace_delete(r.trace, r.us);
	rig_expect(&r, FILE_NAME, TCP_RST | TCP_ACK);
	MUST(!packets_load(&all, FILE_NAME));
	MUST(all.all[all.n - 1].sport == r.port[1]);
	packets_fini(&all);
}

static void close_in_the_middle(void)
{
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 1);
	link_tcp_trace_delete(r.trace, r.us);
	rig_expect(&r, FILE_NAME, TCP_FIN | TCP_ACK);
}

static void the_end_is_the_one_that_the_kernel_makes(void **state)
{
	in_child(close_with_unread_bytes, FILE_NAME);
	in_child(reset_by_peer, FILE_NAME);
	in_child(close_in_the_middle, FILE_NAME);
}

#define FRAMES 30

/* Make a start-up frame and FPDUs; the last FPDU is incomplete. */
static size_t make_frames(uint8_t *stream, size_t begin[FRAMES], size_t of_last)
{
	struct mpa_start start = {.revision = 1, .pd_len = 3};
	size_t len = (size_t)mpa_start_encode(stream, MPA_START_MAX, &start, "abc");

	begin[0] = 0;
	for (unsigned i = 1; i < FRAMES; i++) {
		begin[i] = len;
		stream[len + 1] = (uint8_t)i;
		len += mpa_fpdu_len(i);
	}
	return begin[FRAMES - 1] + of_last;
}

static bool within_a_head(const size_t begin[FRAMES], size_t at)
{
	unsigned i = FRAMES - 1;

	while (begin[i] > at)
		i--;
	return at > begin[i] && at - begin[i] < (i ? MPA_SCAN_FPDU_MIN : MPA_SCAN_HEAD_MAX);
}

/* No packet may end within the head of a frame, except for the last packet of the stream. */
static void expect_no_packet_ends_within_a_head(const struct rig *r, const size_t begin[FRAMES])
{
	size_t said[2] = {0};
	struct packets p;

	MUST(!packets_load(&p, FILE_NAME));
	for (unsigned i = 0; i < p.n; i++) {
		int side = p.all[i].sport == r->port[1];

		said[side] += p.all[i].len;
		MUST(said[side] == r->len[side] || !within_a_head(begin, said[side]));
	}
	packets_fini(&p);
}

/* Send the same bytes in both directions, one at a time, over a traced connection. */
static void drip(struct rig *r, const uint8_t *bytes, size_t len)
{
	rig_connect(r, RIG_IPV4, true);
	rig_trace(r);
	for (size_t i = 0; i < len; i++) {
		rig_send(r, bytes + i, 1);
		rig_receive(r, bytes + i, 1);
	}
}

static void drip_frames(size_t of_last)
{
	static uint8_t stream[FRAMES * 64 + MPA_START_MAX];
	size_t begin[FRAMES], len = make_frames(stream, begin, of_last);
	struct rig r;

	drip(&r, stream, len);
	rig_end(&r);
	rig_expect(&r, FILE_NAME, TCP_ACK);
	expect_no_packet_ends_within_a_head(&r, begin);
}

static void drip_and_close(void)
{
	drip_frames(30);
}

static void drip_and_stop_within_a_head(void)
{
	drip_frames(5);
}

/* If a packet ends within the head of a frame, a dissector loses track of the stream. */
static void no_packet_ends_where_a_frame_has_hardly_begun(void **state)
{
	in_child(drip_and_close, FILE_NAME);
	in_child(drip_and_stop_within_a_head, FILE_NAME);
}

static void drip_and_reset(void)
{
	struct rig r;

	drip(&r, (const uint8_t *)"M", 1);
	peer_resets(&r);
	rig_expect(&r, FILE_NAME, TCP_RST | TCP_ACK);
}

static void drip_and_fail(void)
{
	struct rig r;

	drip(&r, (const uint8_t *)"M", 1);
	trace_error(r.trace, ETIMEDOUT);
	rig_expect(&r, FILE_NAME, TCP_PSH | TCP_ACK);
}

static void whatever_the_end_is_no_byte_is_missing(void **state)
{
	in_child(drip_and_reset, FILE_NAME);
	in_child(drip_and_fail, FILE_NAME);
}

static void exchange_untraced(void)
{
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	MUST(!link_tcp_trace_new(r.us, true));
	link_tcp_trace_delete(NULL, r.us);
	trace_shutdown(NULL);
	trace_forget(NULL);
	trace_error(NULL, ECONNRESET);
	MUST(size_of("err") == 0);
}

static void without_the_variable_nothing_is_traced(void **state)
{
	in_child(exchange_untraced, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_are_traced_byte_for_byte),
		cmocka_unit_test(packets_have_the_connections_real_addresses_and_time),
		cmocka_unit_test(memory_that_changes_meanwhile_is_traced_as_it_was_on_the_wire),
		cmocka_unit_test(memory_that_vanished_is_an_error_as_without_a_trace),
		cmocka_unit_test(the_end_is_the_one_that_the_kernel_makes),
		cmocka_unit_test(no_packet_ends_where_a_frame_has_hardly_begun),
		cmocka_unit_test(whatever_the_end_is_no_byte_is_missing),
		cmocka_unit_test(without_the_variable_nothing_is_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
