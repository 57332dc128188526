/* SPDX-License-Identifier: BSD-3-Clause */
/* filemap.h -- a file mapped shared, as the medium itself where that is possible. */
#ifndef BASE_FILEMAP_H
#define BASE_FILEMAP_H

#include <stddef.h>
#include <sys/mman.h>

/* MAP_FAILED with errno. MAP_SYNC is refused unless the pages are the medium itself. */
static inline void *filemap(int fd, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);

	return p != MAP_FAILED ? p : mmap(NULL, size, prot, MAP_SHARED, fd, 0);
}

#endif
