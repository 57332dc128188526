/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/errmsg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "librpmirror.h"

static __thread char errmsg_text[ERRMSG_TEXT];

int errmsg_fail(int code, const char *fmt, ...)
{
	char text[ERRMSG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(errmsg_text, text, strlen(text) + 1);
	return code;
}

const char *rpmirror_errormsg(void)
{
	return errmsg_text;
}

const char *rpmirror_err_2str(int ret)
{
	switch (ret) {
	case 0:
		return "Success";
	case RPMIRROR_E_NOSUPP:
		return "Not supported for this set or mapping";
	case RPMIRROR_E_PROVIDER:
		return "This host's device, file or system failed";
	case RPMIRROR_E_NOMEM:
		return "Out of memory";
	case RPMIRROR_E_INVAL:
		return "Invalid argument";
	case RPMIRROR_E_AGAIN:
		return "Not finished yet";
	case RPMIRROR_E_NO_EVENT:
		return "No event or error is pending";
	case RPMIRROR_E_DAEMON:
		return "This host's rpmirrord cannot be reached";
	case RPMIRROR_E_QUORUM:
		return "The set's register cannot be reached";
	case RPMIRROR_E_COPIES:
		return "Too few copies";
	case RPMIRROR_E_BUSY:
		return "Another process maps the set";
	case RPMIRROR_E_FENCED:
		return "This mapping is no longer the primary";
	case RPMIRROR_E_MEDIUM:
		return "The local copy has failed";
	case RPMIRROR_E_VERIFY:
		return "A copy differs from the flushed bytes";
	case RPMIRROR_E_NOTINSYNC:
		return "This host's copy lacks acknowledged data";
	case RPMIRROR_E_SPLIT:
		return "Copies were written independently of each other";
	case RPMIRROR_E_LEASE:
		return "The lease is over";
	default:
		return "Unknown error";
	}
}
