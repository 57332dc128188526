/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_default.c -- writes messages in the format of the original librpma, on which existing scripts
 * rely:
 *
 *   Mon DD HH:MM:SS.uuuuuu [tid] *LEVEL* file.c: LLL: function: message
 *
 * This is the form on stderr. In syslog the time and the thread are left out.
 */
#include "rpma/log_default.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_MAX = 1024, ORIGIN_MAX = 256, TIME_MAX = 64 };

static const char *const TAG[] = {
	[RPMA_LOG_LEVEL_FATAL] = "*FATAL* ",   [RPMA_LOG_LEVEL_ERROR] = "*ERROR* ",
	[RPMA_LOG_LEVEL_WARNING] = "*WARN*  ", [RPMA_LOG_LEVEL_NOTICE] = "*NOTE*  ",
	[RPMA_LOG_LEVEL_INFO] = "*INFO*  ",    [RPMA_LOG_LEVEL_DEBUG] = "*DEBUG* ",
};

const char *const log_month[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
				   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static void log_format_time(char *buf, size_t len)
{
	struct timespec ts;
	struct tm tm;

	if (clock_gettime(CLOCK_REALTIME, &ts) || !localtime_r(&ts.tv_sec, &tm))
		snprintf(buf, len, "[time error] ");
	else
		snprintf(buf, len, "%s %02d %02d:%02d:%02d.%06ld [%ld] ", log_month[tm.tm_mon],
			 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000,
			 (long)gettid());
}

/* Write "file.c: LLL: function: ", or an empty text if the origin is unknown. */
static void log_format_origin(char *buf, size_t len, const char *file, int line, const char *func)
{
	const char *base;

	buf[0] = '\0';
	if (!file || !func)
		return;
	base = strrchr(file, '/');
	snprintf(buf, len, "%s: %3d: %s: ", base ? base + 1 : file, line, func);
}

void rpma_log_default_function(enum rpma_log_level level, const char *file_name, const int line_no,
			       const char *function_name, const char *message_format, ...)
{
	enum rpma_log_level aux = RPMA_LOG_DISABLED;
	char message[MESSAGE_MAX], origin[ORIGIN_MAX], when[TIME_MAX];
	char line[sizeof(message) + sizeof(origin) + sizeof("*FATAL* ")];
	va_list ap;

	if (level < RPMA_LOG_LEVEL_FATAL || level > RPMA_LOG_LEVEL_DEBUG)
		return;
	va_start(ap, message_format);
	vsnprintf(message, sizeof(message), message_format, ap);
	va_end(ap);
	log_format_origin(origin, sizeof(origin), file_name, line_no, function_name);
	snprintf(line, sizeof(line), "%s%s%s", TAG[level], origin, message);
	log_syslog(level, line);

	rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux);
	if (level > aux)
		return;
	log_format_time(when, sizeof(when));
	fprintf(stderr, "%s%s", when, line);
}
