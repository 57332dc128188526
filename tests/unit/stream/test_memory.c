/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each allocation fails in turn: the connection may fail, but in good order and without a leak.
 */
#include "link.h"

#include <errno.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static int countdown = -1; /* allocations until one fails; -1: none fails */
static bool for_good;      /* true: all later allocations fail, too */

static bool fails(void)
{
	return for_good || (countdown >= 0 && countdown-- == 0);
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

static void no_stream_without_memory(void **state)
{
	struct stream_config cfg = link_config(STREAM_INITIATOR);
	struct stream *s = NULL;

	countdown = 0;
	assert_int_equal(stream_new(&cfg, &s), -ENOMEM);
	assert_null(s);
}

static void an_initiator_without_memory_reports_it(void **state)
{
	struct stream_config cfg = link_config(STREAM_INITIATOR);
	struct link l;

	link_init(&l, &cfg, NULL);
	assert_int_equal(stream_connect(l.a.s, &link_params, l.now, &l.a.u), 0);
	countdown = 0;
	stream_on_dialed(l.a.s, LINK_MSS, l.now, &l.a.u);
	side_events(&l.a);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -ENOMEM);
	link_fini(&l);
}

static void a_responder_without_memory_hangs_up(void **state)
{
	struct stream_config cfg = link_config(STREAM_RESPONDER);
	struct link l;

	link_init(&l, NULL, &cfg);
	countdown = 0;
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_events(&l.b);
	assert_true((l.b.u.todo & STREAM_DO_CLOSE));
	assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
	link_fini(&l);
}

/* Make a Read at the target, which needs memory for the first request. */
static bool read_without_allocation(int n)
{
	struct stream_config a = link_config(STREAM_INITIATOR), b = link_config(STREAM_RESPONDER);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct link l;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	assert_int_equal(side_post_read(&l.a, 1), 0);
	countdown = n;
	link_run(&l);
	countdown = -1;
	link_pass(&l, a.drain_ns);
	link_run(&l);
	assert_int_equal(rig_poll(l.a.rig, &status), 1);
	link_fini(&l);
	return status == IBV_WC_SUCCESS;
}

static void a_request_without_memory_ends_the_connection(void **state)
{
	int failed = 0;

	while (!read_without_allocation(failed))
		failed++;
	assert_true(failed > 0);
}

/*
 * The link's end comes after bytes that no queue pair takes any more. Finding the end must need no
 * memory. Otherwise the connection would exist for as long as a silent peer counts as alive.
 */
static void a_failed_stream_without_memory_reads_up_to_the_end(void **state)
{
	static const uint8_t nonsense[64] = {0, 18, 0x41, 0x4d}, rest[1000];
	struct stream_config a = link_config(STREAM_INITIATOR), b = link_config(STREAM_RESPONDER);
	struct stream *silent;
	struct link l;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	silent = l.b.s;
	l.b.s = NULL;
	side_feed(&l.a, nonsense, 24);
	link_run(&l);
	assert_state(&l.a, CLOSING);
	for_good = true;
	side_feed(&l.a, rest, sizeof(rest));
	side_feed_fin(&l.a);
	link_run(&l);
	for_good = false;
	assert_state(&l.a, CLOSED);
	assert_true(l.a.closed);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	l.b.s = silent;
	link_fini(&l);
}

static int succeed_again(void **state)
{
	countdown = -1;
	for_good = false;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(no_stream_without_memory, succeed_again),
		cmocka_unit_test_teardown(an_initiator_without_memory_reports_it, succeed_again),
		cmocka_unit_test_teardown(a_responder_without_memory_hangs_up, succeed_again),
		cmocka_unit_test_teardown(a_request_without_memory_ends_the_connection,
					  succeed_again),
		cmocka_unit_test_teardown(a_failed_stream_without_memory_reads_up_to_the_end,
					  succeed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
