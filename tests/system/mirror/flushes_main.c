/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flushes COUNT RANGES [BYTES]: maps the set, and flushes RANGES ranges of BYTES (64) bytes, COUNT
 * times. Prints the median and the 99th percentile of the time in nanoseconds. A script counts
 * other costs from outside of the process. flushes COUNT 0: makes a direct mapping, and stores to
 * COUNT extents without a flush.
 */
#include <librpmirror.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANGES_MAX = 64, RANGE = 64, DISTANCE = 4096, EXTENT = 2 << 20 };

static size_t flushes_bytes = RANGE, flushes_distance = DISTANCE;

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
		v[i] = (struct rpmirror_range){addr + (size_t)i * flushes_distance, flushes_bytes};
	for (unsigned i = 0; i < count; i++) {
		uint64_t begin = flushes_now(), ticket;

		for (unsigned j = 0; j < ranges; j++)
			memset(addr + (size_t)j * flushes_distance, (int)i, flushes_bytes);
		/* Make two calls, so that the cost of the first one can be counted alone. */
		flushes_must(rpmirror_flush_start(m, v, ranges, 0, &ticket), "flush");
		flushes_must(rpmirror_flush_wait(m, ticket, -1, NULL), "flush");
		took[i] = flushes_now() - begin;
	}
}

static void flushes_store(uint8_t *addr, size_t len, unsigned count)
{
	for (unsigned i = 0; i < count && (size_t)i * EXTENT < len; i++)
		addr[(size_t)i * EXTENT] = 1;
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
	if (argc > 3)
		flushes_bytes = strtoul(argv[3], NULL, 0);
	/* keep a gap between the ranges, so that they are not merged */
	if (flushes_bytes > flushes_distance)
		flushes_distance = flushes_bytes + DISTANCE;
	flushes_must(
		rpmirror_map("orders", NULL, ranges ? 0 : RPMIRROR_MAP_DIRECT, &m, &addr, &len),
		"map");
	if (ranges)
		flushes_run(m, addr, count, ranges, took);
	else
		flushes_store(addr, len, count);
	flushes_must(rpmirror_unmap(&m), "unmap");
	qsort(took, count, sizeof(*took), flushes_compare);
	if (count && ranges)
		printf("p50 %llu p99 %llu\n", (unsigned long long)took[count / 2],
		       (unsigned long long)took[count - 1 - count / 100]);
	free(took);
	return 0;
}
