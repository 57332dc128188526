/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caller_main.c -- threads that repeatedly call the library.
 *
 * `mirror_caller LOG isolated|direct` maps the set. Each of its threads repeats one kind of call,
 * until the member `stop` of the log is set. Then the program unmaps. `mirror_caller LOG next`
 * waits for the role, records in the log the words that it reads, and serves until `stop` is set.
 * Meanwhile it reads the host's copy. Both programs print a line when they have begun, and another
 * line when they serve.
 */
#include <errno.h>
#include <fcntl.h>
#include <librpmirror.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "calls_log.h"

#define PAUSE_US      200
#define FENCED_ENOUGH 5 /* a thread ends after this many FENCED results */
#define TOUCH_TRIES   1000

static struct calls_log *caller_log;
static struct rpmirror *caller_set;
static uint8_t *caller_addr;
static __thread sigjmp_buf caller_barred;
static __thread volatile sig_atomic_t caller_may_fault;

static uint64_t *caller_word(unsigned call, unsigned word)
{
	return (uint64_t *)(void *)(caller_addr + calls_offset(caller_log, call, word));
}

/* ---- stores ---- */

/*
 * With RPMIRROR_ON_FENCED=protect neither loads nor stores are possible after the end of the lease.
 */
static void caller_on_fault(int sig)
{
	if (caller_may_fault)
		siglongjmp(caller_barred, 1);
	signal(sig, SIG_DFL);
}

/* Returns false if the mapping is protected, so that the store did not happen. */
static bool caller_store(unsigned call, unsigned word, uint64_t value)
{
	uint64_t *p = caller_word(call, word);

	__atomic_store_n(&caller_log->stored[call][word], value, __ATOMIC_RELEASE);
	if (sigsetjmp(caller_barred, 1)) {
		caller_may_fault = 0;
		return false;
	}
	caller_may_fault = 1;
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
	caller_may_fault = 0;
	return true;
}

static bool caller_load(uint64_t *value)
{
	if (sigsetjmp(caller_barred, 1)) {
		caller_may_fault = 0;
		return false;
	}
	caller_may_fault = 1;
	*value = __atomic_load_n(caller_word(CALL_FLUSH, 0), __ATOMIC_ACQUIRE);
	caller_may_fault = 0;
	return true;
}

static void caller_acknowledge(unsigned call, unsigned word, uint64_t value)
{
	__atomic_store_n(&caller_log->acked[call][word], value, __ATOMIC_RELEASE);
}

/* ---- results of calls ---- */

static int caller_count(unsigned call, int rc, uint64_t since_ns)
{
	struct calls_count *count = &caller_log->counts[call];
	uint64_t took = clock_now_ns() - since_ns;

	if (took > count->longest_ns)
		count->longest_ns = took;
	if (!rc) {
		count->ok++;
		count->late += count->fenced > 0;
	} else if (rc == RPMIRROR_E_FENCED) {
		count->fenced++;
	} else {
		count->other++;
		snprintf(count->why, sizeof(count->why), "%s", rpmirror_err_2str(rc));
	}
	return rc;
}

/* ---- one function for each kind of call: it makes the call with the number `value`, and returns
 * the result ---- */

static struct rpmirror_range caller_range(unsigned call, unsigned word)
{
	return (struct rpmirror_range){caller_word(call, word), sizeof(uint64_t)};
}

static int caller_flush_all(unsigned call, uint64_t value, bool verify)
{
	struct rpmirror_range v[CALLS_WORDS];
	int rc;

	for (unsigned i = 0; i < CALLS_WORDS; i++) {
		if (!caller_store(call, i, value))
			return RPMIRROR_E_LEASE;
		v[i] = caller_range(call, i);
	}
	rc = verify ? rpmirror_flush_verify(caller_set, v, CALLS_WORDS, NULL)
		    : rpmirror_flush(caller_set, v, CALLS_WORDS, 0, NULL);
	for (unsigned i = 0; !rc && i < CALLS_WORDS; i++)
		caller_acknowledge(call, i, value);
	return rc;
}

static int caller_flush(uint64_t value)
{
	return caller_flush_all(CALL_FLUSH, value, false);
}

/* Syncs of the whole mapping flush these ranges at the same time, with the same content. */
static int caller_verify(uint64_t value)
{
	return caller_flush_all(CALL_VERIFY, value, true);
}

/* The thread never waits for the ticket of the last word; unmapping waits for its flush. */
static int caller_ticket(uint64_t value)
{
	static uint64_t ticket;
	static unsigned word;
	struct rpmirror_range range;
	int rc = 0;

	if (ticket)
		rc = rpmirror_flush_wait(caller_set, ticket, -1, NULL);
	if (ticket && !rc)
		caller_acknowledge(CALL_TICKET, word, caller_log->begun[word]);
	ticket = 0;
	if (rc)
		return rc;
	word = (unsigned)(value % CALLS_WORDS);
	range = caller_range(CALL_TICKET, word);
	if (!caller_store(CALL_TICKET, word, value))
		return RPMIRROR_E_LEASE;
	rc = rpmirror_flush_start(caller_set, &range, 1, 0, &ticket);
	if (!rc)
		caller_log->begun[word] = value;
	return rc;
}

static int caller_sync(uint64_t value)
{
	unsigned word = (unsigned)(value % CALLS_WORDS);
	int rc = RPMIRROR_E_LEASE;

	if (caller_store(CALL_SYNC, word, value))
		rc = rpmirror_sync(caller_set, caller_word(CALL_SYNC, word), sizeof(uint64_t));
	if (!rc)
		caller_acknowledge(CALL_SYNC, word, value);
	return rc;
}

static int caller_sync_everything(unsigned call, uint64_t value)
{
	int rc;

	for (unsigned i = 0; i < CALLS_WORDS; i++)
		if (!caller_store(call, i, value))
			return RPMIRROR_E_LEASE;
	rc = rpmirror_sync(caller_set, NULL, 0);
	for (unsigned i = 0; !rc && i < CALLS_WORDS; i++)
		caller_acknowledge(call, i, value);
	return rc;
}

static int caller_sync_all(uint64_t value)
{
	return caller_sync_everything(CALL_SYNC_ALL, value);
}

static int caller_sync_also(uint64_t value)
{
	return caller_sync_everything(CALL_SYNC_ALSO, value);
}

/* A copy must never have the second word without the first. */
static int caller_store8(uint64_t value)
{
	struct rpmirror_range range = caller_range(CALL_STORE8, 0);
	int rc = RPMIRROR_E_LEASE;

	if (caller_store(CALL_STORE8, 0, value))
		rc = rpmirror_flush(caller_set, &range, 1, 0, NULL);
	if (rc)
		return rc;
	caller_acknowledge(CALL_STORE8, 0, value);
	__atomic_store_n(&caller_log->stored[CALL_STORE8][1], value, __ATOMIC_RELEASE);
	rc = rpmirror_store8(caller_set, caller_word(CALL_STORE8, 1), value);
	if (!rc)
		caller_acknowledge(CALL_STORE8, 1, value);
	return rc;
}

/* The kernel stores to the word. It is allowed to do so until some thread flushes the word. */
static int caller_touch(uint64_t value)
{
	static int ends[2] = {-1, -1};
	unsigned word = (unsigned)(value % CALLS_WORDS);
	struct rpmirror_range range = caller_range(CALL_TOUCH, word);
	ssize_t n = -1;
	int rc = ends[0] >= 0 || !pipe(ends) ? 0 : RPMIRROR_E_UNKNOWN;

	__atomic_store_n(&caller_log->stored[CALL_TOUCH][word], value, __ATOMIC_RELEASE);
	if (!rc && write(ends[1], &value, sizeof(value)) != sizeof(value))
		rc = RPMIRROR_E_UNKNOWN;
	for (unsigned tries = 0; !rc && n < 0 && tries < TOUCH_TRIES; tries++) {
		rc = rpmirror_touch(caller_set, range.addr, range.len);
		n = rc ? -1 : read(ends[0], caller_word(CALL_TOUCH, word), sizeof(value));
	}
	if (n < 0 && read(ends[0], &value, sizeof(value)) != sizeof(value))
		return RPMIRROR_E_UNKNOWN;
	if (!rc && n < 0) /* the read failed because the mapping is protected */
		return RPMIRROR_E_LEASE;
	rc = rc ? rc : rpmirror_flush(caller_set, &range, 1, 0, NULL);
	if (!rc)
		caller_acknowledge(CALL_TOUCH, word, value);
	return rc;
}

static int caller_confirm(uint64_t value)
{
	uint64_t since = clock_now_ns();
	int rc = caller_load(&value) ? rpmirror_confirm(caller_set) : RPMIRROR_E_LEASE;

	if (!rc)
		__atomic_store_n(&caller_log->confirmed_ns, since, __ATOMIC_RELEASE);
	return rc;
}

static int caller_look(uint64_t value)
{
	struct rpmirror_state state = {.size = sizeof(state)};
	struct rpmirror_event event = {.size = sizeof(event)};
	struct rpmirror_error error = {.size = sizeof(error)};
	sigjmp_buf env;
	int fd = -1, rc = rpmirror_get_state(caller_set, &state);

	if (!rc)
		rc = rpmirror_get_fd(caller_set, &fd);
	while (!rc && !rpmirror_next_event(caller_set, &event))
		;
	if (!rc && !rpmirror_get_error(caller_set, &error))
		rc = RPMIRROR_E_MEDIUM;
	if (!rc)
		rc = rpmirror_set_backtrack(caller_set, &env);
	if (!rc)
		rc = rpmirror_set_backtrack(caller_set, NULL);
	if (!*rpmirror_err_2str(rc) || !rpmirror_errormsg())
		rc = RPMIRROR_E_UNKNOWN;
	return rc || state.role == RPMIRROR_ROLE_PRIMARY ? rc : RPMIRROR_E_FENCED;
}

static int (*const caller_calls[CALL_THREADS])(uint64_t value) = {
	[CALL_FLUSH] = caller_flush,       [CALL_TICKET] = caller_ticket,
	[CALL_VERIFY] = caller_verify,     [CALL_SYNC] = caller_sync,
	[CALL_SYNC_ALL] = caller_sync_all, [CALL_SYNC_ALSO] = caller_sync_also,
	[CALL_STORE8] = caller_store8,     [CALL_TOUCH] = caller_touch,
	[CALL_CONFIRM] = caller_confirm,   [CALL_LOOK] = caller_look,
};

static void *caller_run(void *arg)
{
	unsigned call = (unsigned)(uintptr_t)arg;
	const struct calls_count *count = &caller_log->counts[call];

	for (uint64_t value = 1; !__atomic_load_n(&caller_log->stop, __ATOMIC_ACQUIRE); value++) {
		uint64_t since = clock_now_ns();

		if (count->fenced < FENCED_ENOUGH)
			caller_count(call, caller_calls[call](value), since);
		usleep(PAUSE_US);
	}
	return NULL;
}

/* ---- the whole mapping ---- */

static int caller_map(unsigned flags)
{
	void *addr = NULL;
	size_t len;
	int rc = rpmirror_map("orders", NULL, flags, &caller_set, &addr, &len);

	if (rc)
		printf("map: %s: %s\n", rpmirror_err_2str(rc), rpmirror_errormsg());
	caller_addr = addr;
	/* The map call waits as long as necessary. */
	return caller_count(CALL_MAP, rc, clock_now_ns());
}

static void caller_unmap(void)
{
	uint64_t since = clock_now_ns();

	caller_log->unmapped = caller_count(CALL_UNMAP, rpmirror_unmap(&caller_set), since);
}

static int caller_call_all(unsigned flags)
{
	struct sigaction on_fault = {.sa_handler = caller_on_fault};
	pthread_t threads[CALL_THREADS];

	sigaction(SIGSEGV, &on_fault, NULL);
	if (caller_map(flags))
		return 1;
	for (uintptr_t i = 0; i < CALL_THREADS; i++)
		if (pthread_create(&threads[i], NULL, caller_run, (void *)i))
			return 1;
	printf("mapped\n");
	for (unsigned i = 0; i < CALL_THREADS; i++)
		pthread_join(threads[i], NULL);
	caller_unmap();
	return 0;
}

/* Repeatedly read this host's copy, without the library. */
static void *caller_read(void *arg)
{
	const bool *serves = arg;

	while (!__atomic_load_n(serves, __ATOMIC_ACQUIRE)) {
		uint64_t since = clock_now_ns();
		struct rpmirror_state state = {.size = sizeof(state)};
		struct rpmirror *m;
		void *addr;
		size_t len;
		int rc = rpmirror_map("orders", NULL, RPMIRROR_MAP_READONLY | RPMIRROR_MAP_STALE_OK,
				      &m, &addr, &len);

		if (!rc) {
			rc = rpmirror_get_state(m, &state);
			rpmirror_unmap(&m);
		}
		caller_count(CALL_READ, rc, since);
		usleep(100 * PAUSE_US);
	}
	return NULL;
}

static int caller_follow(void)
{
	pthread_t reader;
	bool serves = false;
	int rc;

	if (pthread_create(&reader, NULL, caller_read, &serves))
		return 1;
	printf("waits\n");
	rc = caller_map(RPMIRROR_MAP_WAIT);
	__atomic_store_n(&serves, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	if (rc)
		return 1;
	__atomic_store_n(&caller_log->next_ns, clock_now_ns(), __ATOMIC_RELEASE);
	for (unsigned call = 0; call < CALL_WORDS; call++)
		for (unsigned i = 0; i < CALLS_WORDS; i++)
			caller_log->seen[call][i] = *caller_word(call, i);
	printf("serves\n");
	getchar();
	rc = rpmirror_unmap(&caller_set);
	if (rc)
		printf("unmap: %s: %s\n", rpmirror_err_2str(rc), rpmirror_errormsg());
	return rc != 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return 2;
	setlinebuf(stdout);
	caller_log = mmap(NULL, sizeof(*caller_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (caller_log == MAP_FAILED)
		return 1;
	if (!strcmp(argv[2], "next"))
		return caller_follow();
	return caller_call_all(RPMIRROR_MAP_WAIT |
			       (strcmp(argv[2], "direct") ? 0 : RPMIRROR_MAP_DIRECT));
}
