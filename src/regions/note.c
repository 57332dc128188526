/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "regions/server_impl.h"

#define NOTE_TEXT 1024

static void note_write(const struct server *s, enum log_level level, const char *text)
{
	if (s->opts->note)
		s->opts->note(s->opts->note_arg, level, text);
}

void server_note(const struct server *s, enum log_level level, const char *fmt, ...)
{
	char text[NOTE_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note_write(s, level, text);
}

void server_note_limited(const struct server *s, enum log_level level, struct log_limit *limit,
			 const char *fmt, ...)
{
	char text[NOTE_TEXT], all[NOTE_TEXT + 64];
	uint32_t left_out;
	va_list ap;

	if (!log_limit_admits(limit, clock_now_ns(), &left_out))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(all, sizeof(all), "%s (and %" PRIu32 " more like this before)", text, left_out);
	note_write(s, level, left_out ? all : text);
}
