/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/errmsg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "librpmem.h"

static __thread char errmsg_buf[ERRMSG_TEXT];

int errmsg_fail(int error, const char *fmt, ...)
{
	/* made before the text is replaced, because the arguments may contain the thread's text */
	char text[ERRMSG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(errmsg_buf, text, strlen(text) + 1);
	LOG_ERROR("%s (errno %d)", errmsg_buf, error);
	return error;
}

const char *errmsg_text(void)
{
	return errmsg_buf;
}

const char *rpmem_errormsg(void)
{
	return errmsg_text();
}

const char *rpmem_check_version(unsigned major_required, unsigned minor_required)
{
	if (major_required != RPMEM_MAJOR_VERSION)
		errmsg_fail(0, "librpmem major version mismatch (need %u, found %u)",
			    major_required, RPMEM_MAJOR_VERSION);
	else if (minor_required > RPMEM_MINOR_VERSION)
		errmsg_fail(0, "librpmem minor version mismatch (need %u, found %u)",
			    minor_required, RPMEM_MINOR_VERSION);
	else
		return NULL;
	return errmsg_text();
}
