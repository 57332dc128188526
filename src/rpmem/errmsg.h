/* SPDX-License-Identifier: BSD-3-Clause */
/* errmsg.h -- reports the failure of a call: an errno as its result, and a text for the calling
 * thread. */
#ifndef RPMEM_ERRMSG_H
#define RPMEM_ERRMSG_H

#define ERRMSG_TEXT 8192

/*
 * Set the thread's text, log it, and return the errno `error`. Only the innermost failing function
 * calls this, because its callers have less information.
 */
int errmsg_fail(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the calling thread's text; never NULL. */
const char *errmsg_text(void);

#endif
