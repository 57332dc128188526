/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/ownmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softrnic/persist/apart.h"
#include "softrnic/persist/reopen.h"
#include "softrnic/persist/vma.h"

struct opening {
	const struct ownmap_source *from;
	uint64_t end;
	struct ownmap *map;
	int result;
};

static size_t page_up(uint64_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)n + page - 1) & ~(page - 1);
}

/*
 * Not for the child of a fork(): an error would be reported to it or to its parent only. -EAGAIN:
 * there is no address space for it, which is no shortage of memory.
 */
static int keep(struct ownmap *map, void *base, size_t len)
{
	if (base == MAP_FAILED)
		return errno == ENOMEM ? -EAGAIN : -errno;
	madvise(base, len, MADV_DONTFORK);
	map->base = base;
	map->len = len;
	return 0;
}

static int map_file(struct ownmap *map, int fd, size_t len)
{
	return keep(map, mmap(NULL, len, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0), len);
}

/* All of the file at once, so that most files are mapped once; if that is too much, what is needed.
 */
static int map_enough(struct ownmap *map, int fd, uint64_t size, uint64_t end)
{
	size_t need = page_up(end), all = page_up(size > end ? size : end);
	int ret = map_file(map, fd, all);

	return ret && need < all ? map_file(map, fd, need) : ret;
}

static int compare_file(void *arg, const struct vma *vma)
{
	const struct ownmap_source *from = arg;

	return vma->dev == from->map_dev && vma->ino == from->map_ino ? 0 : -ESTALE;
}

/* The numbers that fstat() and those that a mapping shows are each not enough on some file system.
 */
static int verify(const struct ownmap *map, const struct ownmap_source *from)
{
	uintptr_t at = (uintptr_t)map->base;

	return vma_for_each(at, at + 1, compare_file, (void *)from);
}

static int open_and_map(struct opening *o)
{
	struct stat st;
	int fd = reopen_again(o->from->path_fd, O_RDWR, o->from->st_dev, o->from->st_ino, &st);
	int ret;

	if (fd < 0)
		return fd;
	ret = map_enough(o->map, fd, (uint64_t)st.st_size, o->end);
	close(fd);
	return ret ? ret : verify(o->map, o->from);
}

static void *run_thread(void *arg)
{
	struct opening *o = arg;

	o->result = apart_enter("rpma-open") ? open_and_map(o) : -errno;
	return NULL;
}

int ownmap_open(const struct ownmap_source *from, uint64_t end, struct ownmap **out)
{
	struct opening o = {.from = from, .end = end, .map = calloc(1, sizeof(*o.map))};
	pthread_t thread;
	int ret;

	if (!o.map)
		return -ENOMEM;
	ret = apart_start(&thread, run_thread, &o);
	if (!ret) {
		pthread_join(thread, NULL);
		ret = o.result;
	}
	if (ret)
		ownmap_delete(o.map);
	else
		*out = o.map;
	return ret;
}

/* Twice as much, if possible: a file that grows is registered again and again. */
int ownmap_extend(struct ownmap *older, uint64_t end, struct ownmap **out)
{
	struct ownmap *map = calloc(1, sizeof(*map));
	size_t need = page_up(end), len = need > 2 * older->len ? need : 2 * older->len;
	int ret;

	if (!map)
		return -ENOMEM;
	/* An old length of 0 makes a second mapping of the same description. */
	ret = keep(map, mremap(older->base, 0, len, MREMAP_MAYMOVE), len);
	if (ret && need < len)
		ret = keep(map, mremap(older->base, 0, need, MREMAP_MAYMOVE), need);
	if (ret) {
		free(map);
		return ret;
	}
	map->older = older;
	*out = map;
	return 0;
}

void ownmap_delete(struct ownmap *map)
{
	while (map) {
		struct ownmap *older = map->older;

		if (map->base)
			munmap(map->base, map->len);
		free(map);
		map = older;
	}
}

void ownmap_forget(struct ownmap *map)
{
	while (map) {
		struct ownmap *older = map->older;

		free(map);
		map = older;
	}
}
