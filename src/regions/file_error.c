/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the results of librpmafile's functions, and keeps the text of each thread's last
 * failure. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "regions/file_impl.h"

static __thread char file_error_text[ERROR_TEXT];

int file_error(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(file_error_text, sizeof(file_error_text), fmt, ap);
	va_end(ap);
	return code;
}

static int file_error_refused(const struct error *err)
{
	switch (err->cause) {
	case HELLO_FILE_REMOVED:
	case HELLO_FILE_REPLACED:
	case HELLO_FILE_TRUNCATED:
		return RPMA_FILE_E_GONE;
	case HELLO_TAKEN:
		return RPMA_FILE_E_TAKEN;
	default:
		return RPMA_FILE_E_REFUSED;
	}
}

static int file_error_local(const struct error *err)
{
	if (err->cause == ENOMEM || err->cause == RPMA_E_NOMEM)
		return RPMA_E_NOMEM;
	if (err->cause == EMEDIUMTYPE || err->cause == RPMA_E_NOSUPP)
		return RPMA_E_NOSUPP;
	return RPMA_E_PROVIDER;
}

int file_error_code(const struct error *err)
{
	switch (err->kind) {
	case ERROR_ARGUMENT:
		return RPMA_E_INVAL;
	case ERROR_LOCAL:
		return file_error_local(err);
	case ERROR_UNREACHED:
		return RPMA_FILE_E_UNREACHED;
	case ERROR_REFUSED:
		return file_error_refused(err);
	default:
		return err->cause == EFAULT ? RPMA_FILE_E_GONE : RPMA_FILE_E_LOST;
	}
}

int file_error_of(const struct error *err)
{
	return file_error(file_error_code(err), "%s", err->text);
}

int file_error_invalid(const char *function, const char *what)
{
	return file_error(RPMA_E_INVAL, "%s: %s; see %s(3)", function, what, function);
}

const char *rpma_file_errormsg(void)
{
	return file_error_text;
}

const char *rpma_file_err_2str(int ret)
{
	switch (ret) {
	case RPMA_FILE_E_UNREACHED:
		return "No server answers";
	case RPMA_FILE_E_REFUSED:
		return "The server refuses";
	case RPMA_FILE_E_LOST:
		return "The connection has ended";
	case RPMA_FILE_E_MEDIUM:
		return "The server could not write back";
	case RPMA_FILE_E_GONE:
		return "The region's file is gone";
	case RPMA_FILE_E_DIFFERS:
		return "The medium holds something else";
	case RPMA_FILE_E_TAKEN:
		return "Another writer has taken over";
	default:
		return ret == 0 ? "Success" : rpma_err_2str(ret);
	}
}
