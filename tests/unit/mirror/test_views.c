/* SPDX-License-Identifier: BSD-3-Clause */
/* What an application notices when members, the register or the role are lost. */
#include "mapped.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "mirror/wire/message.h"

enum { PATIENCE_MS = 20000 };

static sigjmp_buf on_fault;

static int flush_word(size_t offset, uint64_t value, struct rpmirror_result *res)
{
	struct rpmirror_range range = {addr + offset, 8};

	memcpy(addr + offset, &value, 8);
	return rpmirror_flush(m, &range, 1, 0, res);
}

static struct rpmirror_state get_state(void)
{
	struct rpmirror_state st = {.size = sizeof(st)};

	assert_int_equal(rpmirror_get_state(m, &st), 0);
	return st;
}

static bool take_event(enum rpmirror_event_type type)
{
	struct rpmirror_event ev = {.size = sizeof(ev)};
	struct pollfd pfd = {.events = POLLIN};

	assert_int_equal(rpmirror_get_fd(m, &pfd.fd), 0);
	while (poll(&pfd, 1, PATIENCE_MS) == 1) {
		assert_int_equal(rpmirror_next_event(m, &ev), 0);
		if (ev.type == type)
			return true;
	}
	return false;
}

static void test_mapping_promotes_and_unmapping_demotes(void **state)
{
	struct mirror_record rec = standin_record(s);

	assert_int_equal(rec.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(rec.view.primary, 0);
	assert_int_equal(rec.view.insync, 7);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_true(standin_asked(s, slot, MESSAGE_PROMISE) > 0);
	assert_int_equal(flush_word(0, 1, NULL), 0);
	assert_int_equal(rpmirror_unmap(&m), 0);
	assert_null(m);
	rec = standin_record(s);
	assert_int_equal(rec.view.phase, MIRROR_PHASE_NONE);
	assert_true(rec.view.clean);
	assert_true(standin_unmapped_clean(s));
}

static void test_the_next_primary_begins_a_new_epoch(void **state)
{
	uint64_t epoch = get_state().epoch;

	assert_int_equal(flush_word(8, 77, NULL), 0);
	assert_int_equal(rpmirror_unmap(&m), 0);
	map_set();
	assert_int_equal(get_state().epoch, epoch + 1);
	assert_int_equal(*(uint64_t *)(void *)(addr + 8), 77);
	assert_int_equal(flush_word(8, 78, NULL), 0);
	assert_flushed(7, 8, 8);
}

static void test_a_lost_member_is_excluded_before_the_flush_returns(void **state)
{
	struct rpmirror_result res;

	assert_int_equal(flush_word(0, 1, NULL), 0);
	standin_cut(s, 2);
	assert_int_equal(flush_word(0, 2, &res), 0);
	assert_int_equal(standin_record(s).view.insync, 3);
	assert_int_equal(res.durable_mask, 3);
	assert_int_equal(res.failed_mask, 4);
	assert_int_equal(res.flags, RPMIRROR_DEGRADED);
	assert_flushed(3, 0, 8);
	assert_true(take_event(RPMIRROR_EVENT_LOST));
	assert_true(take_event(RPMIRROR_EVENT_VIEW));
	assert_int_equal(get_state().health, RPMIRROR_HEALTH_DEGRADED);
	standin_cut(s, 1);
	assert_int_equal(flush_word(0, 3, &res), 0);
	assert_int_equal(res.durable_mask, 1);
	assert_int_equal(res.flags, RPMIRROR_DEGRADED | RPMIRROR_SOLO);
}

static int setup_short_timeout(void **state)
{
	setup(state);
	standin_set_replica_timeout_ms(s, 300);
	map_set();
	return 0;
}

static void test_a_member_without_progress_is_stuck(void **state)
{
	standin_cut(s, 2);
	assert_int_equal(flush_word(0, 1, NULL), 0);
	assert_true(take_event(RPMIRROR_EVENT_LOST));
	assert_true(take_event(RPMIRROR_EVENT_STUCK));
	assert_int_equal(get_state().members[2].remainder, 4096);
}

static void test_below_min_copies_nothing_is_acknowledged(void **state)
{
	struct rpmirror_result res;

	standin_cut(s, 1);
	assert_int_equal(flush_word(0, 1, &res), 0); /* two members are left */
	standin_cut(s, 2);
	assert_int_equal(flush_word(0, 2, &res), RPMIRROR_E_COPIES);
	/* the text names the member and the remedy */
	assert_non_null(strstr(rpmirror_errormsg(), "m2 (127.0.0.1:"));
	assert_non_null(strstr(rpmirror_errormsg(), "start their rpmirrord"));
	assert_int_equal(standin_record(s).view.insync, 5); /* either member can be promoted */
	assert_int_equal(get_state().health, RPMIRROR_HEALTH_BLOCKED);
	assert_true(take_event(RPMIRROR_EVENT_BLOCKED));
}

static int setup_two_copies(void **state)
{
	setup(state);
	standin_set_min_copies(s, 2);
	standin_set_blocked_ms(s, 200);
	map_set();
	return 0;
}

/* Repeat a flush that a busy machine delayed past its limit. */
static int flush_patiently(size_t offset, uint64_t value, struct rpmirror_result *res)
{
	int rc, tries = 0;

	while ((rc = flush_word(offset, value, res)) == RPMIRROR_E_QUORUM && tries++ < 30)
		;
	return rc;
}

/* The register does not answer, so the primary cannot exclude the lost member, and flushes wait for
 * this member. */
static void test_without_the_register_a_loss_blocks(void **state)
{
	struct rpmirror_result res;

	standin_set_register(s, false);
	assert_int_equal(flush_word(0, 1, &res), 0); /* no change of view is needed */
	standin_cut(s, 1);
	assert_int_equal(flush_word(0, 2, &res), RPMIRROR_E_QUORUM);
	assert_non_null(strstr(rpmirror_errormsg(), "m1 (127.0.0.1:"));
	assert_non_null(strstr(rpmirror_errormsg(), "rpmirrord runs"));
	standin_set_register(s, true);
	assert_int_equal(flush_patiently(0, 3, &res), 0);
	assert_int_equal(res.durable_mask, 5);
	assert_flushed(5, 0, 8);
}

/* The time for which a flush waited for the register does not count as a latency of flushes. */
static void test_a_flush_that_waited_is_in_no_percentile(void **state)
{
	const struct timespec pause = {0, 200000000}, look = {0, 10000000};
	struct message_status status;

	assert_int_equal(flush_word(0, 1, NULL), 0);
	standin_set_register(s, false);
	standin_cut(s, 1);
	assert_int_equal(flush_word(0, 2, NULL), RPMIRROR_E_QUORUM);
	nanosleep(&pause, NULL);
	standin_set_register(s, true);
	assert_int_equal(flush_patiently(0, 3, NULL), 0);
	for (unsigned tries = 0; (status = standin_status(s)).acked < 3; tries++) {
		assert_in_range(tries, 0, 1000);
		nanosleep(&look, NULL);
	}
	assert_in_range(status.p99_us, 1, 599999);
}

/* Stop the daemon, or the register. */
static void test_a_swap_without_an_answer_blocks(void **state)
{
	assert_int_equal(flush_word(0, 1, NULL), 0);
	standin_set_silent(s, true);
	standin_cut(s, 1);
	assert_int_equal(flush_word(0, 2, NULL), RPMIRROR_E_QUORUM);
	assert_true(take_event(RPMIRROR_EVENT_BLOCKED));
	standin_set_silent(s, false);
	assert_int_equal(flush_patiently(0, 3, NULL), 0);
	assert_flushed(5, 0, 8);
}

/* If a member is lost, the set counts as degraded even before the register has excluded the
 * member. */
static void test_a_lost_member_makes_a_set_degraded_at_once(void **state)
{
	struct timespec pause = {0, 1000000};

	assert_int_equal(get_state().health, RPMIRROR_HEALTH_FULL);
	standin_set_silent(s, true);
	standin_cut(s, 2);
	while (get_state().members[2].connected)
		nanosleep(&pause, NULL);
	assert_int_equal(get_state().insync_mask, 7);
	assert_int_not_equal(get_state().health, RPMIRROR_HEALTH_FULL);
	for (int waited = 0; standin_health(s) == MIRROR_HEALTH_HEALTHY; waited++) {
		assert_in_range(waited, 0, 500); /* the next regular report is due in a second */
		nanosleep(&pause, NULL);
	}
	assert_int_equal(get_state().insync_mask, 7);
	standin_set_silent(s, false);
}

/* A swap that adds a member may have taken effect, so this member counts for acknowledgements. */
static void test_what_counts_for_an_acknowledgement_is_in_the_mask(void **state)
{
	struct rpmirror_result res = {0};
	struct timespec pause = {0, 10000000};

	standin_cut(s, 2);
	assert_int_equal(flush_patiently(0, 1, &res), 0);
	assert_int_equal(res.durable_mask, 3);
	assert_int_equal(res.failed_mask, 4);
	standin_set_silent(s, true);
	standin_mend(s, 2);
	for (unsigned tries = 0; res.durable_mask != 7; tries++) {
		assert_in_range(tries, 0, 1000);
		flush_word(0, tries, &res);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(res.failed_mask, 0);
	assert_int_equal(standin_record(s).view.insync, 3);
	standin_set_silent(s, false);
}

static void test_unmap_gives_up_without_the_register(void **state)
{
	assert_int_equal(flush_word(0, 1, NULL), 0);
	standin_set_register(s, false);
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_QUORUM);
	assert_null(m);
	assert_non_null(strstr(rpmirror_errormsg(), "register"));
	assert_int_equal(standin_record(s).view.primary, 0);
	assert_false(standin_unmapped_clean(s));
	standin_set_register(s, true);
	map_set();
	assert_int_equal(flush_word(0, 2, NULL), 0);
	assert_int_equal(rpmirror_unmap(&m), 0);
	assert_true(standin_unmapped_clean(s));
}

static void *map_later(void *arg)
{
	void *at;
	size_t len;

	return (void *)(intptr_t)rpmirror_map(STANDIN_SET, NULL, RPMIRROR_MAP_WAIT, &m, &at, &len);
}

/* An operator may demote the mapping before it serves. */
static void test_a_mapping_that_is_demoted_fails(void **state)
{
	const struct packet_order_request demote = {.order = PACKET_ORDER_DEMOTE};
	struct timespec pause = {0, 10000000};
	pthread_t thread;
	void *rc;

	standin_set_min_copies(s, 3);
	standin_cut(s, 2);
	assert_int_equal(pthread_create(&thread, NULL, map_later, NULL), 0);
	while (standin_record(s).view.phase != MIRROR_PHASE_RECOVERING)
		nanosleep(&pause, NULL);
	standin_order(s, &demote);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, RPMIRROR_E_FENCED);
	assert_null(m);
}

/* A call to map that waits for the role also waits for a daemon that is not running yet. */
static void test_a_waiting_map_also_waits_for_the_daemon(void **state)
{
	struct timespec pause = {0, 300000000};
	pthread_t thread;
	void *at, *rc;
	size_t len;

	standin_stop_daemon(s);
	assert_int_equal(rpmirror_map(STANDIN_SET, NULL, 0, &m, &at, &len), RPMIRROR_E_DAEMON);
	assert_int_equal(pthread_create(&thread, NULL, map_later, NULL), 0);
	nanosleep(&pause, NULL);
	standin_start_daemon(s);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
}

static int setup_short_wait(void **state)
{
	setup(state);
	standin_set_blocked_ms(s, 500);
	map_set();
	return 0;
}

static void test_a_fenced_primary_is_so_for_good(void **state)
{
	assert_int_equal(flush_word(0, 1, NULL), 0);
	standin_overtake(s);
	assert_int_equal(flush_word(0, 2, NULL), RPMIRROR_E_FENCED);
	assert_int_equal(flush_word(8, 2, NULL), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_confirm(m), RPMIRROR_E_FENCED);
	assert_int_equal(get_state().role, RPMIRROR_ROLE_FENCED);
	assert_true(take_event(RPMIRROR_EVENT_FENCED));
	for (unsigned slot = 1; slot < 3; slot++)
		assert_int_equal(standin_copy(s, slot)[8], 0);
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_FENCED);
	assert_null(m);
}

static void jump_out(int sig)
{
	siglongjmp(on_fault, 1);
}

static int setup_protected(void **state)
{
	setenv("RPMIRROR_ON_FENCED", "protect", 1);
	setup_mapped(state);
	setenv("RPMIRROR_ON_FENCED", "error", 1);
	return 0;
}

/* The application's flag overrides its environment. */
static int setup_protected_by_flag(void **state)
{
	setup(state);
	map_set_with(RPMIRROR_MAP_FENCED_PROTECT);
	return 0;
}

/* A fenced primary must not read stale data any longer. */
static void test_a_fenced_primary_cannot_even_read(void **state)
{
	struct sigaction jump = {.sa_handler = jump_out}, before;
	struct timespec pause = {0, 1000000};
	volatile int waited = 0;

	assert_int_equal(sigaction(SIGSEGV, &jump, &before), 0);
	standin_overtake(s);
	if (!sigsetjmp(on_fault, 1))
		for (; waited < PATIENCE_MS; waited++) {
			(void)*(volatile uint8_t *)addr;
			nanosleep(&pause, NULL);
		}
	sigaction(SIGSEGV, &before, NULL);
	assert_true(waited < PATIENCE_MS);
	assert_true(take_event(RPMIRROR_EVENT_LEASE_OVER));
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_FENCED);
}

static int setup_protected_short(void **state)
{
	setup(state);
	standin_set_lease_ms(s, 300);
	standin_set_blocked_ms(s, 300);
	return 0;
}

/* Call this in each test: before each test cmocka replaces the library's signal handler by its
 * own. */
static void map_protected(unsigned flags)
{
	setenv("RPMIRROR_ON_FENCED", "protect", 1);
	map_set_with(flags);
	setenv("RPMIRROR_ON_FENCED", "error", 1);
}

static void *renew_soon(void *arg)
{
	struct timespec pause = {0, 100000000};

	nanosleep(&pause, NULL);
	standin_set_lease(s, true);
	return NULL;
}

/* Repeat a call that a busy machine delayed past the end of the lease. */
static int store8_patiently(uint64_t *word, uint64_t value)
{
	int rc, tries = 0;

	while ((rc = rpmirror_store8(m, word, value)) == RPMIRROR_E_QUORUM && tries++ < 30)
		;
	return rc;
}

/* The mapping can be neither read nor written, and the calls report this. */
static void check_calls_while_protected(unsigned flags)
{
	struct rpmirror_range range = {.len = 8};
	uint64_t *word;
	pthread_t thread;
	int rc;

	map_protected(flags);
	range.addr = word = (uint64_t *)(void *)(addr + 4096);
	assert_int_equal(store8_patiently(word, 1), 0);
	standin_set_lease(s, false);
	assert_true(take_event(RPMIRROR_EVENT_LEASE_OVER));
	while (!(rc = rpmirror_store8(m, word, 2))) /* the lease may already end here */
		;
	assert_int_equal(rc, RPMIRROR_E_QUORUM);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), RPMIRROR_E_QUORUM);
	assert_int_equal(rpmirror_flush_verify(m, &range, 1, NULL), RPMIRROR_E_QUORUM);
	if (flags & RPMIRROR_MAP_DIRECT)
		assert_int_equal(rpmirror_touch(m, word, 8), RPMIRROR_E_LEASE);
	/* The value is stored as soon as the lease is valid again. */
	assert_int_equal(pthread_create(&thread, NULL, renew_soon, NULL), 0);
	assert_int_equal(store8_patiently(word, 3), 0);
	pthread_join(thread, NULL);
	assert_int_equal(((const uint64_t *)(const void *)standin_copy(s, 1))[512], 3);
	standin_overtake(s);
	assert_true(take_event(RPMIRROR_EVENT_FENCED));
	assert_int_equal(rpmirror_store8(m, word, 4), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_flush_verify(m, &range, 1, NULL), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_flush(m, &range, 0, 0, NULL), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_sync(m, NULL, 0), RPMIRROR_E_FENCED);
	if (flags & RPMIRROR_MAP_DIRECT)
		assert_int_equal(rpmirror_touch(m, word, 8), RPMIRROR_E_FENCED);
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_FENCED);
}

static void test_calls_return_while_the_mapping_is_protected(void **state)
{
	check_calls_while_protected(0);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer wraps its own handlers around the library's */
static void test_calls_return_while_a_direct_mapping_is_protected(void **state)
{
	check_calls_while_protected(RPMIRROR_MAP_DIRECT);
}
#endif

static void *end_the_lease(void *arg)
{
	struct timespec pause = {0, 300000000};

	for (unsigned i = 0; i < 3; i++) {
		nanosleep(&pause, NULL);
		standin_set_lease(s, i == 1);
	}
	return NULL;
}

/* The library may lose access to the compared memory between any two pieces. */
static void test_the_lease_may_end_while_copies_are_verified(void **state)
{
	struct rpmirror_range v[2000]; /* a flushed range that is compared many times */
	pthread_t thread;
	int rc;

	map_protected(0);
	for (unsigned i = 0; i < 2000; i++)
		v[i] = (struct rpmirror_range){addr, 4096};
	assert_int_equal(store8_patiently((uint64_t *)(void *)addr, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, end_the_lease, NULL), 0);
	while (!(rc = rpmirror_flush_verify(m, v, 2000, NULL)))
		;
	pthread_join(thread, NULL);
	if (rc == RPMIRROR_E_NOSUPP)
		skip(); /* the test's folder is on tmpfs */
	assert_int_equal(rc, RPMIRROR_E_QUORUM);
}

static int setup_short_lease(void **state)
{
	setup(state);
	standin_set_lease_ms(s, 500);
	map_set();
	return 0;
}

/* Data that are read right after the map can be confirmed. */
static void test_a_mapping_begins_with_a_lease(void **state)
{
	assert_int_equal(rpmirror_confirm(m), 0);
}

static int setup_without_lease(void **state)
{
	setup(state);
	standin_set_lease_ms(s, 500);
	standin_set_lease(s, false);
	map_set();
	return 0;
}

static void test_without_renewals_a_set_is_mapped_all_the_same(void **state)
{
	assert_int_equal(rpmirror_confirm(m), RPMIRROR_E_LEASE);
}

static void test_confirm_is_a_matter_of_the_lease(void **state)
{
	struct timespec pause = {0, 10000000};
	int waited = 0;

	while (rpmirror_confirm(m) && waited++ < PATIENCE_MS / 10)
		nanosleep(&pause, NULL);
	assert_true(waited < PATIENCE_MS / 10);
	standin_set_lease(s, false);
	for (waited = 0; !rpmirror_confirm(m) && waited < PATIENCE_MS / 10; waited++)
		nanosleep(&pause, NULL);
	assert_int_equal(rpmirror_confirm(m), RPMIRROR_E_LEASE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAPPED(test_mapping_promotes_and_unmapping_demotes),
		MAPPED(test_the_next_primary_begins_a_new_epoch),
		MAPPED(test_a_lost_member_is_excluded_before_the_flush_returns),
		cmocka_unit_test_setup_teardown(test_a_member_without_progress_is_stuck,
						setup_short_timeout, teardown),
		cmocka_unit_test_setup_teardown(test_below_min_copies_nothing_is_acknowledged,
						setup_two_copies, teardown),
		cmocka_unit_test_setup_teardown(test_without_the_register_a_loss_blocks,
						setup_short_wait, teardown),
		cmocka_unit_test_setup_teardown(test_a_flush_that_waited_is_in_no_percentile,
						setup_short_wait, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_counts_for_an_acknowledgement_is_in_the_mask, setup_two_copies,
			teardown),
		MAPPED(test_a_lost_member_makes_a_set_degraded_at_once),
		cmocka_unit_test_setup_teardown(test_a_swap_without_an_answer_blocks,
						setup_short_wait, teardown),
		cmocka_unit_test_setup_teardown(test_unmap_gives_up_without_the_register,
						setup_short_wait, teardown),
		cmocka_unit_test_setup_teardown(test_a_mapping_that_is_demoted_fails, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_waiting_map_also_waits_for_the_daemon, setup,
						teardown),
		MAPPED(test_a_fenced_primary_is_so_for_good),
		cmocka_unit_test_setup_teardown(test_a_fenced_primary_cannot_even_read,
						setup_protected_by_flag, teardown),
		cmocka_unit_test_setup_teardown(test_a_fenced_primary_cannot_even_read,
						setup_protected, teardown),
		cmocka_unit_test_setup_teardown(test_calls_return_while_the_mapping_is_protected,
						setup_protected_short, teardown),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test_setup_teardown(
			test_calls_return_while_a_direct_mapping_is_protected,
			setup_protected_short, teardown),
#endif
		cmocka_unit_test_setup_teardown(test_the_lease_may_end_while_copies_are_verified,
						setup_protected_short, teardown),
		MAPPED(test_a_mapping_begins_with_a_lease),
		cmocka_unit_test_setup_teardown(test_without_renewals_a_set_is_mapped_all_the_same,
						setup_without_lease, teardown),
		cmocka_unit_test_setup_teardown(test_confirm_is_a_matter_of_the_lease,
						setup_short_lease, teardown),
	};

	setenv("RPMIRROR_ON_FENCED", "error", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
