/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/persist.h"

#include <errno.h>

#include "softrnic/persist/pool.h"
#include "softrnic/persist/readback.h"
#include "softrnic/persist/region.h"
#include "softrnic/persist/writeback.h"

#define DAX_INLINE_BYTES    ((size_t)64 << 10)
#define DIGEST_INLINE_BYTES ((size_t)4 << 10) /* a peer may ask for an IRD of them in one turn */

/* What a job is made of, found before anything is started. */
struct plan {
	bool has_volatile;
	bool has_file;
	size_t dax_bytes;
	int error; /* sticky, of one of the files */
};

static void make_plan(const struct persist_job *job, struct plan *plan)
{
	uintptr_t pos = (uintptr_t)job->addr, end = pos + job->len;

	*plan = (struct plan){0};
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

static int dax_inline(const struct persist_job *job)
{
	uintptr_t pos = (uintptr_t)job->addr, end = pos + job->len;
	int status = 0;

	while (!status && pos < end) {
		const struct range *r = region_range_at(job->region, pos);
		uintptr_t next = r->end < end ? r->end : end;
		bool failed;

		if (r->cls == VEXT_DURABILITY_DAX)
			status = writeback(r, pos, next, NULL, NULL, &failed);
		pos = next;
	}
	return status;
}

static bool is_inside(const struct persist_job *job)
{
	const struct persist_region *region = job->region;
	uintptr_t start_addr = (uintptr_t)job->addr;

	return start_addr >= region->start && start_addr <= region->end &&
	       job->len <= region->end - start_addr;
}

static bool needs_pool(const struct persist_job *job, const struct plan *plan)
{
	return plan->has_file || plan->dax_bytes > DAX_INLINE_BYTES ||
	       (job->readback && job->len > DIGEST_INLINE_BYTES);
}

static int do_inline(struct persist_job *job, const struct plan *plan)
{
	int status = plan->dax_bytes ? dax_inline(job) : 0;

	return status || !job->readback ? status : readback_inline(job);
}

bool persist_submit(struct persist_job *job, int *status)
{
	struct plan plan;

	*status = is_inside(job) ? 0 : -EFAULT;
	if (*status)
		return true;
	make_plan(job, &plan);
	*status = plan.has_volatile && job->strict ? -ENOTSUP : plan.error;
	if (*status)
		return true;
	job->readback = NULL;
	*status = job->want == PERSIST_DIGEST ? readback_begin(job) : 0;
	if (*status)
		return true;
	if (!needs_pool(job, &plan))
		*status = do_inline(job, &plan);
	else if (pool_start(job))
		return false;
	else
		*status = -EAGAIN;
	readback_end(job, *status);
	return true;
}
