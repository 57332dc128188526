/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note_limit.h -- how often the server notes one thing that any client can bring about: a few
 * lines in a period, and the first line of a later period says how many were left out. What
 * src/base/log_limit.h is to the libraries; for one thread.
 */
#ifndef TOOL_NOTE_LIMIT_H
#define TOOL_NOTE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define NOTE_LIMIT_LINES    5 /* in a period */
#define NOTE_LIMIT_PERIOD_S 10

/* Zeroed: nothing was noted yet. */
struct note_limit {
	uint64_t period, asked;
};

/* May a line be written now? Then *left_out is how many were not since the last one. */
bool note_limit_admits(struct note_limit *limit, uint64_t now_s, uint64_t *left_out);
/* cli_note(), as often as that permits. */
void note_limited(struct note_limit *limit, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
