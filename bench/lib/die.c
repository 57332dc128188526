/* SPDX-License-Identifier: BSD-3-Clause */
#include "die.h"

#include <err.h>
#include <stdarg.h>
#include <stdlib.h>

void die_errno(const char *what)
{
	err(EXIT_FAILURE, "%s", what);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verrx(EXIT_FAILURE, format, args);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verrx(EXIT_SKIPPED, format, args);
}
