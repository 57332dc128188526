/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_pause.c -- a leader waits for something short, as nothing else of its loop is going on.
 *
 * It holds no lock then. If it takes longer than thought, the guard replaces it like a leader that
 * waits for memory, but after 1 to 2 ms: while runners pause now and then it looks that often.
 * Unlike one that waits for memory it says nothing about memory, so its successor works as ever.
 */
#include "softrnic/io/engine_impl.h"
#include "softrnic/io/stall.h"

/* So many callbacks of one source in a row: no other one was active. */
#define PAUSE_ROW 8u

/* Only one that knows how long it may take comes here, so the guard's lock is no burden. */
static bool pause_has_successor(void)
{
	bool has;

	pthread_mutex_lock(&eng.lock);
	has = eng.guarded && eng.idle_workers > 0;
	pthread_mutex_unlock(&eng.lock);
	return has;
}

bool engine_may_pause(const struct eng_source *src)
{
	struct eng_runner *me = engine_here;
	struct eng_loop *l = me ? me->loop : NULL;
	bool may;

	if (!l || !engine_may_stall() || !pause_has_successor())
		return false;
	pthread_mutex_lock(&l->lock);
	may = me->leads && me->source == src && l->in_a_row >= PAUSE_ROW && me->next == me->n;
	pthread_mutex_unlock(&l->lock);
	return may;
}

void engine_pause(bool begins)
{
	if (!engine_here)
		return;
	if (begins)
		atomic_fetch_add_explicit(&engine_here->paused, 1, memory_order_relaxed);
	atomic_store_explicit(&engine_here->pauses, begins, memory_order_relaxed);
	if (!begins)
		return;
	atomic_store_explicit(&eng.paused, true, memory_order_relaxed);
	if (!atomic_load_explicit(&eng.looks_often, memory_order_relaxed))
		guard_call();
}
