/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_limit.h"

#include "base/clock.h"

static uint32_t log_limit_asked_in(uint64_t state)
{
	return (uint32_t)state;
}

/* The stored period may be later than this thread's period, because another thread may have read
 * its clock later. */
static uint64_t log_limit_count_one(uint64_t state, uint64_t period)
{
	if (state >> 32 < period)
		return period << 32 | 1;
	return log_limit_asked_in(state) == UINT32_MAX ? state : state + 1;
}

bool log_limit_admits(struct log_limit *limit, uint64_t now_ns, uint32_t *left_out)
{
	/* Periods count from 1, because 0 means unused. */
	uint64_t period = now_ns / (LOG_LIMIT_PERIOD_MS * NSEC_PER_MS) + 1;
	uint64_t old = __atomic_load_n(&limit->state, __ATOMIC_RELAXED), new;

	do {
		new = log_limit_count_one(old, period);
	} while (!__atomic_compare_exchange_n(&limit->state, &old, new, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*left_out = 0;
	if (old >> 32 != new >> 32 && log_limit_asked_in(old) > LOG_LIMIT_LINES)
		*left_out = log_limit_asked_in(old) - LOG_LIMIT_LINES;
	return log_limit_asked_in(new) <= LOG_LIMIT_LINES;
}
