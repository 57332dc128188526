/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/queue.h"

_Static_assert(FILE_SLOTS == 2, "there is at most one slice beside a slice");

/* Files that have a job and may run a slice, linked by `ready` of their queues. */
static struct {
	struct list writes, reads;
} queue = {
	.writes = LIST_INIT(queue.writes),
	.reads = LIST_INIT(queue.reads),
};

static struct list *queue_turns(bool reading)
{
	return reading ? &queue.reads : &queue.writes;
}

bool queue_has_turn(bool reading)
{
	return !list_empty(queue_turns(reading));
}

struct file *queue_take_turn(bool reading)
{
	struct list *turn = list_pop(queue_turns(reading));

	return reading ? container_of(turn, struct file, reads.ready)
		       : container_of(turn, struct file, writes.ready);
}

struct file_slot *queue_free_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (!f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

static struct file_slot *queue_busy_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

/* If the file has a job and may run a slice, add it after all files that already wait; else remove
 * it from the list. */
static void queue_settle_one(struct file_queue *q, bool has_room, bool reading)
{
	if (list_empty(&q->jobs) || !has_room)
		list_del(&q->ready);
	else if (list_empty(&q->ready))
		list_add_tail(queue_turns(reading), &q->ready);
}

void queue_settle(struct file *f)
{
	queue_settle_one(&f->writes, queue_free_slot(f) != NULL, false);
	queue_settle_one(&f->reads, f->readers < FILE_READERS, true);
}

static void queue_push(struct file *f, struct persist_job *job)
{
	list_add_tail(job->reading ? &f->reads.jobs : &f->writes.jobs, &job->node);
	job->waits_for = f;
	queue_settle(f);
}

struct persist_job *queue_pop(struct file *f, bool reading)
{
	struct list *jobs = reading ? &f->reads.jobs : &f->writes.jobs;
	struct persist_job *job = container_of(list_pop(jobs), struct persist_job, node);

	job->waits_for = NULL;
	return job;
}

void queue_drop(struct persist_job *job)
{
	list_del(&job->node);
	queue_settle(job->waits_for);
	job->waits_for = NULL;
}

/* Skip ranges that need no write-back, then queue the job at the next range's file. Returns false
 * if no range is left. */
static bool queue_push_next(struct persist_job *job)
{
	while (job->progress < job->len) {
		const struct range *r = region_range_at(job->region, queue_job_pos(job));

		if (r->file || job->reading) {
			queue_push(r->file ? r->file : file_of_memory(), job);
			return true;
		}
		job->progress = r->end - (uintptr_t)job->addr;
	}
	if (!job->readback || job->reading)
		return false;
	job->reading = true;
	job->progress = 0;
	return queue_push_next(job);
}

bool queue_begin(struct persist_job *job)
{
	job->progress = 0;
	job->status = 0;
	job->reading = job->cancelled = job->abandoned = job->touching = false;
	return queue_push_next(job);
}

/*
 * The job has finished a range on f. Move the job to the queue of its next range, or to `finished`.
 */
static void queue_end_range(struct file *f, struct persist_job *job, struct list *finished)
{
	if (!job->status)
		job->status = f->error;
	if (job->status || !queue_push_next(job))
		list_add_tail(finished, &job->node);
}

void queue_end_slot(struct file *f, struct file_slot *slot, struct list *finished)
{
	struct list *it;

	if (!slot) {
		f->readers--;
		return;
	}
	slot->busy = false;
	while ((it = list_pop(&slot->unconfirmed))) {
		struct persist_job *other = container_of(it, struct persist_job, node);

		other->waits_for = NULL;
		queue_end_range(f, other, finished);
	}
}

void queue_end_slice(struct file *f, bool reading, struct persist_job *job, bool more,
		     struct list *finished)
{
	struct file_slot *beside = reading ? NULL : queue_busy_slot(f);

	if (!job->status && more) {
		queue_push(f, job);
	} else if (!job->status && beside) {
		list_add_tail(&beside->unconfirmed, &job->node);
		job->waits_for = f;
	} else {
		queue_end_range(f, job, finished);
	}
}

void queue_forget(void)
{
	list_init(&queue.writes);
	list_init(&queue.reads);
}
