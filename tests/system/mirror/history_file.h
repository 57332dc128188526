/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history_file.h -- a file with the operations of one process on the registers of a set, one a
 * line.
 *
 *   B EPOCH TIME                  from now on the process is allowed to read and write
 *   w REGISTER VALUE TIME         a write begins
 *   W REGISTER VALUE TIME         the write was acknowledged
 *   R REGISTER VALUE BEGIN END    a read was confirmed
 *
 * A time is CLOCK_BOOTTIME in nanoseconds, which all processes of a machine share. The process
 * writes B and w before the event, and W and R after it. So the file is correct even if the process
 * is killed.
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

/* Add the file of one process to the log. Returns 0, or -EINVAL with the line's number in *line. */
int history_file_load(struct history_log *log, const char *path, unsigned *line);
/*
 * End each unanswered write at the begin of the next epoch. Call this once, after all files are
 * loaded.
 */
void history_log_settle(struct history_log *log);
void history_log_free(struct history_log *log);

#endif
