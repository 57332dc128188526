/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_prefix.h"

#define LOG_TEXT_MAX 1024

enum log_level log_threshold = LOG_LVL_OFF;

/* The log has two receivers, each with its own level: a sink that the program sets, and standard
 * error. */
static log_sink *sink_now;
static enum log_level sink_level = LOG_LVL_OFF, stderr_level = LOG_LVL_OFF;

static const char *const level_names[] = {"fatal", "error", "warning", "notice", "info", "debug"};

static enum log_level log_level_wanted(void)
{
	enum log_level sink = __atomic_load_n(&sink_level, __ATOMIC_ACQUIRE);
	enum log_level err = __atomic_load_n(&stderr_level, __ATOMIC_ACQUIRE);

	return sink > err ? sink : err;
}

/*
 * Compute the threshold again if another thread changed a level meanwhile, because this thread may
 * have overwritten a newer threshold.
 */
static void log_update(void)
{
	enum log_level level;

	do {
		level = log_level_wanted();
		__atomic_store_n(&log_threshold, level, __ATOMIC_SEQ_CST);
	} while (level != log_level_wanted());
}

void log_set(log_sink *sink, enum log_level threshold)
{
	/*
	 * Store the sink before the threshold. Between the two stores a reader may combine the new
	 * sink with the old threshold, which is harmless. In the other order a reader could call a
	 * sink that this call replaces by NULL.
	 */
	__atomic_store_n(&sink_now, sink, __ATOMIC_RELEASE);
	__atomic_store_n(&sink_level, sink ? threshold : LOG_LVL_OFF, __ATOMIC_SEQ_CST);
	log_update();
}

/* Use one write(2), so that lines of several threads and processes do not mix. */
static void log_stderr_write(enum log_level level, const char *file, int line, const char *func,
			     const char *text)
{
	char out[LOG_TEXT_MAX + 128];
	const char *slash = strrchr(file, '/');
	int n = snprintf(out, sizeof(out), "%s%s %s:%d %s: %s\n", log_prefix(level),
			 level_names[level], slash ? slash + 1 : file, line, func, text);

	if (n >= (int)sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	if (write(STDERR_FILENO, out, (size_t)n) < 0)
		/* ignore a failure of standard error: there is no other place to report it */
		return;
}

void log_to_stderr(enum log_level threshold)
{
	__atomic_store_n(&stderr_level, threshold, __ATOMIC_SEQ_CST);
	log_update();
}

void log_set_from_env(const char *var)
{
	const char *want = getenv(var);

	if (!want || !*want)
		return;
	for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (strcasecmp(want, level_names[i]) == 0) {
			log_to_stderr((enum log_level)i);
			return;
		}
	/* A set variable requests a log, so a misspelled value must not turn the log off. */
	log_to_stderr(LOG_LVL_WARNING);
	LOG_WARNING("%s=%s: no such level; there are error, warning, notice, info and debug", var,
		    want);
}

static void log_write(enum log_level level, const char *file, int line, const char *func,
		      uint32_t left_out, const char *fmt, va_list ap)
{
	log_sink *sink = __atomic_load_n(&sink_now, __ATOMIC_ACQUIRE);
	char text[LOG_TEXT_MAX];
	int n;

	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (left_out && n >= 0 && n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, " (and %u more like this before)",
			 (unsigned)left_out);
	if (sink && level <= __atomic_load_n(&sink_level, __ATOMIC_RELAXED))
		sink(level, file, line, func, text);
	if (level <= __atomic_load_n(&stderr_level, __ATOMIC_RELAXED))
		log_stderr_write(level, file, line, func, text);
}

void log_emit(enum log_level level, const char *file, int line, const char *func, const char *fmt,
	      ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(level, file, line, func, 0, fmt, ap);
	va_end(ap);
}

void log_emit_limited(struct log_limit *limit, enum log_level level, const char *file, int line,
		      const char *func, const char *fmt, ...)
{
	int err = errno; /* for %m in fmt */
	uint32_t left_out;
	va_list ap;

	if (!log_limit_admits(limit, clock_now_ns(), &left_out))
		return;
	errno = err;
	va_start(ap, fmt);
	log_write(level, file, line, func, left_out, fmt, ap);
	va_end(ap);
}
