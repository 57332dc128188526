/* SPDX-License-Identifier: BSD-3-Clause */
/* alarm.h -- a timer that busy threads of the application repeatedly move to a later time ("put
 * off"). So it wakes the engine only after these threads have stopped. The owner's lock guards the
 * alarm; the engine's lock may be taken inside it. */
#ifndef IO_ALARM_H
#define IO_ALARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softrnic/io/engine.h"
#include "softrnic/io/policy.h"

struct alarm {
	/* The function ready() of this source is called after the alarm expires, even if the alarm
	 * was put off between the expiry and the call. */
	struct eng_source source;
	int fd; /* -1: not opened yet */
	/* time of expiry; 0: the alarm is not set; also read without the lock */
	_Atomic uint64_t due;
	_Atomic uint64_t cost_ns; /* average time for setting the alarm */
};

#define ALARM_INIT(name, on_expiry, on_fork)                                                       \
	{                                                                                          \
		.source = {.ready = (on_expiry),                                                   \
			   .free = alarm_freed,                                                    \
			   .forked = (on_fork),                                                    \
			   .all = LIST_INIT((name).source.all)},                                   \
		.fd = -1,                                                                          \
	}

static inline uint64_t alarm_due(const struct alarm *a)
{
	return atomic_load_explicit(&a->due, memory_order_relaxed);
}

/* Returns policy_pace() for the time that setting this alarm costs. */
uint64_t alarm_pace(const struct alarm *a, enum policy_use use);

bool alarm_open(struct alarm *a);
/* Set the alarm, or put it off: it expires at now + ns. Returns false if setting it failed. */
bool alarm_set(struct alarm *a, uint64_t now, uint64_t ns);
void alarm_has_expired(struct alarm *a);
/* In a forked child: close the parent's alarm. The next alarm_set() opens a new one. */
void alarm_forked(struct alarm *a);
void alarm_freed(struct eng_source *src);

#endif
