/* SPDX-License-Identifier: BSD-3-Clause */
/* ours_report.h -- the report that the target sends after the work, and counters of connections. */
#ifndef BENCH_OURS_REPORT_H
#define BENCH_OURS_REPORT_H

#include <librpma.h>

struct ours_report {
	enum rpma_durability durability;
	uint64_t writebacks;
};

/* Returns the counter's value, or 0 if there is no such counter. */
uint64_t ours_counter(const struct rpma_conn *conn, const char *name);

#endif
