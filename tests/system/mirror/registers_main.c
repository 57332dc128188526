/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror_registers SET FILE CLIENT SEED [REGISTERS [THREADS [PAUSE_US [STRIDE]]]] -- read and write
 * registers of 8 bytes of a mirrored file, and append each operation to FILE (history_file.h),
 * until standard input ends or the role is lost. CLIENT makes the values of this process unique.
 * Each thread pauses for PAUSE_US between two operations; two registers are STRIDE words apart.
 * With MIRROR_DIRECT in the environment the mapping is direct.
 *
 * Exit status 0: the input ended; 3: fenced, or too few copies; 1: any other failure.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <librpmirror.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/prng.h"

#define REGISTERS_MAX 4096
#define STRIDE        512 /* words between two registers: each register is on its own page */
#define THREADS_MAX   16

static struct rpmirror *mirror;
static uint64_t *words;
static size_t stride = STRIDE;
static unsigned registers = 16, pause_us;
static uint64_t client, seed;
static int history;
static atomic_bool is_over, is_lost;
/* A lock is held from the store to the acknowledgement, so that no thread reads a value that a
 * crash can undo. */
static pthread_mutex_t locks[REGISTERS_MAX];

static void note(const char *line, int len)
{
	if (write(history, line, (size_t)len) != len)
		err(1, "write the history");
}

#define NOTE(...)                                                                                  \
	do {                                                                                       \
		char line_[160];                                                                   \
		note(line_, snprintf(line_, sizeof(line_), __VA_ARGS__));                          \
	} while (0)

/*
 * Returns true if the operation was neither acknowledged nor undone. The caller repeats it until it
 * is acknowledged or another process is primary.
 */
static bool must_repeat(int ret)
{
	if (ret == RPMIRROR_E_QUORUM || ret == RPMIRROR_E_COPIES)
		return !is_over;
	fprintf(stderr, "client %" PRIu64 ": %s\n", client, rpmirror_errormsg());
	is_lost = ret == RPMIRROR_E_FENCED;
	is_over = true;
	if (!is_lost)
		exit(1);
	return false;
}

static bool flush_some(struct prng *p, uint64_t *word)
{
	struct rpmirror_range ranges[3] = {{word, 8}};
	unsigned n = 1 + (unsigned)prng_below(p, 3);

	/* Flush neighbouring registers together with this one, so that flushes of several threads
	 * overlap. */
	for (unsigned i = 1; i < n; i++)
		ranges[i] = (struct rpmirror_range){words + prng_below(p, registers) * stride +
							    prng_below(p, 8),
						    8 * (1 + prng_below(p, 64))};
	for (int ret; (ret = rpmirror_flush(mirror, ranges, n, 0, NULL));)
		if (!must_repeat(ret))
			return false;
	return true;
}

static bool store_word(uint64_t *word, uint64_t value)
{
	for (int ret; (ret = rpmirror_store8(mirror, word, value));)
		if (!must_repeat(ret))
			return false;
	return true;
}

static void write_register(struct prng *p, unsigned reg, uint64_t value)
{
	uint64_t *word = words + reg * stride;
	bool is_done;

	if (pthread_mutex_trylock(&locks[reg]))
		return;
	NOTE("w %u %" PRIu64 " %" PRIu64 "\n", reg, value, clock_boot_ns());
	if (prng_chance(p, 50)) {
		is_done = store_word(word, value);
	} else {
		__atomic_store_n(word, value, __ATOMIC_RELAXED);
		is_done = flush_some(p, word);
	}
	if (is_done) {
		NOTE("W %u %" PRIu64 " %" PRIu64 "\n", reg, value, clock_boot_ns());
		pthread_mutex_unlock(&locks[reg]);
	} /* otherwise the register stays locked, because its value can still be undone */
}

static void read_register(unsigned reg)
{
	uint64_t begin, value;

	if (pthread_mutex_trylock(&locks[reg]))
		return;
	begin = clock_boot_ns();
	value = __atomic_load_n(words + reg * stride, __ATOMIC_RELAXED);
	if (!rpmirror_confirm(mirror))
		NOTE("R %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", reg, value, begin,
		     clock_boot_ns());
	pthread_mutex_unlock(&locks[reg]);
}

static void *work(void *arg)
{
	uint64_t thread = (uint64_t)(uintptr_t)arg;
	struct prng p = {seed ^ client << 32 ^ thread << 16};

	for (uint64_t i = 1; !is_over; i++) {
		unsigned reg = (unsigned)prng_below(&p, registers);

		if (prng_chance(&p, 50))
			write_register(&p, reg, client << 40 | thread << 32 | i);
		else
			read_register(reg);
		if (pause_us)
			usleep(pause_us);
	}
	return NULL;
}

/* The values that an earlier primary wrote are part of the history, too. */
static void begin(void)
{
	struct rpmirror_state state = {.size = sizeof(state)};

	if (rpmirror_get_state(mirror, &state))
		errx(1, "state: %s", rpmirror_errormsg());
	NOTE("B %" PRIu64 " %" PRIu64 "\n", state.epoch, clock_boot_ns());
	for (unsigned reg = 0; reg < registers; reg++)
		read_register(reg);
	puts("serving");
	fflush(stdout);
}

static void wait_for_the_end(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	while (!is_over)
		if (poll(&in, 1, 50) == 1 && read(STDIN_FILENO, &c, 1) <= 0)
			is_over = true;
}

int main(int argc, char **argv)
{
	unsigned flags = RPMIRROR_MAP_WAIT;
	pthread_t threads[THREADS_MAX];
	unsigned count = argc > 6 ? (unsigned)atoi(argv[6]) : 2;
	size_t size;
	void *addr;
	int rc;

	if (argc < 5 || count > THREADS_MAX)
		errx(2,
		     "usage: mirror_registers SET FILE CLIENT SEED [REGISTERS [THREADS [PAUSE_US "
		     "[STRIDE]]]]");
	client = strtoull(argv[3], NULL, 0);
	seed = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		registers = (unsigned)atoi(argv[5]);
	if (argc > 7)
		pause_us = (unsigned)atoi(argv[7]);
	if (argc > 8)
		stride = (size_t)atoi(argv[8]);
	history = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (history < 0)
		err(1, "%s", argv[2]);
	if (getenv("MIRROR_DIRECT"))
		flags |= RPMIRROR_MAP_DIRECT;
	rc = rpmirror_map(argv[1], NULL, flags, &mirror, &addr, &size);
	if (rc)
		errx(rc == RPMIRROR_E_FENCED ? 3 : 1, "map: %s", rpmirror_errormsg());
	words = addr;
	if (registers > REGISTERS_MAX || (registers * stride + 72) * 8 > size)
		errx(2, "%u registers are too many for %zu bytes", registers, size);
	for (unsigned i = 0; i < registers; i++)
		pthread_mutex_init(&locks[i], NULL);
	begin();
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			errx(1, "cannot start a thread");
	wait_for_the_end();
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (is_lost)
		return 3;
	rc = rpmirror_unmap(&mirror);
	if (rc && rc != RPMIRROR_E_FENCED)
		errx(1, "unmap: %s", rpmirror_errormsg());
	return rc ? 3 : 0; /* the process can still be fenced at the last moment */
}
