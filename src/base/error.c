/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_kind kind, int cause, const char *fmt, ...)
{
	char text[ERROR_TEXT];
	va_list ap;

	if (!err)
		return kind;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err->kind = kind;
	err->cause = cause;
	memcpy(err->text, text, sizeof(text));
	return kind;
}
