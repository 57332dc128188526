/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h -- logs one line per state change or first error to a sink, to standard error, or to both.
 *
 * Each shared library has its own copy of the log, with its own sink and its own two levels.
 * Nothing is written before a sink or a level for standard error is set. A disabled level costs one
 * load and one branch.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/log_limit.h"

enum log_level {
	LOG_LVL_OFF = -1,
	LOG_LVL_FATAL,
	LOG_LVL_ERROR,
	LOG_LVL_WARNING,
	LOG_LVL_NOTICE,
	LOG_LVL_INFO,
	LOG_LVL_DEBUG,
};

/* A sink receives the finished text, without a newline at the end. A sink must be thread-safe. */
typedef void log_sink(enum log_level level, const char *file, int line, const char *func,
		      const char *text);

/* the higher of the sink's level and the level for standard error */
extern enum log_level log_threshold;

/* Set the sink and its level, or the level for standard error. Thread-safe. NULL: no sink. */
void log_set(log_sink *sink, enum log_level threshold);
void log_to_stderr(enum log_level threshold);
/*
 * Read the level for standard error from environment variable `var` ("debug", "info", ...). An
 * unknown name counts as "warning", and a line reports it. Unset or empty: log nothing.
 */
void log_set_from_env(const char *var);
void log_emit(enum log_level level, const char *file, int line, const char *func, const char *fmt,
	      ...) __attribute__((format(printf, 5, 6)));

/*
 * Does the same as log_emit(), but only a limited number of times in a period. The first line of a
 * later period ends with the number of lines left out.
 */
void log_emit_limited(struct log_limit *limit, enum log_level level, const char *file, int line,
		      const char *func, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

#define LOG_AT(level, ...)                                                                         \
	do {                                                                                       \
		if (__builtin_expect((level) <= __atomic_load_n(&log_threshold, __ATOMIC_RELAXED), \
				     0))                                                           \
			log_emit((level), __FILE__, __LINE__, __func__, __VA_ARGS__);              \
	} while (0)
#define LOG_ERROR(...)   LOG_AT(LOG_LVL_ERROR, __VA_ARGS__)
#define LOG_WARNING(...) LOG_AT(LOG_LVL_WARNING, __VA_ARGS__)
#define LOG_NOTICE(...)  LOG_AT(LOG_LVL_NOTICE, __VA_ARGS__)
#define LOG_INFO(...)    LOG_AT(LOG_LVL_INFO, __VA_ARGS__)
#define LOG_DEBUG(...)   LOG_AT(LOG_LVL_DEBUG, __VA_ARGS__)

/*
 * Used for events that any peer, accepted or not, can cause without limit. Each call in the source
 * has its own limit (log_limit.h).
 */
#define LOG_LIMITED_AT(level, ...)                                                                 \
	do {                                                                                       \
		static struct log_limit log_limit_;                                                \
		if (__builtin_expect((level) <= __atomic_load_n(&log_threshold, __ATOMIC_RELAXED), \
				     0))                                                           \
			log_emit_limited(&log_limit_, (level), __FILE__, __LINE__, __func__,       \
					 __VA_ARGS__);                                             \
	} while (0)
#define LOG_ERROR_LIMITED(...)   LOG_LIMITED_AT(LOG_LVL_ERROR, __VA_ARGS__)
#define LOG_WARNING_LIMITED(...) LOG_LIMITED_AT(LOG_LVL_WARNING, __VA_ARGS__)
#define LOG_NOTICE_LIMITED(...)  LOG_LIMITED_AT(LOG_LVL_NOTICE, __VA_ARGS__)

#endif
