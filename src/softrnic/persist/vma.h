/* SPDX-License-Identifier: BSD-3-Clause */
/* vma.h -- the mappings of this process, as the kernel describes them. */
#ifndef PERSIST_VMA_H
#define PERSIST_VMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vma {
	uintptr_t start, end;
	bool shared;
	bool writable; /* by stores, now */
	dev_t dev;     /* of the superblock; on btrfs stat() shows another one */
	ino_t ino;
	uint64_t offset;
	const char
		*path; /* "" or a word in brackets when there is no file; may end in " (deleted)" */
};

/* Valid during the call only. A result other than 0 ends the walk. */
typedef int vma_fn(void *arg, const struct vma *vma);

/*
 * Call fn for every mapping that overlaps [start, end), in ascending order. 0, what fn
 * returned, or -errno when the kernel does not tell.
 */
int vma_for_each(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);
/* The same from the text of /proc/self/maps, for kernels before 6.11; reads all mappings below. */
int vma_for_each_text(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);

/* Was the file of a shared mapping opened for writing? If not, msync() of the mapping does nothing.
 */
bool vma_syncs(const struct vma *vma);

/*
 * Was the mapping that begins at `start` made with MAP_SYNC? Slow: the kernel walks the
 * page tables of all mappings before it (about 8 ms a GiB).
 */
bool vma_is_sync(uintptr_t start);

#endif
