/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_main.c -- `mirror_calls [COUNT [AT_ONCE [EVENT]]]`: a process makes all calls of the
 * library at the same time, while an event takes its role or changes the set. Each event happens
 * COUNT times, in isolated and in direct mappings; without COUNT it happens once. Afterwards every
 * acknowledged word must be in every copy and at the next primary, and each call must have
 * returned. The program prints a table of the calls' results.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps.h"
#include "calls_events.h"
#include "calls_log.h"
#include "clients.h"
#include "lib/medium.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define HOSTS       3
#define ALL         7
#define BUSY_US     100000 /* the calls continue for this time after the event */
#define PATIENCE_MS 60000  /* longer than any limit of the set */
#define ROUND_S     180
#define LIMIT_NS    30000000000ull /* limit of a call, longer than the limits of the set */
/* long enough that no member is excluded because the machine is slow */
#define SILENCE_MS 20000

static struct proc caller, next;
static struct calls_log *now_log;

struct round {
	unsigned event, number;
	bool is_direct;
};

static struct calls_count (*sums)[2][CALL_COUNT]; /* indexed by event and mode */

/* ---- what must be true ---- */

static const char *const call_names[CALL_COUNT] = {
	"flush", "ticket",  "verify", "sync", "sync-all", "sync-also", "store8",
	"touch", "confirm", "look",   "map",  "unmap",    "read"};

/* Returns the lowest number that the copies are allowed to have: a call has acknowledged it. If the
 * event was an unmap that succeeded, the unmap has acknowledged further numbers. */
static uint64_t least(const struct round *r, unsigned call, unsigned word)
{
	const struct calls_log *log = now_log;

	if (!events[r->event].is_unmap || log->unmapped)
		return log->acked[call][word];
	if (r->is_direct)
		return log->stored[call][word];
	if (call == CALL_TICKET && log->begun[word] > log->acked[call][word])
		return log->begun[word];
	return log->acked[call][word];
}

static void check_word(const struct round *r, const char *where, unsigned call, unsigned word,
		       uint64_t value)
{
	uint64_t at_least = least(r, call, word), at_most = now_log->stored[call][word];

	if (value < at_least || value > at_most)
		fail_msg("%s: word %u of %s is %llu, not %llu to %llu", where, word,
			 call_names[call], (unsigned long long)value, (unsigned long long)at_least,
			 (unsigned long long)at_most);
}

/* All copies must have the words that the next primary read, and must have no dirty pages that
 * contain these words. */
static void check_copy(const struct round *r, unsigned host)
{
	char where[] = {'c', 'o', 'p', 'y', ' ', (char)('a' + host), '\0'};
	int fd = open(hosts.hosts[host].data, O_RDWR | O_CLOEXEC);
	uint64_t value;

	assert_true(fd >= 0);
	for (unsigned call = 0; call < CALL_WORDS; call++)
		for (unsigned i = 0; i < CALLS_WORDS; i++) {
			off_t at = (off_t)calls_offset(now_log, call, i);

			assert_int_equal(pread(fd, &value, sizeof(value), at), sizeof(value));
			check_word(r, where, call, i, value);
			if (value != now_log->seen[call][i])
				fail_msg("%s differs in word %u of %s", where, i, call_names[call]);
			if (medium_dirty(fd, at, sizeof(value)))
				fail_msg("%s: word %u of %s is not at the medium", where, i,
					 call_names[call]);
		}
	close(fd);
}

static void check_next(const struct round *r)
{
	const struct calls_log *log = now_log;

	for (unsigned call = 0; call < CALL_WORDS; call++)
		for (unsigned i = 0; i < CALLS_WORDS; i++)
			check_word(r, "the next primary", call, i, log->seen[call][i]);
	if (log->seen[CALL_STORE8][1] > log->seen[CALL_STORE8][0])
		fail_msg("a word of store8 is without what was flushed before");
	if (!events[r->event].ends_by_word && log->confirmed_ns > log->next_ns)
		fail_msg("a read was confirmed beside the next primary");
}

static void check_calls(void)
{
	for (unsigned call = 0; call < CALL_COUNT; call++) {
		const struct calls_count *count = &now_log->counts[call];

		if (count->late)
			fail_msg("%s: 0 after RPMIRROR_E_FENCED", call_names[call]);
		if (count->longest_ns > LIMIT_NS)
			fail_msg("%s took %.1f s", call_names[call],
				 (double)count->longest_ns / 1e9);
	}
}

/* ---- a round ---- */

static void make_log(char *path, size_t size, uint64_t stride)
{
	int fd;

	snprintf(path, size, "%s/calls", hosts.folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, sizeof(*now_log)), 0);
	now_log = mmap(NULL, sizeof(*now_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(now_log, MAP_FAILED);
	now_log->stride = stride;
	close(fd);
}

static void start(struct proc *p, unsigned host, const char *mode, const char *guard,
		  const char *line)
{
	char path[300], socket[400];
	const char *argv[] = {SYSTEM_MIRROR_CALLER, path, mode, NULL};
	const char *envs[] = {socket, guard, NULL};

	snprintf(path, sizeof(path), "%s/calls", hosts.folder);
	snprintf(socket, sizeof(socket), "RPMIRROR_SOCKET=%s", hosts.hosts[host].socket);
	assert_int_equal(proc_start(p, argv, envs), 0);
	app_check(line, proc_line(p, PATIENCE_MS));
}

/* Wait until each kind of call that acknowledges has acknowledged a number. */
static void wait_until_busy(void)
{
	for (unsigned call = 0; call < CALL_WORDS; call++) {
		const uint64_t *ok = &now_log->counts[call].ok;

		for (int waited = 0; !__atomic_load_n(ok, __ATOMIC_RELAXED); waited++) {
			assert_in_range(waited, 0, PATIENCE_MS);
			usleep(1000);
		}
	}
}

static void end_caller(void)
{
	int status;

	__atomic_store_n(&now_log->stop, true, __ATOMIC_RELEASE);
	status = proc_wait(&caller, PATIENCE_MS);
	if (status == -ETIMEDOUT)
		fail_msg("a call does not return");
	if (status)
		fail_msg("the process ends with status %#x", (unsigned)status);
}

static void end_next(void)
{
	app_check("serves", proc_line(&next, PATIENCE_MS));
	hosts_wait_insync(&hosts, ALL);
	assert_int_equal(proc_finish(&next), 0);
}

static void add_counts(const struct round *r)
{
	for (unsigned call = 0; call < CALL_COUNT; call++) {
		const struct calls_count *count = &now_log->counts[call];
		struct calls_count *sum = &sums[r->event][r->is_direct][call];

		__atomic_add_fetch(&sum->ok, count->ok, __ATOMIC_RELAXED);
		__atomic_add_fetch(&sum->fenced, count->fenced, __ATOMIC_RELAXED);
		__atomic_add_fetch(&sum->other, count->other, __ATOMIC_RELAXED);
		if (count->other)
			memcpy(sum->why, count->why, sizeof(sum->why));
		if (count->longest_ns > sum->longest_ns)
			sum->longest_ns = count->longest_ns;
	}
}

static void acknowledged_words_are_everywhere(void **state)
{
	const struct round *r = *state;
	uint64_t stride = r->number % 3 == 2 ? CALLS_WIDE : CALLS_CLOSE;
	const struct hosts_opts opts = {.count = HOSTS,
					.size = CALLS_WORDS * stride,
					.lease_ms = 1500,
					.peer_timeout_ms = SILENCE_MS,
					.replica_timeout_ms = SILENCE_MS,
					.hot_slots = CLIENTS_SLOTS,
					.automatic = true};
	char path[300];

	alarm(ROUND_S);
	hosts_start(&hosts, &opts);
	make_log(path, sizeof(path), stride);
	start(&caller, 0, r->is_direct ? "direct" : "isolated",
	      r->number / 2 % 2 ? "RPMIRROR_ON_FENCED=protect" : "RPMIRROR_ON_FENCED=error",
	      "mapped");
	start(&next, 1, "next", "RPMIRROR_ON_FENCED=error", "waits");
	hosts_wait_insync(&hosts, ALL);
	wait_until_busy();
	events[r->event].strike(&hosts, r->number);
	usleep(events[r->event].is_unmap ? 0 : BUSY_US);
	end_caller();
	end_next();
	check_calls();
	check_next(r);
	for (unsigned host = 0; host < HOSTS; host++)
		check_copy(r, host);
	add_counts(r);
	hosts_stop(&hosts);
}

static int stop(void **state)
{
	if (caller.pid)
		proc_kill(&caller);
	if (next.pid)
		proc_kill(&next);
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts.hosts[i].daemon.pid)
			host_kill(&hosts, i);
	return 0;
}

/* ---- all rounds ---- */

static void print_counts(const struct calls_count *counts)
{
	for (unsigned call = 0; call < CALL_COUNT; call++) {
		const struct calls_count *count = &counts[call];

		printf("    %-9s %8llu ok %6llu fenced %6llu other", call_names[call],
		       (unsigned long long)count->ok, (unsigned long long)count->fenced,
		       (unsigned long long)count->other);
		if (count->other)
			printf(" (last: %s)", count->why);
		printf(", longest %.3f s\n", (double)count->longest_ns / 1e9);
	}
}

static void print_table(void)
{
	for (unsigned event = 0; event < EVENTS; event++)
		for (unsigned mode = 0; mode < 2; mode++) {
			if (!sums[event][mode][CALL_MAP].ok)
				continue;
			printf("%s, %s:\n", events[event].name, mode ? "direct" : "isolated");
			print_counts(sums[event][mode]);
		}
}

/* Add the rounds of this event. Without a count each event occurs once, but "demote" occurs in both
 * modes. */
static void add_rounds(struct round *rounds, size_t *n, unsigned event, int count)
{
	for (unsigned mode = 0; mode < 2; mode++)
		for (int i = 0; i < count || (i == 0 && count < 0); i++)
			if (count >= 0 || !event || event % 2 == mode)
				rounds[(*n)++] = (struct round){event, (unsigned)i, mode};
}

static int run_all(struct round *rounds, size_t n, unsigned at_once)
{
	struct CMUnitTest *tests = calloc(n, sizeof(*tests));
	char(*names)[48] = calloc(n, sizeof(*names));
	int failed;

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s %u %s", events[rounds[i].event].name,
			 rounds[i].number, rounds[i].is_direct ? "direct" : "isolated");
		tests[i] = (struct CMUnitTest){.name = names[i],
					       .test_func = acknowledged_words_are_everywhere,
					       .teardown_func = stop,
					       .initial_state = &rounds[i]};
	}
	failed = cases_run_many(tests, n, at_once, NULL);
	print_table();
	printf("%d of %zu rounds failed\n", failed, n);
	free(tests);
	free(names);
	return failed;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : -1, failed;
	unsigned at_once = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	size_t n = 0, most = 2 * EVENTS * (size_t)(count > 0 ? count : 1);
	struct round *rounds = calloc(most, sizeof(*rounds));

	sums = mmap(NULL, EVENTS * sizeof(*sums), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!rounds || sums == MAP_FAILED || !count || !at_once || at_once > CASES_AT_ONCE_MAX)
		return 2;
	for (unsigned i = 0; i < EVENTS; i++)
		if (argc < 4 || !strcmp(argv[3], events[i].name))
			add_rounds(rounds, &n, i, count);
	failed = n ? run_all(rounds, n, at_once) : 0;
	free(rounds);
	return n ? failed != 0 : 2;
}
