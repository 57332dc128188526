/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fault.c -- the fault provider makes exactly the requested calls fail. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "provider/fault.h"

static struct provider inner;
static const struct provider *fault;
static struct ibv_pd the_pd;
static struct ibv_context context;
static int allocs, deallocs, acks, polls;

static struct ibv_pd *count_alloc(struct ibv_context *ctx)
{
	allocs++;
	return &the_pd;
}

static int count_dealloc(struct ibv_pd *pd)
{
	deallocs++;
	return 0;
}

static int count_ack(struct rdma_cm_event *ev)
{
	acks++;
	return 0;
}

static int count_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	polls++;
	return 1;
}

static int accept_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return 0;
}

static int setup(void **state)
{
	inner = provider_stubs;
	inner.alloc_pd = count_alloc;
	inner.dealloc_pd = count_dealloc;
	inner.ack_cm_event = count_ack;
	context = (struct ibv_context){.ops = {.poll_cq = count_poll, .post_send = accept_post}};
	allocs = deallocs = acks = polls = 0;
	fault = provider_fault_around(&inner);
	return 0;
}

static int disarm(void **state)
{
	fault_disarm();
	return 0;
}

/* This test must be the first, because a process reads the variable only once. */
static void a_program_may_arm_through_the_environment(void **state)
{
	setenv("RPMA_FAULT", "alloc_pd:2:12", 1);
	setup(state);
	assert_non_null(fault->alloc_pd(&context));
	errno = 0;
	assert_null(fault->alloc_pd(&context));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(fault->alloc_pd(&context));
}

static void nothing_armed_changes_nothing(void **state)
{
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(fault->alloc_pd(&context), &the_pd);
	assert_int_equal(fault->dealloc_pd(&the_pd), 0);
	assert_int_equal(allocs, 3);
	assert_int_equal(deallocs, 1);
	assert_false(fault_fired());
}

static void only_the_nth_call_of_that_name_fails(void **state)
{
	fault_arm("alloc_pd", 2, EMFILE);
	assert_int_equal(fault->dealloc_pd(&the_pd), 0);
	assert_non_null(fault->alloc_pd(&context));
	assert_false(fault_fired());
	errno = 0;
	assert_null(fault->alloc_pd(&context));
	assert_int_equal(errno, EMFILE);
	assert_true(fault_fired());
	assert_non_null(fault->alloc_pd(&context));
	assert_int_equal(fault_seen(), 3);
	assert_int_equal(allocs, 2);
}

static void a_star_counts_calls_of_every_name(void **state)
{
	fault_arm("*", 3, EIO);
	assert_non_null(fault->alloc_pd(&context));
	assert_int_equal(fault->dealloc_pd(&the_pd), 0);
	assert_null(fault->alloc_pd(&context));
	assert_int_equal(fault_seen(), 3);
}

static void what_releases_is_done_before_it_fails(void **state)
{
	fault_arm("dealloc_pd", 1, EBUSY);
	assert_int_equal(fault->dealloc_pd(&the_pd), EBUSY);
	assert_int_equal(deallocs, 1);
	fault_arm("ack_cm_event", 1, EIO);
	errno = 0;
	assert_int_equal(fault->ack_cm_event(NULL), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(acks, 1);
}

static void the_data_path_of_a_decorated_context_fails_until_disarmed(void **state)
{
	struct ibv_qp qp = {.context = &context};
	struct ibv_cq cq = {.context = &context};
	struct ibv_send_wr wr = {0};
	struct ibv_wc wc;

	fault_decorate_context(&context);
	fault_decorate_context(&context);
	fault_arm("post_send", 1, ENOMEM);
	assert_int_equal(provider_post_send(&qp, &wr), ENOMEM);
	assert_int_equal(provider_post_send(&qp, &wr), 0);
	fault_arm("poll_cq", 1, EIO);
	assert_int_equal(provider_poll_cq(&cq, 1, &wc), -EIO);
	assert_int_equal(provider_poll_cq(&cq, 1, &wc), 1);
	fault_disarm();
	assert_ptr_equal(context.ops.poll_cq, count_poll);
	assert_ptr_equal(context.ops.post_send, accept_post);
}

static void completions_can_be_held_back(void **state)
{
	struct ibv_cq cq = {.context = &context};
	uint64_t start = clock_now_ns();
	struct ibv_wc wc;

	fault_decorate_context(&context);
	fault_delay_completions(20);
	assert_int_equal(provider_poll_cq(&cq, 1, &wc), 1);
	assert_true(clock_now_ns() - start >= 20 * NSEC_PER_MS);
}

#define DISARMED(test) cmocka_unit_test_setup_teardown(test, setup, disarm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_program_may_arm_through_the_environment, disarm),
		DISARMED(nothing_armed_changes_nothing),
		DISARMED(only_the_nth_call_of_that_name_fails),
		DISARMED(a_star_counts_calls_of_every_name),
		DISARMED(what_releases_is_done_before_it_fails),
		DISARMED(the_data_path_of_a_decorated_context_fails_until_disarmed),
		DISARMED(completions_can_be_held_back),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
