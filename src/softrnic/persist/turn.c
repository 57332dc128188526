/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/turn.h"

#include <errno.h>

#include "softrnic/persist/queue.h"

#define TURNS_MAX   16
#define READERS_MAX 4

bool turn_is_wanted(void)
{
	return queue_has_turn(false) || queue_has_turn(true);
}

bool turn_is_left(void)
{
	return slices_below(TURNS_MAX, false);
}

static bool turn_may_write(void)
{
	return queue_has_turn(false) && turn_is_left();
}

static bool turn_may_read(void)
{
	return queue_has_turn(true) && turn_is_left() && slices_below(READERS_MAX, true);
}

bool turn_is_possible(void)
{
	return turn_may_write() || turn_may_read();
}

static void turn_take(struct turn *t)
{
	struct persist_job *job = queue_pop(t->file, t->reading);

	slices_begin(&t->running, t->reading);
	if (t->reading) {
		t->slot = NULL;
		t->file->readers++;
		group_make_reading(&t->group, job);
	} else {
		t->slot = queue_free_slot(t->file);
		t->slot->busy = true;
		group_make(&t->group, t->file, job);
	}
	queue_settle(t->file);
}

/* If a write-back and a read-back are both possible, the thread alternates between them. So neither
 * kind waits for ever, even if only one thread can be started. */
bool turn_begin(struct turn *t)
{
	bool may_write = turn_may_write(), may_read = turn_may_read();

	t->reading = may_read && (!t->reading || !may_write);
	if (!may_write && !may_read)
		return false;
	t->file = queue_take_turn(t->reading);
	turn_take(t);
	return true;
}

void turn_begin_at(struct turn *t, struct file *f)
{
	*t = (struct turn){.file = f};
	turn_take(t);
}

void turn_run(struct turn *t, struct reader **reader)
{
	int error = atomic_load(&t->file->error);

	if (error)
		group_fail(&t->group, error);
	else if (t->reading)
		group_read_back(&t->group, reader);
	else
		group_write_back(&t->group, t->file, reader);
}

void turn_end(struct turn *t, struct list *finished)
{
	struct list *it;

	slices_end(&t->running);
	if (!t->reading)
		group_measure(&t->group, t->file, clock_now_ns() - t->running.start_ns);
	queue_end_slot(t->file, t->slot, finished);
	while ((it = list_pop(&t->group.jobs))) {
		struct persist_job *job = container_of(it, struct persist_job, node);
		bool more = group_has_more(job);

		if (job->cancelled && !job->status)
			job->status = -ECANCELED;
		job->progress += job->slice;
		queue_end_slice(t->file, t->reading, job, more, finished);
	}
	queue_settle(t->file);
}
