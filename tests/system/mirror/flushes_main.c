/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flushes COUNT RANGES: map the set and flush so many ranges of 64 bytes so often. Prints the
 * median and the 99th percentile in nanoseconds; what each costs besides is counted from outside.
 */
#include <librpmirror.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANGES_MAX = 64, RANGE = 64, DISTANCE = 4096 };

static uint64_t flushes_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void flushes_must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "flushes: %s: %s: %s\n", what, rpmirror_err_2str(rc), rpmirror_errormsg());
	exit(1);
}

static int flushes_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void flushes_run(struct rpmirror *m, uint8_t *addr, unsigned count, unsigned ranges,
			uint64_t *took)
{
	struct rpmirror_range v[RANGES_MAX];

	for (unsigned i = 0; i < ranges; i++)
		v[i] = (struct rpmirror_range){addr + (size_t)i * DISTANCE, RANGE};
	for (unsigned i = 0; i < count; i++) {
		uint64_t begin = flushes_now();

		for (unsigned j = 0; j < ranges; j++)
			memset(addr + (size_t)j * DISTANCE, (int)i, RANGE);
		flushes_must(rpmirror_flush(m, v, ranges, 0, NULL), "flush");
		took[i] = flushes_now() - begin;
	}
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned ranges = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	uint64_t *took = calloc(count + 1, sizeof(*took));
	struct rpmirror *m;
	void *addr;
	size_t len;

	if (!took || ranges > RANGES_MAX)
		return 1;
	flushes_must(rpmirror_map("orders", NULL, 0, &m, &addr, &len), "map");
	flushes_run(m, addr, count, ranges, took);
	flushes_must(rpmirror_unmap(&m), "unmap");
	qsort(took, count, sizeof(*took), flushes_compare);
	if (count)
		printf("p50 %llu p99 %llu\n", (unsigned long long)took[count / 2],
		       (unsigned long long)took[count - 1 - count / 100]);
	free(took);
	return 0;
}
