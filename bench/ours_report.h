/* SPDX-License-Identifier: BSD-3-Clause */
/* ours_report.h -- the target's report after the work, and counters of connections. */
#ifndef BENCH_OURS_REPORT_H
#define BENCH_OURS_REPORT_H

#include <librpma.h>

struct ours_report {
	enum rpma_durability durability;
	uint64_t writebacks;
};

/* Returns 0 for a counter that does not exist. */
uint64_t ours_counter(const struct rpma_conn *conn, const char *name);

#endif
