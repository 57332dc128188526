/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/ownmap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "softrnic/persist/procfs.h"

#define OWNMAP_STACK ((size_t)256 << 10)

struct ownmap_opening {
	const struct ownmap_source *from;
	uint64_t end;
	struct ownmap *map;
	int result;
};

static size_t ownmap_page_up(uint64_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)n + page - 1) & ~(page - 1);
}

/* Record the result of mmap() or mremap(). A forked child gets no copy of the mapping, because the
 * kernel would report an error to only one of the two processes. -EAGAIN means that the address
 * space is used up; this is not a shortage of memory. */
static int ownmap_set(struct ownmap *map, void *base, size_t len)
{
	if (base == MAP_FAILED)
		return errno == ENOMEM ? -EAGAIN : -errno;
	madvise(base, len, MADV_DONTFORK);
	map->base = base;
	map->len = len;
	folio_marks_init(&map->stored, len);
	folio_marks_init(&map->written_back, len);
	return 0;
}

static int ownmap_map(struct ownmap *map, int fd, size_t len)
{
	return ownmap_set(map, mmap(NULL, len, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0), len);
}

/*
 * Map the whole file, so that most files are mapped only once. If this fails, map only the range
 * that is needed.
 */
static int ownmap_map_enough(struct ownmap *map, int fd, uint64_t size, uint64_t end)
{
	size_t need = ownmap_page_up(end), all = ownmap_page_up(size > end ? size : end);
	int ret = ownmap_map(map, fd, all);

	return ret && need < all ? ownmap_map(map, fd, need) : ret;
}

static int ownmap_compare(void *arg, const struct vma *vma)
{
	const struct ownmap_source *from = arg;

	return vma->dev == from->map_dev && vma->ino == from->map_ino ? 0 : -ESTALE;
}

static int ownmap_open_file(struct ownmap_opening *o)
{
	struct stat st;
	int fd = reopen_again(o->from->path_fd, O_RDWR, o->from->st_dev, o->from->st_ino, &st);
	uintptr_t at;
	int ret;

	if (fd < 0)
		return fd;
	ret = ownmap_map_enough(o->map, fd, (uint64_t)st.st_size, o->end);
	close(fd);
	if (ret)
		return ret;
	/* Compare the device and inode numbers that the mapping shows. The numbers of fstat() were
	 * compared before. Both checks are needed: on some file systems the numbers of fstat() do
	 * not identify a file, on other file systems the numbers of the mapping do not. */
	at = (uintptr_t)o->map->base;
	return vma_for_each(at, at + 1, ownmap_compare, (void *)o->from);
}

static void *ownmap_thread(void *arg)
{
	struct ownmap_opening *o = arg;

	pthread_setname_np(pthread_self(), "rpma-open");
	o->result = thread_leave_descriptors() ? ownmap_open_file(o) : -errno;
	return NULL;
}

int ownmap_open(const struct ownmap_source *from, uint64_t end, struct ownmap **out)
{
	struct ownmap_opening o = {.from = from, .end = end, .map = calloc(1, sizeof(*o.map))};
	pthread_t thread;
	int ret;

	if (!o.map)
		return -ENOMEM;
	ret = thread_start(&thread, OWNMAP_STACK, ownmap_thread, &o);
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

/* Map twice the length if possible, because a growing file is registered often. */
int ownmap_extend(struct ownmap *older, uint64_t end, struct ownmap **out)
{
	struct ownmap *map = calloc(1, sizeof(*map));
	size_t need = ownmap_page_up(end), len = need > 2 * older->len ? need : 2 * older->len;
	int ret;

	if (!map)
		return -ENOMEM;
	/* mremap() with an old length of 0 makes a second mapping of the same file description. */
	ret = ownmap_set(map, mremap(older->base, 0, len, MREMAP_MAYMOVE), len);
	if (ret && need < len)
		ret = ownmap_set(map, mremap(older->base, 0, need, MREMAP_MAYMOVE), need);
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
		folio_marks_fini(&map->stored);
		folio_marks_fini(&map->written_back);
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
