/* SPDX-License-Identifier: BSD-3-Clause */
#include <librpma.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "liblog.h"

static bool liblog_verbose;

static void liblog_line(enum rpma_log_level level, const char *file, const int line,
			const char *func, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	if (liblog_verbose)
		fprintf(stderr, "librpma: %s\n", text);
}

void liblog_init(bool verbose)
{
	liblog_verbose = verbose;
	rpma_log_set_function(liblog_line);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
			       verbose ? RPMA_LOG_LEVEL_NOTICE : RPMA_LOG_LEVEL_ERROR);
}
