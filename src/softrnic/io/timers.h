/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.h -- a heap of deadlines, linked through the timers themselves, so setting a timer needs
 * no memory and cannot fail. The engine's lock guards it.
 */
#ifndef IO_TIMERS_H
#define IO_TIMERS_H

#include "softrnic/io/engine.h"

struct timers {
	struct eng_timer *first; /* the earliest timer */
};

/* Set the timer or change its time; CLOCK_NEVER removes it. */
void timers_set(struct timers *t, struct eng_timer *timer, uint64_t at);
uint64_t timers_next(const struct timers *t);
/* Remove and return a timer that has expired, or NULL. */
struct eng_timer *timers_expired(struct timers *t, uint64_t now);

#endif
