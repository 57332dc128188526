/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h -- shows a progress bar on a terminal, and nothing elsewhere. There is only one bar
 * at a time; lines that are printed meanwhile do not break the bar.
 *
 * Any thread may print lines; only one thread may use the bar.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	const char *verb;
	uint64_t total, done; /* total 0: unknown */
	uint64_t begun_us, shown_us, ended_us;
	bool is_time; /* total and done are times, so the bar shows no rate */
	bool on_terminal, drawn;
};

void progress_begin(struct progress *p, const char *verb, uint64_t total);
void progress_show(struct progress *p, uint64_t done);
/* Remove the bar and stop its clock. A second call is harmless. */
void progress_end(struct progress *p);
double progress_seconds(const struct progress *p);

/* Call these before and after printing another line: the first call removes the bar, the second
 * call draws it again. */
void progress_pause(void);
void progress_resume(void);

/* Write the line of the bar after that time, always with fewer than `columns` characters. */
void progress_line(const struct progress *p, double seconds, unsigned columns, char *line,
		   size_t size);

#endif
