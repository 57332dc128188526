/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarm.h -- a timer that threads of the application put off while they are busy, so that the
 * engine is woken only when they have stopped. It is guarded by a lock of its owner, which is outer
 * to the engine's.
 */
#ifndef IO_ALARM_H
#define IO_ALARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softrnic/io/engine.h"
#include "softrnic/io/policy.h"

struct alarm {
	/* Called by ready(): the alarm has expired, or had before it was put off. */
	struct eng_source source;
	int fd; /* -1: not opened yet */
	/* time at which it expires; 0: it is not running; read without the lock as well */
	_Atomic uint64_t due;
	_Atomic uint64_t cost_ns; /* average time that it takes to set the alarm */
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

/* policy_pace() with the time that it takes to set this alarm. */
uint64_t alarm_pace(const struct alarm *a, enum policy_use use);

bool alarm_open(struct alarm *a);
/* Set the alarm, or put it off: it expires at now + ns. Returns false if that failed. */
bool alarm_set(struct alarm *a, uint64_t now, uint64_t ns);
void alarm_has_expired(struct alarm *a);
/* In a child: close the parent's alarm. A new one is opened when it is set. */
void alarm_forked(struct alarm *a);
void alarm_freed(struct eng_source *src);

#endif
