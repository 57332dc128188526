/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror_judge FILE... -- checks whether the combined history of these processes is linearizable,
 * and prints one line. Exit status 0: linearizable; 1: not linearizable; 2: a file cannot be read,
 * or the files have no operations.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "history_file.h"

static void print_op(const struct history_op *op)
{
	printf("  register %" PRIu64 " value %" PRIu64 ": %s%s, %" PRIu64 " to %" PRIu64 "\n",
	       op->reg, op->value, op->is_unsure ? "unacknowledged " : "",
	       op->is_write ? "write" : "read", op->begin, op->end);
}

int main(int argc, char **argv)
{
	struct history_log log = {0};
	struct history_verdict found;

	for (int i = 1; i < argc; i++) {
		unsigned line;
		int rc = history_file_load(&log, argv[i], &line);

		if (rc)
			errx(2, "%s:%u: %s", argv[i], line, strerror(-rc));
	}
	if (!log.acknowledged || !log.reads)
		errx(2, "%zu acknowledged writes and %zu reads say nothing", log.acknowledged,
		     log.reads);
	history_log_settle(&log);
	found = history_check(log.ops, log.count);
	printf("%s: %zu acknowledged writes, %zu without an answer, %zu reads, %zu epochs\n",
	       history_fault_2str(found.fault), log.acknowledged, log.unsure, log.reads,
	       log.epoch_count);
	if (found.fault) {
		print_op(&found.a);
		print_op(&found.b);
	}
	history_log_free(&log);
	return found.fault != HISTORY_IS_FINE;
}
