/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"
#include "poolset/parts.h"

/* Huge pages of DAX need an alignment of 2 MiB, which is harmless for other mappings. */
#define MEMORY_ALIGN ((uint64_t)2 << 20)

/* Reserve address space for all parts, so that they can be mapped next to each other. */
static void *memory_reserve(const struct parts *parts)
{
	uint64_t align = MEMORY_ALIGN, size = parts->pool_size, before;
	char *start, *base;

	for (unsigned i = 0; i < parts->count; i++)
		if (parts->list[i].align > align)
			align = parts->list[i].align;
	start = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (start == MAP_FAILED)
		return NULL;
	before = (align - (uintptr_t)start % align) % align;
	base = start + before;
	if (before)
		munmap(start, before);
	munmap(base + size, align - before);
	return base;
}

/* The kernel refuses MAP_SYNC unless the pages are the medium itself. */
static int memory_map_part(const struct part *part, void *at, uint64_t skip, bool *is_direct)
{
	uint64_t len = part_usable(part) - skip;
	int flags = MAP_SHARED_VALIDATE | MAP_SYNC | MAP_FIXED;

	if (!part->is_device &&
	    mmap(at, len, PROT_READ | PROT_WRITE, flags, part->fd, (off_t)skip) != MAP_FAILED)
		return 0;
	*is_direct &= part->is_device;
	if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, part->fd, (off_t)skip) ==
	    MAP_FAILED)
		return -errno;
	return 0;
}

int parts_map(const struct parts *parts, struct poolset_memory *memory, struct error *err)
{
	char *base = memory_reserve(parts);
	bool is_direct = true;
	char *at = base;

	if (!base)
		return error_set(err, ERROR_LOCAL, errno, "cannot map %s of %s: %s",
				 text_size(parts->pool_size).text, parts->name, strerror(errno));
	for (unsigned i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];
		uint64_t skip = i > 0 && part->has_header ? HEADER_BYTES : 0;
		int rc = memory_map_part(part, at, skip, &is_direct);

		if (rc) {
			munmap(base, parts->pool_size);
			return error_set(err, ERROR_LOCAL, -rc, "cannot map %s of %s: %s",
					 text_size(part_usable(part)).text, part->path,
					 strerror(-rc));
		}
		at += part_usable(part) - skip;
	}
	*memory = (struct poolset_memory){.base = base,
					  .size = parts->pool_size,
					  .has_headers = parts->nheaders > 0,
					  .is_direct = is_direct};
	return 0;
}
