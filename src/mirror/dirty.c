/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the pages that were stored to: the first store to a page of a private mapping makes it
 * anonymous memory, which the kernel shows in /proc/self/pagemap.
 */
#include "mirror/dirty.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DIRTY_PRESENT (UINT64_C(1) << 63)
#define DIRTY_SWAPPED (UINT64_C(1) << 62)
#define DIRTY_OF_FILE (UINT64_C(1) << 61)
#define DIRTY_ENTRIES 512u

bool dirty_begin(struct dirty_scan *scan, const uint8_t *base, size_t size)
{
	*scan = (struct dirty_scan){.fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
				    .base = base,
				    .size = size,
				    .page = (size_t)sysconf(_SC_PAGESIZE)};
	return scan->fd >= 0;
}

void dirty_end(struct dirty_scan *scan)
{
	close(scan->fd);
}

/* Read entries of the page table from the scan's position on. Returns their number; 0 or -errno:
 * none were read. */
static ssize_t dirty_read(const struct dirty_scan *scan, uint64_t *entries)
{
	size_t left = (scan->size - scan->at + scan->page - 1) / scan->page;
	size_t count = left < DIRTY_ENTRIES ? left : DIRTY_ENTRIES;
	ssize_t n =
		pread(scan->fd, entries, count * sizeof(*entries),
		      (off_t)(((uintptr_t)scan->base + scan->at) / scan->page * sizeof(*entries)));

	if (n < 0)
		return -errno;
	return n / (ssize_t)sizeof(*entries);
}

/* Add the page at the scan's position to the runs: it continues the last run, or begins a new one.
 * Returns false if the array is full. */
static bool dirty_add(const struct dirty_scan *scan, struct rpmirror_range *v, unsigned max,
		      unsigned *n)
{
	const uint8_t *addr = scan->base + scan->at;
	size_t left = scan->size - scan->at, len = left < scan->page ? left : scan->page;

	if (*n && (const uint8_t *)v[*n - 1].addr + v[*n - 1].len == addr) {
		v[*n - 1].len += len;
		return true;
	}
	if (*n == max)
		return false;
	v[(*n)++] = (struct rpmirror_range){addr, len};
	return true;
}

int dirty_next(struct dirty_scan *scan, struct rpmirror_range *v, unsigned max)
{
	uint64_t entries[DIRTY_ENTRIES];
	unsigned n = 0;

	while (scan->at < scan->size) {
		ssize_t count = dirty_read(scan, entries);

		if (count <= 0)
			return count ? (int)count : -EIO;
		for (ssize_t i = 0; i < count; i++, scan->at += scan->page)
			if (entries[i] & (DIRTY_PRESENT | DIRTY_SWAPPED) &&
			    !(entries[i] & DIRTY_OF_FILE) && !dirty_add(scan, v, max, &n))
				return (int)n;
	}
	return (int)n;
}
