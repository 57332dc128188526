/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/writeback.h"

#include <errno.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/safecopy.h"

#define CACHE_LINE ((uintptr_t)64)

/* A file truncated under us makes the write-back of a cache line fault like a load. */
static int writeback_dax(uintptr_t start, uintptr_t end)
{
	uintptr_t from = start & ~(CACHE_LINE - 1);
	uintptr_t to = (end + CACHE_LINE - 1) & ~(CACHE_LINE - 1);
	int r = safecopy_guard((const void *)from, to - from, pmem_flush);

	pmem_drain();
	return r;
}

static int writeback_file(uintptr_t start, uintptr_t end, const struct file *file, bool *failed)
{
	uintptr_t from = start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	int status = msync((void *)from, end - from, MS_SYNC) ? -errno : 0;

	if (!status)
		return 0;
	*failed = true;
	LOG_ERROR(
		"msync(%p, %zu) of a file on %s failed: %m; flushes to this file fail from now on",
		(void *)from, (size_t)(end - from), file->fs);
	return status;
}

static int check_end(const struct range *r, uintptr_t end)
{
	return file_check_end(r->file, r->offset + (end - r->start), (const void *)(end - 1));
}

int writeback(const struct range *r, uintptr_t start, uintptr_t end, bool *failed)
{
	int status = check_end(r, end);

	*failed = false;
	if (status)
		return status;
	if (r->cls == PERSIST_DAX)
		status = writeback_dax(start, end);
	else
		status = writeback_file(start, end, r->file, failed);
	/* Once more, because what was cut off meanwhile has not been written back. */
	return status ? status : check_end(r, end);
}
