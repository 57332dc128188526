/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history_file.h -- the operations of one process on the registers of a set, in a file, one on each
 * line.
 *
 *   B EPOCH TIME                  it may read and write from now on
 *   w REGISTER VALUE TIME         a write begins
 *   W REGISTER VALUE TIME         it was acknowledged
 *   R REGISTER VALUE BEGIN END    a read that was confirmed
 *
 * Times are of CLOCK_BOOTTIME in nanoseconds, the same in all processes of a machine. A line that
 * announces something is written before it happens, and a line that reports something after it has
 * happened. That also holds if the process is killed.
 */
#ifndef MIRROR_HISTORY_FILE_H
#define MIRROR_HISTORY_FILE_H

#include <stddef.h>

#include "lib/history.h"

struct history_log {
	struct history_op *ops;
	size_t count;
	struct history_epoch {
		uint64_t number, began;
	} * epochs;
	size_t epoch_count;
	size_t acknowledged, reads, unsure;
};

/* Add the file of one process to the log. 0, or -EINVAL and the line's number in *line. */
int history_file_load(struct history_log *log, const char *path, unsigned *line);
/*
 * Writes without an answer end when the next epoch begins. Call this once, after all files are
 * loaded.
 */
void history_log_settle(struct history_log *log);
void history_log_free(struct history_log *log);

#endif
