/* SPDX-License-Identifier: BSD-3-Clause */
/* The register in an etcd of three processes, some of which fail. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common.h"
#include "lib/unit.h"
#include "unit/mirror_register/records.h"
#include "unit/mirror_register/semantics.h"

static struct cluster cluster;

static int start(void **state)
{
	return cluster_start(&cluster, 3, false);
}

static int stop(void **state)
{
	cluster_stop(&cluster);
	return 0;
}

/* Before each test: start all three members, and remove the set. */
static int recover(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	struct error err;

	for (unsigned i = 0; i < cluster.members; i++) {
		cluster_member_signal(&cluster, i, SIGCONT);
		if (!cluster.member[i].pid)
			cluster_member_start(&cluster, i);
	}
	assert_true(cluster_await(&cluster, 3));
	for (;;) {
		int rc = register_get(r, &now, &err);

		if (rc == -ENOENT || (!rc && register_delete(r, &now, &err) == REGISTER_DONE))
			break;
	}
	register_close(r);
	return 0;
}

static unsigned leader(void)
{
	unsigned i = cluster_leader(&cluster);

	if (i == cluster.members) {
		assert_true(cluster_await(&cluster, 3));
		i = cluster_leader(&cluster);
	}
	assert_true(i < cluster.members);
	return i;
}

static void it_keeps_the_contract(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct mirror_register *other = common_open(&cluster, "", LONG_MS);

	semantics_check(r, other);
	register_close(r);
	register_close(other);
}

/* Make swaps before, during and after the failure: each swap must take effect once. */
static void swap_around(unsigned victim, int sig)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;

	semantics_create(r, &now);
	etcd_of(r)->preferred = victim;
	for (int i = 0; i < 3; i++)
		common_step(r, &now);
	if (sig == SIGKILL)
		cluster_member_kill(&cluster, victim);
	else
		cluster_member_signal(&cluster, victim, sig);
	for (int i = 0; i < 3; i++)
		common_step(r, &now);
	if (sig == SIGKILL)
		assert_int_equal(cluster_member_start(&cluster, victim), 0);
	else
		cluster_member_signal(&cluster, victim, SIGCONT);
	for (int i = 0; i < 3; i++)
		common_step(r, &now);
	common_get(r, &now);
	assert_int_equal(now.record.view.seq, 9);
	register_close(r);
}

static void a_killed_follower_is_passed_over(void **state)
{
	swap_around((leader() + 1) % 3, SIGKILL);
}

static void a_killed_leader_is_replaced(void **state)
{
	swap_around(leader(), SIGKILL);
}

static void a_stopped_follower_is_passed_over(void **state)
{
	swap_around((leader() + 1) % 3, SIGSTOP);
}

static void a_stopped_leader_is_replaced(void **state)
{
	swap_around(leader(), SIGSTOP);
}

/* A read does not wait until a silent member's share of the time limit has passed. */
static void a_silent_member_does_not_hold_up_reads(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	unsigned victim = (leader() + 1) % 3;
	struct register_entry now;
	struct error err;
	uint64_t begin;

	semantics_create(r, &now);
	etcd_of(r)->preferred = victim;
	cluster_member_signal(&cluster, victim, SIGSTOP);
	begin = clock_now_ns();
	assert_int_equal(register_get(r, &now, &err), 0);
	assert_true(clock_now_ns() - begin < LONG_MS / 3 * NSEC_PER_MS);
	assert_int_not_equal(etcd_of(r)->preferred, victim);
	/* The client must not send each request to this member first. */
	etcd_of(r)->preferred = victim;
	assert_false(register_watch(r, now.revision, SHORT_MS / 4, -1));
	assert_int_not_equal(etcd_of(r)->preferred, victim);
	register_close(r);
}

/*
 * etcd's leader has died, for instance together with the primary's host: the other members still
 * have the last renewal.
 */
static void without_a_majority_a_member_has_the_alive_key(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", SHORT_MS);
	struct register_alive alive = {0}, seen = {0};
	struct register_entry now;
	struct mirror_record next;
	struct error err;

	common_create(&cluster, &now);
	next = now.record;
	record_promote(&next, 0);
	while (register_swap(r, &now, &next, &alive, &now, &err) != REGISTER_DONE)
		;
	while (register_alive_put(r, next.view.epoch, &alive, &err) != REGISTER_DONE)
		;
	etcd_of(r)->preferred = 0;
	/* The member of etcd that answers can have older data, so repeat. */
	while (register_alive_peek(r, &seen, &err) || seen.counter != alive.counter)
		;
	cluster_member_kill(&cluster, 1);
	cluster_member_kill(&cluster, 2);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(register_alive_peek(r, &seen, &err), 0);
	assert_true(seen.is_set);
	assert_int_equal(seen.revision, alive.revision);
	assert_int_equal(seen.counter, alive.counter);
	assert_true(mirror_epoch_is_equal(seen.epoch, next.view.epoch));
	assert_int_not_equal(register_alive_get(r, &seen, &err), 0);
	register_close(r);
}

/* One of three members is no majority: it accepts the swap but cannot carry it out. The swap can
 * still take effect later. */
static void without_a_majority_a_swap_is_unknown(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", SHORT_MS);
	struct register_entry now, after;
	struct mirror_record next;
	struct error err;
	int rc;

	common_create(&cluster, &now);
	next = now.record;
	record_next(&next);
	cluster_member_kill(&cluster, 1);
	cluster_member_kill(&cluster, 2);
	assert_int_equal(register_swap(r, &now, &next, NULL, &after, &err), REGISTER_UNKNOWN);
	rc = register_get(r, &after, &err);
	assert_int_equal(rc, -ETIMEDOUT);
	assert_int_equal(cluster_member_start(&cluster, 1), 0);
	common_swap(r, &now, &next);
	common_get(r, &after);
	assert_int_equal(after.record.nonce, next.nonce);
	assert_int_equal(after.record.view.seq, 1);
	register_close(r);
}

/* A swap of a primary that got no answer takes effect late, after changes of another primary. */
static void a_late_swap_does_not_undo_a_newer_one(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", SHORT_MS);
	struct mirror_register *other = common_open(&cluster, "", LONG_MS);
	struct register_entry now, mine, after;
	struct mirror_record late, next;
	struct error err;

	common_create(&cluster, &now);
	late = next = now.record;
	record_next(&late);
	record_next(&next);
	next.view.seq = 100;
	for (unsigned i = 0; i < 3; i++)
		cluster_member_signal(&cluster, i, SIGSTOP);
	assert_int_equal(register_swap(r, &now, &late, NULL, &after, &err), REGISTER_UNKNOWN);
	for (unsigned i = 0; i < 3; i++)
		cluster_member_signal(&cluster, i, SIGCONT);
	/* Either the other client's swap succeeds, or the other client finds that the late swap
	 * took effect first. Both swaps cannot succeed. */
	while (register_get(other, &mine, &err))
		;
	if (mine.record.nonce == now.record.nonce &&
	    register_swap(other, &mine, &next, NULL, &mine, &err) == REGISTER_DONE) {
		enum register_result result;

		do {
			result = register_swap(r, &now, &late, NULL, &after, &err);
		} while (result == REGISTER_UNKNOWN || result == REGISTER_FAILED);
		assert_int_equal(result, REGISTER_CHANGED);
		assert_int_equal(after.record.nonce, next.nonce);
	} else {
		common_get(other, &mine);
		assert_int_equal(mine.record.nonce, late.nonce);
		common_swap(r, &now, &late);
		assert_int_equal(now.revision, mine.revision);
	}
	register_close(r);
	register_close(other);
}

static void the_alive_key_is_renewed_through_a_change_of_leader(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_alive alive = {0}, seen;
	struct register_entry now;
	struct mirror_record next;
	struct error err;
	unsigned victim = leader();
	uint64_t counted = 0;

	semantics_create(r, &now);
	next = now.record;
	record_promote(&next, 0);
	assert_int_equal(register_swap(r, &now, &next, &alive, &now, &err), REGISTER_DONE);
	for (int i = 0; i < 20; i++) {
		enum register_result result;

		if (i == 5)
			cluster_member_kill(&cluster, victim);
		result = register_alive_put(r, next.view.epoch, &alive, &err);
		assert_int_not_equal(result, REGISTER_CHANGED);
		counted += result == REGISTER_DONE;
	}
	assert_true(counted >= 6);
	while (register_alive_get(r, &seen, &err))
		;
	assert_true(seen.counter >= counted);
	assert_true(mirror_epoch_is_equal(seen.epoch, next.view.epoch));
	register_close(r);
}

static void its_health_counts_the_endpoints_that_answer(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_health health;

	register_health(r, &health);
	assert_string_equal(health.kind, "etcd");
	assert_int_equal(health.members, 3);
	assert_int_equal(health.healthy, 3);
	cluster_member_kill(&cluster, (leader() + 1) % 3);
	register_health(r, &health);
	assert_int_equal(health.members, 3);
	assert_true(health.healthy <= 2);
	register_close(r);
}

#define TEST(name) cmocka_unit_test_setup(name, recover)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_keeps_the_contract),
		TEST(a_killed_follower_is_passed_over),
		TEST(a_killed_leader_is_replaced),
		TEST(a_stopped_follower_is_passed_over),
		TEST(a_stopped_leader_is_replaced),
		TEST(a_silent_member_does_not_hold_up_reads),
		TEST(without_a_majority_a_member_has_the_alive_key),
		TEST(without_a_majority_a_swap_is_unknown),
		TEST(a_late_swap_does_not_undo_a_newer_one),
		TEST(the_alive_key_is_renewed_through_a_change_of_leader),
		TEST(its_health_counts_the_endpoints_that_answer),
	};

	common_need_etcd();
	return cmocka_run_group_tests(tests, start, stop);
}
