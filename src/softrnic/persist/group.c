/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/group.h"

#include "base/clock.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/writeback.h"

#define GROUP_LOOKS 256 /* greatest number of waiting jobs that are checked for one group */

/* The next slice of a job: a part of one range. */
struct group_piece {
	const struct range *r;
	uintptr_t start, end;
	uintptr_t range_end; /* address at which the job's range ends */
	uint64_t from, to;   /* offsets of the slice in the file */
};

static struct group_piece group_piece_of(const struct persist_job *job, size_t slice)
{
	struct group_piece p = {.start = queue_job_pos(job)};
	uintptr_t job_end = (uintptr_t)job->addr + job->len;

	p.r = region_range_at(job->region, p.start);
	p.range_end = p.end = p.r->end < job_end ? p.r->end : job_end;
	if (p.end - p.start > slice)
		p.end = p.start + slice;
	p.from = p.r->offset + (p.start - p.r->start);
	p.to = p.from + (p.end - p.start);
	return p;
}

bool group_has_more(const struct persist_job *job)
{
	struct group_piece p = group_piece_of(job, job->slice);

	return p.end < p.range_end;
}

static struct persist_job *group_first(const struct group *g)
{
	return container_of(g->jobs.next, struct persist_job, node);
}

static void group_add(struct group *g, struct persist_job *job, const struct group_piece *p)
{
	list_add_tail(&g->jobs, &job->node);
	g->count++;
	g->bytes += p->end - p->start;
	job->slice = p->end - p->start;
	g->from = p->from < g->from ? p->from : g->from;
	g->to = p->to > g->to ? p->to : g->to;
}

static uint64_t group_gap(const struct group *g, const struct group_piece *p)
{
	if (p->from > g->to)
		return p->from - g->to;
	return g->from > p->to ? g->from - p->to : 0;
}

static uint64_t group_hull(const struct group *g, const struct group_piece *p)
{
	return (p->to > g->to ? p->to : g->to) - (p->from < g->from ? p->from : g->from);
}

/* file->reach is 0 until the first group is measured. Until then no gap is too large. */
static uint64_t group_reach(const struct file *f)
{
	return f->reach ? f->reach : GROUP_SLICE;
}

static void group_collect(struct group *g, struct file *f)
{
	struct list *it, *next;
	int looks = 0;

	list_for_each_safe (it, next, &f->writes.jobs) {
		struct persist_job *job = container_of(it, struct persist_job, node);
		struct group_piece p = group_piece_of(job, GROUP_SLICE);

		if (++looks > GROUP_LOOKS)
			break;
		if (!range_is_lasting(p.r, p.start, p.end) || group_gap(g, &p) > group_reach(f) ||
		    group_hull(g, &p) > GROUP_SLICE)
			continue;
		list_del(&job->node);
		job->waits_for = NULL;
		group_add(g, job, &p);
	}
}

static struct group_piece group_begin(struct group *g, struct persist_job *job, size_t slice)
{
	struct group_piece p = group_piece_of(job, slice);

	*g = (struct group){.from = p.from, .to = p.to};
	list_init(&g->jobs);
	group_add(g, job, &p);
	return p;
}

void group_make(struct group *g, struct file *f, struct persist_job *job)
{
	struct group_piece p = group_begin(g, job, GROUP_SLICE);

	g->shared = range_is_lasting(p.r, p.start, p.end);
	if (g->shared)
		group_collect(g, f);
}

void group_make_reading(struct group *g, struct persist_job *job)
{
	group_begin(g, job, READER_BYTES);
}

/* Check each job's range separately, so that a range past the end of the file fails only its own
 * job. */
static int group_judge(const struct persist_job *job, int status, const struct file_end *end)
{
	struct group_piece p = group_piece_of(job, job->slice);

	if (!status && p.end - p.start <= GROUP_NEAR)
		writeback_split(p.r, p.start, p.end);
	return status ? status : file_judge_end(end, p.to);
}

static void group_write_back_shared(struct group *g, struct file *f)
{
	int status = writeback_shared(f, g->from, g->to);
	struct file_end end;
	struct list *it;

	/* Check the file's size after the write-back: bytes that a truncation cut off meanwhile
	 * have not been written back. */
	file_find_end(f, &end);
	list_for_each (it, &g->jobs) {
		struct persist_job *job = container_of(it, struct persist_job, node);

		job->status = group_judge(job, status, &end);
	}
}

void group_write_back(struct group *g, struct file *f, struct reader **reader)
{
	struct persist_job *job = group_first(g);
	struct group_piece p;

	if (g->shared) {
		group_write_back_shared(g, f);
		return;
	}
	p = group_piece_of(job, job->slice);
	job->status = writeback(p.r, p.start, p.end, job, reader);
}

void group_read_back(struct group *g, struct reader **reader)
{
	struct persist_job *job = group_first(g);
	struct group_piece p = group_piece_of(job, job->slice);

	job->status = readback_slice(job, p.r, p.start, p.end, reader);
}

void group_fail(struct group *g, int error)
{
	struct list *it;

	list_for_each (it, &g->jobs)
		container_of(it, struct persist_job, node)->status = error;
}

void group_measure(const struct group *g, struct file *f, uint64_t took_ns)
{
	uint64_t reach = group_reach(f);

	if (!g->shared || g->bytes > g->count * GROUP_NEAR)
		/* above this size the time depends on the number of bytes, so it is no measure of
		 * the gaps */
		return;
	if (g->count == 1)
		f->single_ns = f->single_ns ? (3 * f->single_ns + took_ns) / 4 : took_ns;
	else if (f->single_ns && took_ns > g->count * f->single_ns)
		f->reach = reach / 4 > GROUP_NEAR ? reach / 4 : GROUP_NEAR;
	else
		f->reach = reach < GROUP_SLICE / 2 ? 2 * reach : GROUP_SLICE;
}
