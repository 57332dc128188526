/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h -- one line of JSON for what was measured. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdint.h>

#include "case.h"
#include "samples.h"

struct result {
	uint64_t count;         /* operations */
	uint64_t ns;            /* in which they completed */
	uint64_t bytes;         /* of payload; 0: not of interest */
	const char *durability; /* NULL: not of interest */
	uint64_t writebacks;    /* at the target */
	uint64_t local_writebacks;
	uint64_t disk_bytes; /* that reached the loop devices of the files; 0: they have none */
	double calm_p99_us;  /* of the same calls without what is measured beside them; 0: none */
};

/* samples may be NULL; they are sorted. */
void result_print(const struct bench_case *c, const struct result *r, struct samples *samples);

#endif
