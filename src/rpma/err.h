/* SPDX-License-Identifier: BSD-3-Clause */
/* err.h -- error texts. The function that calls the provider logs a failure of the call. */
#ifndef RPMA_ERR_H
#define RPMA_ERR_H

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "librpma.h"

enum { ERR_TEXT_MAX = 512 };

/*
 * Returns the text for an errno. Some devices fail without setting errno, so 0 has a text as well.
 */
static inline const char *reason_text(int err)
{
	return err ? strerror(err) : "no reason given";
}

/*
 * Set the text that rpma_err_last() returns. Each failed call sets it, by err_set_text() or by
 * LOG_ERROR(). err_set() returns its argument `ret`.
 */
void err_set_text(const char *text);
int err_set(int ret, const char *text);
/* Returns advice for an errno, or NULL if the advice depends on the call. */
const char *err_advice(int err);

/*
 * Report an invalid argument, without logging. The public function itself must call this, because
 * its name is part of the text.
 */
int err_invalid(const char *func, const char *what);
#define INVALID() err_invalid(__func__, "an argument is NULL or out of range")

/*
 * Set the text for a wait whose time limit has passed, and return `ret`. `advice` has the form
 * "what did not come: what to do". With a limit of 0 the caller did not wait, so the text is not
 * changed.
 */
int err_time_limit(int ret, int timeout_ms, const char *advice);

int err_nomem(const char *func);
#define NOMEM() err_nomem(__func__)

/*
 * Log "<call> failed: <reason>; <advice>" and return RPMA_E_PROVIDER. The text of the call is given
 * as a format and its arguments. `err` is evaluated first, so it may be the expression errno.
 */
#define PROVIDER_FAILED(err, ...)                                                                  \
	({                                                                                         \
		int failed_err_ = (err);                                                           \
		const char *advice_ = err_advice(failed_err_);                                     \
		PROVIDER_FAILED_LOG_(__VA_ARGS__, reason_text(failed_err_), advice_ ? "; " : "",   \
				     advice_ ? advice_ : "");                                      \
		RPMA_E_PROVIDER;                                                                   \
	})
#define PROVIDER_FAILED_LOG_(fmt, ...) LOG_ERROR(fmt " failed: %s%s%s", __VA_ARGS__)

/* Returns true if this errno of rdma_get_cm_event() means that no event is pending. */
static inline bool is_no_event(int err)
{
	return err == ENODATA || err == EAGAIN || err == EWOULDBLOCK;
}

/* Returns the first failure: `first` if it is a failure, else `next`. */
static inline int first_error(int first, int next)
{
	return first ? first : next;
}

#endif
