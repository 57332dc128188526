/* SPDX-License-Identifier: BSD-3-Clause */
/* err.h -- one line for a failed call of the provider, said where it failed. */
#ifndef RPMA_ERR_H
#define RPMA_ERR_H

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "librpma.h"

/* Some devices fail without a reason. */
static inline const char *reason_text(int err)
{
	return err ? strerror(err) : "no reason given";
}

/*
 * Log "<call> failed: <reason>" and yield RPMA_E_PROVIDER. The call is a format and its arguments;
 * err is evaluated first, so that it may be errno.
 */
#define PROVIDER_FAILED(err, ...)                                                                  \
	({                                                                                         \
		int failed_err_ = (err);                                                           \
		PROVIDER_FAILED_LOG_(failed_err_, __VA_ARGS__, reason_text(failed_err_));          \
		RPMA_E_PROVIDER;                                                                   \
	})
#define PROVIDER_FAILED_LOG_(err, fmt, ...) LOG_ERROR(fmt " failed: %s", __VA_ARGS__)

/* Does this errno of rdma_get_cm_event() only say that nothing is pending? */
static inline bool is_no_event(int err)
{
	return err == ENODATA || err == EAGAIN || err == EWOULDBLOCK;
}

/* The first failure of several steps is the one that is told. */
static inline int first_error(int first, int next)
{
	return first ? first : next;
}

#endif
