/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_alloc.c -- in a life of librpma over the software RNIC each allocation fails in turn, first
 * alone and then together with all later ones, in any thread. Descriptors fail in the same two
 * ways. A function must succeed or return NOMEM or PROVIDER. No call must wait for ever, no memory
 * or descriptor must leak, and the next life must succeed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault/allocs.h"
#include "fault/life.h"
#include "fault/memory_judge.h"
#include "lib/fds.h"
#include "lib/unit.h"
#include "softrnic/persist/reader.h"
#include "softrnic/rnic/qp.h"
#include "softrnic/stream/former.h"

enum {
	ALLOCS_MAX = 1000,
	ALLOCS_MIN = 120,
	DESCRIPTORS_MIN = 30,
	BUFFERS_KEPT = 8,
	READERS_KEPT = 4,
	TARGETS_KEPT = 1, /* all lives have one target, this process */
	LIFE_LIMIT_S = 60
};

static int idle_fds;
static unsigned int idle_blocks, idle_targets;

static unsigned int buffers(void)
{
	return allocs_live(QP_RXBUF) + allocs_live(QP_TXBUF);
}

/* Count the buffers of threads that write back: an idle thread keeps its buffer for some
 * seconds. */
static unsigned int readers(void)
{
	return allocs_live_above(READER_BYTES);
}

/* Count the targets that the device still remembers: their connections have ended, and no later
 * connection has named them. */
static unsigned int targets(void)
{
	return allocs_live(FORMER_TARGET_BYTES);
}

static unsigned int blocks(void)
{
	return allocs_live(0) - buffers() - readers() - targets();
}

static bool is_idle(void)
{
	return open_fds() <= idle_fds && blocks() <= idle_blocks &&
	       targets() <= idle_targets + TARGETS_KEPT;
}

/* The engine's thread closes sockets and frees connections a moment later, so wait. */
static void expect_idle(unsigned int nth)
{
	for (int ms = 0; ms < 10000 && !is_idle(); ms++) {
		if (ms % 8 == 1)
			life_wake_engine();
		usleep(1000);
	}
	if (is_idle() && buffers() <= BUFFERS_KEPT && readers() <= READERS_KEPT)
		return;
	allocs_print_since_mark();
	fail_msg("allocation %u, %s: afterwards %d descriptors, %d blocks more, %u buffers and %u "
		 "readers",
		 nth, allocs_failed_at(), open_fds() - idle_fds, (int)(blocks() - idle_blocks),
		 buffers(), readers());
}

static bool live(void)
{
	bool complete;

	alarm(LIFE_LIMIT_S);
	complete = life_run(&memory_judge);
	alarm(0);
	return complete;
}

/* Fail each request in turn. Fewer than at_least failures mean that a life stopped early. */
static void fail_each(enum alloc_kind kind, bool for_good, unsigned int at_least)
{
	bool failed = true;
	unsigned int nth;

	for (nth = 1; failed; nth++) {
		bool complete;

		assert_in_range(nth, 1, ALLOCS_MAX);
		memory_judge_start(kind, nth, for_good);
		complete = live();
		failed = allocs_failed();
		allocs_disarm();
		assert_true(complete || failed);
		expect_idle(nth);
		memory_judge_start(ALLOC_MEMORY, 0, false);
		assert_true(live());
		expect_idle(nth);
	}
	assert_in_range(nth, at_least, ALLOCS_MAX);
}

static void each_allocation_may_fail(void **state)
{
	fail_each(ALLOC_MEMORY, false, ALLOCS_MIN);
}

static void memory_may_run_out_at_any_time(void **state)
{
	fail_each(ALLOC_MEMORY, true, ALLOCS_MIN);
}

static void each_descriptor_may_be_refused(void **state)
{
	fail_each(ALLOC_DESCRIPTOR, false, DESCRIPTORS_MIN);
}

static void descriptors_may_run_out_at_any_time(void **state)
{
	fail_each(ALLOC_DESCRIPTOR, true, DESCRIPTORS_MIN);
}

static void too_long(int sig)
{
	static const char text[] = "hung\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) > 0)
		fprintf(stderr, "%s\n", allocs_failed_at());
	_exit(1);
}

/* Lives without a failure make the objects that the engine keeps. */
static int setup(void **state)
{
	signal(SIGALRM, too_long);
	life_setup();
	memory_judge_start(ALLOC_MEMORY, 0, false);
	for (int i = 0; i < 3; i++) {
		live();
		usleep(50000);
	}
	usleep(200000);
	idle_fds = open_fds();
	idle_blocks = blocks();
	idle_targets = targets();
	allocs_mark();
	return 0;
}

static int teardown(void **state)
{
	life_teardown();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(memory_may_run_out_at_any_time),
		cmocka_unit_test(each_descriptor_may_be_refused),
		cmocka_unit_test(descriptors_may_run_out_at_any_time),
	};

	setenv("RPMA_PROVIDER", "softrnic", 1);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("failing allocations", tests, setup, teardown);
}
