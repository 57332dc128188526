/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h -- a bar on a terminal, nothing anywhere else.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *verb;
	uint64_t total;
	uint64_t begun_us, shown_us, ended_us;
	bool on_terminal, drawn;
};

void progress_begin(struct progress *p, const char *verb, uint64_t total);
void progress_show(struct progress *p, uint64_t done);
/* Remove the bar, so that a line can be printed, and stop the clock. May be called again. */
void progress_end(struct progress *p);
double progress_seconds(const struct progress *p);

#endif
