/* SPDX-License-Identifier: BSD-3-Clause */
/* filemap.h -- maps a file shared, if possible with the medium itself as memory (MAP_SYNC). */
#ifndef BASE_FILEMAP_H
#define BASE_FILEMAP_H

#include <stddef.h>
#include <sys/mman.h>

/* The kernel permits MAP_SYNC only if the pages are the medium itself; otherwise map without
 * MAP_SYNC. Returns MAP_FAILED with errno on failure. */
static inline void *filemap(int fd, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);

	return p != MAP_FAILED ? p : mmap(NULL, size, prot, MAP_SHARED, fd, 0);
}

#endif
