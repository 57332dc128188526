/* SPDX-License-Identifier: BSD-3-Clause */
#include "note_limit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cli.h"

bool note_limit_admits(struct note_limit *limit, uint64_t now_s, uint64_t *left_out)
{
	uint64_t period = now_s / NOTE_LIMIT_PERIOD_S + 1; /* from 1 on: 0 is the unused one */

	*left_out = 0;
	if (limit->period != period) {
		if (limit->asked > NOTE_LIMIT_LINES)
			*left_out = limit->asked - NOTE_LIMIT_LINES;
		*limit = (struct note_limit){.period = period};
	}
	return ++limit->asked <= NOTE_LIMIT_LINES;
}

void note_limited(struct note_limit *limit, const char *fmt, ...)
{
	char text[1024];
	struct timespec now;
	uint64_t left_out;
	va_list ap;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!note_limit_admits(limit, (uint64_t)now.tv_sec, &left_out))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (left_out)
		cli_note("%s (and %" PRIu64 " more like this before)", text, left_out);
	else
		cli_note("%s", text);
}
