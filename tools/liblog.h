/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liblog.h -- librpma's log, kept so that an error line can give the reason.
 */
#ifndef TOOL_LIBLOG_H
#define TOOL_LIBLOG_H

#include <stdbool.h>

/* From now on nothing of librpma's goes to syslog; with verbose, lines from NOTICE on go to
 * stderr. */
void liblog_init(bool verbose);
/* What librpma's latest error line of this thread said, or the text of code rc. */
const char *liblog_reason(int rc);
/* The former alone; "": there is none. */
const char *liblog_last(void);

#endif
