/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/persist.h"

#include <errno.h>

#include "softrnic/persist/group.h"
#include "softrnic/persist/pool.h"
#include "softrnic/persist/region.h"
#include "softrnic/persist/writeback.h"

#define DAX_INLINE_BYTES ((size_t)64 << 10)
/* Longest digest that runs inline. It is short, because a peer may request several digests at the
 * same time, up to its IRD. */
#define DIGEST_INLINE_BYTES ((size_t)4 << 10)

/* What a job needs, determined before any part of the job starts. */
struct submit_plan {
	bool has_volatile;
	bool has_file;
	size_t dax_bytes;
	int error; /* remembered failure of one of the files */
};

static void submit_make_plan(const struct persist_job *job, struct submit_plan *plan)
{
	uintptr_t pos = (uintptr_t)job->addr, end = pos + job->len;

	*plan = (struct submit_plan){0};
	while (pos < end) {
		const struct range *r = region_range_at(job->region, pos);
		uintptr_t next = r->end < end ? r->end : end;

		plan->has_volatile |= r->cls == VEXT_DURABILITY_VOLATILE;
		plan->has_file |= r->cls == VEXT_DURABILITY_FILE;
		if (r->cls == VEXT_DURABILITY_DAX)
			plan->dax_bytes += next - pos;
		if (r->file && !plan->error)
			plan->error = atomic_load(&r->file->error);
		pos = next;
	}
}

static int submit_dax(const struct persist_job *job)
{
	uintptr_t pos = (uintptr_t)job->addr, end = pos + job->len;
	int status = 0;

	while (!status && pos < end) {
		const struct range *r = region_range_at(job->region, pos);
		uintptr_t next = r->end < end ? r->end : end;

		if (r->cls == VEXT_DURABILITY_DAX)
			status = writeback(r, pos, next, NULL, NULL);
		pos = next;
	}
	return status;
}

static bool submit_is_inside(const struct persist_job *job)
{
	const struct persist_region *region = job->region;
	uintptr_t start_addr = (uintptr_t)job->addr;

	return start_addr >= region->start && start_addr <= region->end &&
	       job->len <= region->end - start_addr;
}

static bool submit_needs_pool(const struct persist_job *job, const struct submit_plan *plan)
{
	return plan->has_file || plan->dax_bytes > DAX_INLINE_BYTES ||
	       (job->readback && job->len > DIGEST_INLINE_BYTES);
}

static int submit_inline(struct persist_job *job, const struct submit_plan *plan)
{
	int status = plan->dax_bytes ? submit_dax(job) : 0;

	return status || !job->readback ? status : readback_inline(job);
}

/* Only a single slice that lies in the own mapping of one file can begin here. */
static bool submit_here(struct persist_job *job)
{
	uintptr_t start_addr = (uintptr_t)job->addr, end = start_addr + job->len;
	const struct range *r = region_range_at(job->region, start_addr);

	return !job->readback && job->len <= GROUP_SLICE && end <= r->end && r->file &&
	       range_is_lasting(r, start_addr, end) && here_start(job, r->file);
}

/* `here` is NULL for persist_submit(), else it is the argument of persist_submit_here(). */
static bool submit(struct persist_job *job, int *status, bool *here)
{
	struct submit_plan plan;

	*status = submit_is_inside(job) ? 0 : -EFAULT;
	if (*status)
		return true;
	submit_make_plan(job, &plan);
	*status = plan.has_volatile && job->strict ? -ENOTSUP : plan.error;
	if (*status)
		return true;
	job->readback = NULL;
	*status = job->want == PERSIST_DIGEST ? readback_begin(job) : 0;
	if (*status)
		return true;
	if (!submit_needs_pool(job, &plan))
		*status = submit_inline(job, &plan);
	else if ((here && (*here = submit_here(job))) || pool_start(job))
		return false;
	else
		*status = -EAGAIN;
	readback_end(job, *status);
	return true;
}

bool persist_submit(struct persist_job *job, int *status)
{
	return submit(job, status, NULL);
}

bool persist_submit_here(struct persist_job *job, int *status, bool *here)
{
	*here = false;
	return submit(job, status, here);
}
