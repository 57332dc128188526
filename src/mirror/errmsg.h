/* SPDX-License-Identifier: BSD-3-Clause */
/* errmsg.h -- reports the failure of a call: a RPMIRROR_E_* as its result, and a text for the
 * calling thread. */
#ifndef MIRROR_ERRMSG_H
#define MIRROR_ERRMSG_H

#define ERRMSG_TEXT 1024

/* Set the calling thread's text and return `code`. The innermost failing function calls this,
 * because its callers have fewer facts. The arguments may contain the thread's text. */
int errmsg_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
