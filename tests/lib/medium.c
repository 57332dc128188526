/* SPDX-License-Identifier: BSD-3-Clause */
#include "medium.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEDIUM_WRITES_MAX = 100 };

/* Returns the sum, in bytes, of the lines "Shared_Dirty: 8 kB" and "Private_Dirty: ..." of the
 * mapping at `start` in smaps. */
static long medium_smaps_dirty(const void *start)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long lo, hi, kb;
	bool here = false, seen = false;
	char line[512];
	long sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
			here = lo == (uintptr_t)start;
		else if (here && (sscanf(line, "Shared_Dirty: %lu kB", &kb) == 1 ||
				  sscanf(line, "Private_Dirty: %lu kB", &kb) == 1))
			sum += (long)kb * 1024, seen = true;
	}
	if (f)
		fclose(f);
	return seen ? sum : -1;
}

/* Touch each page, because smaps counts only pages that this mapping has touched. */
static void medium_touch(const volatile uint8_t *p, size_t len, size_t page)
{
	for (size_t i = 0; i < len; i += page)
		(void)p[i];
}

long medium_dirty(int fd, off_t at, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	off_t from = at - at % (off_t)page;
	size_t size = ((size_t)(at - from) + len + page - 1) / page * page;
	/* Put the mapping between two inaccessible pages, so that the kernel merges it with no
	 * other mapping. */
	uint8_t *room = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long dirty = -1;

	if (room == MAP_FAILED)
		return -1;
	if (mmap(room + page, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, from) != MAP_FAILED) {
		medium_touch(room + page, size, page);
		dirty = medium_smaps_dirty(room + page);
	}
	munmap(room, size + 2 * page);
	return dirty;
}

/* If the kernel writes the byte back before this function counts dirty bytes, the loop repeats. */
static bool medium_becomes_dirty(int fd)
{
	uint8_t byte;

	for (int i = 0; i < MEDIUM_WRITES_MAX; i++) {
		if (pread(fd, &byte, 1, 0) != 1 || pwrite(fd, &byte, 1, 0) != 1)
			return false;
		if (medium_dirty(fd, 0, 1) > 0)
			return true;
	}
	return false;
}

bool medium_is_behind(int fd)
{
	return medium_becomes_dirty(fd) && fdatasync(fd) == 0 && medium_dirty(fd, 0, 1) == 0;
}
