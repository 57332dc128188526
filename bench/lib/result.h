/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h -- the result of a measurement, as one line of JSON. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdint.h>

#include "case.h"
#include "samples.h"

struct result {
	uint64_t count;         /* number of operations */
	uint64_t ns;            /* time in which they completed */
	uint64_t bytes;         /* bytes of payload; 0: not of interest */
	const char *durability; /* NULL: not of interest */
	uint64_t writebacks;    /* write-backs at the target */
	uint64_t local_writebacks;
	/* bytes that reached the loop devices of the files; 0: they are not on loop devices */
	uint64_t disk_bytes;
	/* p99 of the same calls without the disturbance that is measured; 0: not of interest */
	double calm_p99_us;
};

/* samples may be NULL; the call sorts them. */
void result_print(const struct bench_case *c, const struct result *r, struct samples *samples);

#endif
