/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/writeback.h"

#include <errno.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/persist/pool.h"

#define CACHE_LINE ((uintptr_t)64)

/* A file truncated under us makes the write-back of a cache line fault like a load. */
static int writeback_dax(uintptr_t start, uintptr_t end, struct persist_job *job)
{
	uintptr_t from = start & ~(CACHE_LINE - 1);
	uintptr_t to = (end + CACHE_LINE - 1) & ~(CACHE_LINE - 1);
	int r;

	if (!pool_touch_begin(job))
		return -ECANCELED;
	r = safecopy_guard((const void *)from, to - from, pmem_flush);
	pmem_drain();
	pool_touch_end(job);
	return r;
}

/* Memory that was unmapped after its job was abandoned is no loss of the file's. */
static int writeback_file(uintptr_t start, uintptr_t end, const struct file *file,
			  struct persist_job *job, bool *failed)
{
	uintptr_t from = start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	int status = msync((void *)from, end - from, MS_SYNC) ? -errno : 0;

	if (!status)
		return 0;
	if (status == -ENOMEM && pool_is_abandoned(job))
		return -ECANCELED;
	*failed = true;
	LOG_ERROR(
		"msync(%p, %zu) of a file on %s failed: %m; flushes to this file fail from now on",
		(void *)from, (size_t)(end - from), file->fs);
	return status;
}

int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job)
{
	int status = r->file ? file_check_end(r->file, r->offset + (end - r->start)) : 0;

	if (status != FILE_END_UNKNOWN)
		return status;
	if (!pool_touch_begin(job))
		return -ECANCELED;
	status = safecopy_probe((const void *)(end - 1));
	pool_touch_end(job);
	return status;
}

int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      bool *failed)
{
	int status = writeback_check_end(r, end, job);

	*failed = false;
	if (status)
		return status;
	if (r->cls == PERSIST_DAX)
		status = writeback_dax(start, end, job);
	else
		status = writeback_file(start, end, r->file, job, failed);
	/* Once more, because what was cut off meanwhile has not been written back. */
	return status ? status : writeback_check_end(r, end, job);
}
