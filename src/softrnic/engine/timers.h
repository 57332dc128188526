/* SPDX-License-Identifier: BSD-3-Clause */
/* timers.h -- a binary heap of deadlines; the engine's lock guards it. */
#ifndef ENGINE_TIMERS_H
#define ENGINE_TIMERS_H

#include "softrnic/engine/engine.h"

struct timers {
	struct eng_timer **heap; /* heap[1] is the earliest */
	unsigned count, room;
};

int timers_set(struct timers *t, struct eng_timer *timer, uint64_t at);
uint64_t timers_next(const struct timers *t);
/* Take out a timer that is due, or NULL. */
struct eng_timer *timers_expired(struct timers *t, uint64_t now);
void timers_clear(struct timers *t);

#endif
