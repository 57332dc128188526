/* SPDX-License-Identifier: BSD-3-Clause */
/* The register in an etcd of one process. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "lib/unit.h"
#include "unit/mirror_register/records.h"
#include "unit/mirror_register/semantics.h"

static struct cluster cluster;

static int start(void **state)
{
	return cluster_start(&cluster, 1, false);
}

static int stop(void **state)
{
	cluster_stop(&cluster);
	return 0;
}

/* Before each test: remove the set. */
static int forget(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	char key64[2 * ETCD_KEY];

	assert_true(etcd_base64("/rpmirror/", 10, key64, sizeof(key64)));
	common_post(r, "/v3/kv/deleterange",
		    json_pack("{s:s, s:s}", "key", key64, "range_end", "AA=="));
	register_close(r);
	return 0;
}

static void it_keeps_the_contract(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct mirror_register *other = common_open(&cluster, "", LONG_MS);

	semantics_check(r, other);
	register_close(r);
	register_close(other);
}

static int swap_many(unsigned count)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	struct mirror_record next;
	struct error err;
	int rc = register_get(r, &now, &err);

	while (!rc && count) {
		enum register_result result;

		next = now.record;
		record_next(&next);
		result = register_swap(r, &now, &next, NULL, &now, &err);
		if (result == REGISTER_DONE)
			count--;
		else if (result != REGISTER_CHANGED)
			rc = -1;
	}
	register_close(r);
	return rc;
}

static void swaps_of_two_processes_are_neither_lost_nor_doubled(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	int status;
	pid_t child;

	semantics_create(r, &now);
	child = fork();
	if (!child)
		_exit(swap_many(150) ? 1 : 0);
	assert_int_equal(swap_many(150), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	common_get(r, &now);
	assert_int_equal(now.record.view.seq, 300);
	register_close(r);
}

static void a_watch_sees_a_new_record(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	int status;
	pid_t child;

	semantics_create(r, &now);
	/* One change occurs before the watch begins, and one change while the watch waits. */
	assert_true(register_watch(r, now.revision - 1, LONG_MS, -1));
	assert_false(register_watch(r, now.revision, 100, -1));
	child = fork();
	if (!child)
		_exit(swap_many(1) ? 1 : 0);
	assert_true(register_watch(r, now.revision, LONG_MS, -1));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	register_close(r);
}

static void a_watch_sees_the_end_of_a_primary_but_no_renewal(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct mirror_register *daemon = common_open(&cluster, "", LONG_MS);
	struct register_alive alive = {0};
	struct register_entry now;
	struct mirror_record next;
	struct error err;

	semantics_create(daemon, &now);
	next = now.record;
	record_promote(&next, 0);
	assert_int_equal(register_swap(daemon, &now, &next, &alive, &now, &err), REGISTER_DONE);
	assert_int_equal(register_alive_put(daemon, next.view.epoch, &alive, &err), REGISTER_DONE);
	assert_false(register_watch(r, now.revision, 200, -1));
	assert_int_equal(register_alive_clear(daemon, next.view.epoch, &err), REGISTER_DONE);
	assert_true(register_watch(r, now.revision, LONG_MS, -1));
	/* The change is reported only once. */
	assert_false(register_watch(r, now.revision, 100, -1));
	register_close(r);
	register_close(daemon);
}

static void a_watch_ends_when_asked(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	int wake[2];

	semantics_create(r, &now);
	assert_int_equal(pipe(wake), 0);
	assert_int_equal(write(wake[1], "x", 1), 1);
	assert_false(register_watch(r, now.revision, LONG_MS, wake[0]));
	close(wake[0]);
	close(wake[1]);
	register_close(r);
}

static void a_watch_from_before_a_compaction_says_look(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	uint64_t first;

	semantics_create(r, &now);
	first = now.revision;
	for (int i = 0; i < 3; i++)
		common_step(r, &now);
	common_post(r, "/v3/kv/compaction",
		    json_pack("{s:I, s:b}", "revision", (json_int_t)now.revision, "physical", 1));
	assert_true(register_watch(r, first, LONG_MS, -1));
	assert_false(register_watch(r, now.revision, 100, -1));
	register_close(r);
}

static void a_foreign_value_is_explained(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now, there;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	common_post(r, "/v3/kv/put",
		    json_pack("{s:s, s:s}", "key", etcd_of(r)->key64[BACKEND_RECORD], "value",
			      "aGVsbG8="));
	assert_int_equal(register_get(r, &there, &err), -EPROTO);
	assert_non_null(strstr(err.text, "not JSON"));
	next = now.record;
	record_next(&next);
	assert_int_equal(register_swap(r, &now, &next, NULL, &there, &err), REGISTER_CHANGED);
	assert_int_equal(there.revision, 0);
	register_close(r);
}

static void a_record_of_the_largest_size_is_stored(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;
	struct mirror_record next;

	semantics_create(r, &now);
	next = now.record;
	record_next(&next);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct mirror_member *m = &next.config.members[slot];

		*m = (struct mirror_member){.id = slot + 1, .name = {(char)('a' + slot)}};
		memset(m->host, 'h', MIRROR_HOST_MAX);
		memset(m->path, '"', MIRROR_PATH_MAX);
		m->path[0] = '/';
	}
	common_swap(r, &now, &next);
	common_get(r, &now);
	assert_string_equal(now.record.config.members[7].path, next.config.members[7].path);
	register_close(r);
}

static void alarm_no_space(struct mirror_register *r, const char *action)
{
	common_post(r, "/v3/maintenance/alarm",
		    json_pack("{s:s, s:s, s:s}", "action", action, "memberID", "1", "alarm",
			      "NOSPACE"));
}

/*
 * etcd refuses writes, but not reads. Hosts that only read get the fact from etcd's health report.
 */
static void a_store_without_space_refuses_writes_and_shows_that(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_health health;
	struct register_entry now, landed;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	register_health(r, &health);
	assert_false(health.is_full);
	alarm_no_space(r, "ACTIVATE");
	register_health(r, &health);
	assert_true(health.is_full);
	assert_int_equal(health.healthy, health.members);
	next = now.record;
	record_next(&next);
	assert_int_equal(register_swap(r, &now, &next, NULL, &landed, &err), REGISTER_FAILED);
	assert_int_equal(err.cause, ENOSPC);
	assert_non_null(strstr(err.text, "database space exceeded"));
	common_get(r, &now);
	alarm_no_space(r, "DEACTIVATE");
	common_step(r, &now);
	register_health(r, &health);
	assert_false(health.is_full);
	register_close(r);
}

/* A restored store repeats revisions. Only the record's earlier value shows that the store was
 * restored. */
static void a_restored_store_is_noticed_by_the_value(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now, restored;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	restored = now;
	cluster_member_kill(&cluster, 0);
	assert_int_equal(cluster_member_save(&cluster, 0), 0);
	assert_int_equal(cluster_member_start(&cluster, 0), 0);
	assert_true(cluster_await(&cluster, 1));
	common_step(r, &now);
	cluster_member_kill(&cluster, 0);
	assert_int_equal(cluster_member_restore(&cluster, 0), 0);
	assert_int_equal(cluster_member_start(&cluster, 0), 0);
	assert_true(cluster_await(&cluster, 1));

	common_step(r, &restored);
	assert_int_equal(restored.revision, now.revision);
	next = now.record;
	record_next(&next);
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_CHANGED);
	assert_int_equal(now.record.nonce, restored.record.nonce);
	register_close(r);
}

/* The store is killed while swaps are in progress, and is started again as another process. */
static void a_restarted_store_has_every_swap(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", LONG_MS);
	struct register_entry now;

	semantics_create(r, &now);
	for (int i = 0; i < 3; i++) {
		for (int step = 0; step < 5; step++)
			common_step(r, &now);
		cluster_member_kill(&cluster, 0);
		assert_int_equal(cluster_member_start(&cluster, 0), 0);
	}
	common_step(r, &now);
	common_get(r, &now);
	assert_int_equal(now.record.view.seq, 16);
	register_close(r);
}

static void a_store_that_is_down_was_not_asked(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", SHORT_MS);
	struct register_entry now;
	struct mirror_record next;
	struct register_health health;
	struct error err;

	common_create(&cluster, &now);
	next = now.record;
	record_next(&next);
	cluster_member_kill(&cluster, 0);
	assert_int_equal(register_get(r, &now, &err), -ENOTCONN);
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_FAILED);
	register_health(r, &health);
	assert_int_equal(health.members, 1);
	assert_int_equal(health.healthy, 0);
	assert_false(register_watch(r, 1, 100, -1));
	assert_int_equal(cluster_member_start(&cluster, 0), 0);
	assert_true(cluster_await(&cluster, 1));
	register_health(r, &health);
	assert_int_equal(health.healthy, 1);
	register_close(r);
}

/*
 * The store has got the request, but does not answer. The outcome is unknown until the client
 * requests the same swap again.
 */
static void a_silent_store_leaves_a_swap_unknown(void **state)
{
	struct mirror_register *r = common_open(&cluster, "", SHORT_MS);
	struct register_entry now, after;
	struct mirror_record next;
	struct error err;

	common_create(&cluster, &now);
	next = now.record;
	record_next(&next);
	cluster_member_signal(&cluster, 0, SIGSTOP);
	assert_int_equal(register_swap(r, &now, &next, NULL, &after, &err), REGISTER_UNKNOWN);
	assert_int_equal(register_get(r, &after, &err), -ETIMEDOUT);
	cluster_member_signal(&cluster, 0, SIGCONT);
	common_swap(r, &now, &next);
	assert_int_equal(now.record.view.seq, 1);
	common_step(r, &now);
	assert_int_equal(now.record.view.seq, 2);
	register_close(r);
}

#define TEST(name) cmocka_unit_test_setup(name, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_keeps_the_contract),
		TEST(swaps_of_two_processes_are_neither_lost_nor_doubled),
		TEST(a_watch_sees_a_new_record),
		TEST(a_watch_sees_the_end_of_a_primary_but_no_renewal),
		TEST(a_watch_ends_when_asked),
		TEST(a_watch_from_before_a_compaction_says_look),
		TEST(a_foreign_value_is_explained),
		TEST(a_record_of_the_largest_size_is_stored),
		TEST(a_store_without_space_refuses_writes_and_shows_that),
		TEST(a_restored_store_is_noticed_by_the_value),
		TEST(a_restarted_store_has_every_swap),
		TEST(a_store_that_is_down_was_not_asked),
		TEST(a_silent_store_leaves_a_swap_unknown),
	};

	common_need_etcd();
	return cmocka_run_group_tests(tests, start, stop);
}
