/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many.c -- 500 connections to one process: all of them work, and they need almost no
 * resources while they are idle. */
#include "system/lib/check.h"

#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/remote.h"

#define CONNS          (SYSTEM_SANITIZED ? 100 : 500)
#define PER_CONN       4096
#define IDLE_KIB_MAX   13 /* includes 0.5 KiB for the calls of extended queue pairs and queues */
#define REGION_KIB     (PER_CONN / 1024) /* memory of the target's region that was written to */
#define IDLE_TICKS_MAX 1                 /* clock ticks within a second */
#define IDLE_S         6                 /* longer than the time between two liveness checks */
/* descriptors: the socket, and the channels for events and completions */
#define FILES_PER_CONN 3

static struct client base; /* the device and a buffer; each connection begins as a copy of this */
static struct client conn[CONNS];
static struct remote target;

static struct gauge target_gauge(void)
{
	const char *line = proc_ask(&target.proc, "stat");
	struct gauge g;

	assert_non_null(line);
	assert_int_equal(sscanf(line, "%ld %ld %ld %ld", &g.rss_anon_kib, &g.pss_kib, &g.cpu_ticks,
				&g.allocated_kib),
			 4);
	return g;
}

static int start(void **state)
{
	char region[32];

	/* The target raises its own limit of descriptors; this call raises the limit of this
	 * process. */
	if (gauge_raise_nofile() < CONNS * FILES_PER_CONN + 50) {
		printf("skipped: %d connections need more descriptors than ulimit -Hn allows\n",
		       CONNS);
		exit(SKIPPED);
	}
	snprintf(region, sizeof(region), "anon:%d:0xff", CONNS * PER_CONN);
	return remote_start(&target, SYSTEM_TARGET, (const char *[]){region, NULL}, NULL) ||
	       client_open(&base, 4096);
}

static int stop(void **state)
{
	client_close(&base);
	return proc_finish(&target.proc);
}

static void work(struct client *c, int i)
{
	size_t at = (size_t)i * PER_CONN;

	memset(c->buf, i & 0xff, 1024);
	OK(client_write(c, 0, at, 1024, NULL));
	OK(client_flush(c, 0, at, 1024, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(client_echo(c, 64));
}

static void expect_written(int i)
{
	const char *line = proc_ask(&target.proc, "peek 0 %d 1", i * PER_CONN + 1023);
	char want[8];

	snprintf(want, sizeof(want), "%02x", i & 0xff);
	assert_non_null(line);
	assert_string_equal(line, want);
}

static void expect_small(const char *what, long before, long after, long more)
{
	double each = (double)(after - before) / CONNS;

	print_message("%s: %.1f KiB for each of %d idle connections\n", what, each, CONNS);
	/* In a sanitizer build the sanitizer's memory for each allocation would be included. */
	if (!SYSTEM_SANITIZED)
		assert_true(each <= IDLE_KIB_MAX + more);
}

static void five_hundred_connections_work_and_are_small(void **state)
{
	struct gauge before = target_gauge(), ours = gauge_self(), after;

	for (int i = 0; i < CONNS; i++) {
		conn[i] = base;
		OK(client_connect(&conn[i], target.port, NULL));
	}
	assert_int_equal(remote_wait_conns(&target, CONNS, 30000), 0);
	for (int i = 0; i < CONNS; i++)
		work(&conn[i], i);
	for (int i = 0; i < CONNS; i++)
		expect_written(i);
	after = target_gauge();
	expect_small("resident", before.rss_anon_kib, after.rss_anon_kib, REGION_KIB);
	expect_small("proportional set", before.pss_kib, after.pss_kib, REGION_KIB);
	expect_small("allocated", before.allocated_kib, after.allocated_kib, 0);
	expect_small("allocated here", ours.allocated_kib, gauge_self().allocated_kib, 0);
}

static void they_use_no_cpu_while_nothing_happens(void **state)
{
	long ours, theirs, waits;

	sleep(1);
	ours = gauge_cpu_ticks(getpid());
	theirs = gauge_cpu_ticks(target.proc.pid);
	waits = gauge_waits(target.proc.pid);
	sleep(IDLE_S);
	ours = gauge_cpu_ticks(getpid()) - ours;
	theirs = gauge_cpu_ticks(target.proc.pid) - theirs;
	waits = gauge_waits(target.proc.pid) - waits;
	print_message(
		"clock ticks in %d seconds: initiator %ld, target %ld; target woken %ld times\n",
		IDLE_S, ours, theirs, waits);
	assert_true(ours + theirs <= IDLE_TICKS_MAX * IDLE_S);
	/* In IDLE_S seconds every connection sends a message in each direction. In a sanitizer
	 * build a thread of the sanitizer wakes up, too. */
	if (!SYSTEM_SANITIZED)
		assert_true(waits < CONNS / 2);
}

static void all_of_them_can_go(void **state)
{
	work(&conn[CONNS - 1], CONNS - 1);
	for (int i = 0; i < CONNS; i++)
		client_drop(&conn[i]);
	assert_int_equal(remote_wait_conns(&target, 0, 30000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(five_hundred_connections_work_and_are_small),
		cmocka_unit_test(they_use_no_cpu_while_nothing_happens),
		cmocka_unit_test(all_of_them_can_go),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
