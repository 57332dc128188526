/* SPDX-License-Identifier: BSD-3-Clause */
/* errmsg.h -- why a call failed: a RPMIRROR_E_* that functions return, and the thread's text. */
#ifndef MIRROR_ERRMSG_H
#define MIRROR_ERRMSG_H

#define ERRMSG_TEXT 1024

/* Set the thread's text and return `code`. The innermost function that fails calls it, because
 * its callers have fewer facts. The arguments may contain the thread's text. */
int errmsg_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
