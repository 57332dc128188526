/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/writeback.h"

#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/persist/pool.h"
#include "softrnic/persist/reader.h"

#define CACHE_LINE ((uintptr_t)64)

/* If the file was truncated, writing back a cache line faults like a load; the fault is caught. */
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

static int writeback_msync(uintptr_t start, size_t len)
{
	uintptr_t from = start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	return msync((void *)from, start + len - from, MS_SYNC) ? -errno : 0;
}

/* Remember that a write-back of the file failed: earlier writes to the file may be lost. Returns
 * the status. */
static int writeback_failed(struct file *f, uint64_t from, uint64_t to, int status)
{
	LOG_ERROR(
		"write-back of %zu bytes at offset %llu of a file on %s failed: %s; flushes to this "
		"file fail from now on",
		(size_t)(to - from), (unsigned long long)from, f->medium.fs, strerror(-status));
	file_fail(f, status);
	return status;
}

int writeback_shared(struct file *f, uint64_t from, uint64_t to)
{
	int status = writeback_msync((uintptr_t)file_own_at(f, from, to), (size_t)(to - from));

	return status ? writeback_failed(f, from, to, status) : 0;
}

void writeback_split(const struct range *r, uintptr_t start, uintptr_t end)
{
	folio_split(&atomic_load(&r->file->own)->written_back, (const void *)start,
		    r->offset + (start - r->start), end - start);
}

/* *failed stays false if no descriptor leads to the file, because no write-back was tried. */
static int writeback_by_reader(const struct file *file, struct reader **reader, bool *failed)
{
	int ret;

	if (!*reader)
		*reader = reader_new();
	ret = *reader ? reader_sync(*reader, file) : -ENOMEM;
	*failed = ret < 0 && *reader;
	return ret == READER_NO_WAY ? -ENOTSUP : ret;
}

/* If the application unmapped the memory after its job was abandoned, the error does not count as a
 * failure of the file. */
static int writeback_app_mapping(uintptr_t start, size_t len, struct persist_job *job, bool *failed)
{
	int status = writeback_msync(start, len);

	if (status == -ENOMEM && pool_is_abandoned(job))
		return -ECANCELED;
	*failed = status != 0;
	return status;
}

static int writeback_part(const struct range *r, uintptr_t start, uintptr_t end,
			  struct persist_job *job, struct reader **reader, bool *failed)
{
	uint64_t offset = r->offset + (start - r->start);
	void *own = file_own_at(r->file, offset, offset + (end - start));
	int status = 0;

	if (!own && !r->syncs)
		return writeback_by_reader(r->file, reader, failed);
	if (own)
		status = writeback_msync((uintptr_t)own, end - start);
	*failed = status != 0;
	if (status || !r->syncs || (own && range_has_own(r)))
		return status;
	return writeback_app_mapping(start, end - start, job, failed);
}

static int writeback_file(const struct range *r, uintptr_t start, uintptr_t end,
			  struct persist_job *job, struct reader **reader)
{
	uint64_t from = r->offset + (start - r->start);
	bool failed = false;
	int status = writeback_part(r, start, end, job, reader, &failed);

	return failed ? writeback_failed(r->file, from, from + (end - start), status) : status;
}

int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job)
{
	struct file_end file_end;
	int status;

	if (!r->file)
		return 0;
	file_find_end(r->file, &file_end);
	status = file_judge_end(&file_end, r->offset + (end - r->start));
	if (status != FILE_END_UNKNOWN)
		return status;
	if (!pool_touch_begin(job))
		return -ECANCELED;
	status = safecopy_probe((const void *)(end - 1));
	pool_touch_end(job);
	return status;
}

int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      struct reader **reader)
{
	int status;

	if (r->cls == VEXT_DURABILITY_DAX) {
		status = writeback_dax(start, end, job);
	} else {
		/* Check the file's size first: an msync() of memory past the end would count as a
		 * failure of the file. */
		status = writeback_check_end(r, end, job);
		if (!status)
			status = writeback_file(r, start, end, job, reader);
	}
	/* Check the size again: bytes that a truncation cut off meanwhile have not been written
	 * back. */
	return status ? status : writeback_check_end(r, end, job);
}
