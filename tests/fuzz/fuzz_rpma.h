/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_rpma.h -- librpma's log under a fuzzer: messages are formatted but not written. */
#ifndef TEST_FUZZ_RPMA_H
#define TEST_FUZZ_RPMA_H

#include <stdarg.h>
#include <stdio.h>

#include "fuzz/fuzz.h"
#include "librpma.h"

static void fuzz_rpma_message(enum rpma_log_level level, const char *file, const int line,
			      const char *function, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	EXPECT(vsnprintf(text, sizeof(text), format, args) > 0);
	va_end(args);
}

static void fuzz_rpma_log(void)
{
	rpma_log_set_function(fuzz_rpma_message);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
}

#endif
