/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/forward_log.h"

#include <librpma.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void forward_line(enum rpma_log_level level, const char *file, const int line,
			 const char *func, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	log_emit((enum log_level)level, file, line, func, "librpma: %s", text);
}

void forward_log(enum log_level level)
{
	if (level == LOG_LVL_NOTICE)
		level = LOG_LVL_WARNING;
	rpma_log_set_function(forward_line);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)level);
}
