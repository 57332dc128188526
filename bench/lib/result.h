/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h -- prints the result of a measurement as one line of JSON. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdint.h>

#include "case.h"
#include "samples.h"

struct result {
	uint64_t count;         /* number of operations */
	uint64_t ns;            /* time in which the operations completed, in ns */
	uint64_t bytes;         /* payload bytes; 0: not reported */
	const char *durability; /* NULL: not reported */
	uint64_t writebacks;    /* write-backs at the target */
	uint64_t local_writebacks;
	/* disk_bytes: bytes that were written to the loop devices of the files; 0: the files are
	 * not on loop devices */
	uint64_t disk_bytes;
	/* calm_p99_us: p99 of the same calls without the disturbance that is measured; 0: not
	 * reported */
	double calm_p99_us;
};

/* Print the result. samples may be NULL; this call sorts them. */
void result_print(const struct bench_case *c, const struct result *r, struct samples *samples);

#endif
