/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.h -- a heap of deadlines, linked through the timers themselves: setting one needs no
 * memory and so cannot fail. The engine's lock guards it.
 */
#ifndef IO_TIMERS_H
#define IO_TIMERS_H

#include "softrnic/io/engine.h"

struct timers {
	struct eng_timer *first; /* the earliest */
};

/* Set it, or set it anew; CLOCK_NEVER takes it out. */
void timers_set(struct timers *t, struct eng_timer *timer, uint64_t at);
uint64_t timers_next(const struct timers *t);
/* Take out a timer that is due, or NULL. */
struct eng_timer *timers_expired(struct timers *t, uint64_t now);

#endif
