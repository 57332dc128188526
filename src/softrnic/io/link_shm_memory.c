/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "softrnic/io/config.h"
#include "softrnic/io/memory_limit.h"

#define MEMORY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MEMORY_RINGS 2

/*
 * A connection takes at most this share of the remaining memory, unless its rings have the least
 * size.
 */
#define MEMORY_SHARE       16
#define MEMORY_RING_MODEST (64u << 10)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Layout: the first page contains the shared parts of both rings. The bytes of the rings follow. */
struct memory_end { /* one cache line for each end; an end writes only its own line */
	_Alignas(RING_LINE) atomic_uint given_up;
};
struct memory_head {
	struct ring_shared ring[MEMORY_RINGS];
	struct memory_end end[MEMORY_RINGS];
};
_Static_assert(sizeof(struct memory_head) <= SHM_RING_MIN, "it fits in a page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
	       "positions are shared with another process");

/* Number of bytes that all connections of this process have mapped. */
static _Atomic uint64_t memory_mapped;

static uint64_t memory_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t memory_len(uint64_t ring_size)
{
	return memory_page() + MEMORY_RINGS * ring_size;
}

static bool memory_is_valid_size(uint64_t ring_size)
{
	return ring_size >= SHM_RING_MIN && ring_size <= SHM_RING_MAX &&
	       ring_size % memory_page() == 0 && (ring_size & (ring_size - 1)) == 0;
}

static bool memory_is_modest(uint64_t ring_size)
{
	uint64_t max = config_get()->shm_max, mapped = atomic_load(&memory_mapped);

	return mapped < max && MEMORY_RINGS * ring_size <= (max - mapped) / MEMORY_SHARE &&
	       memory_limit_permits_file(memory_len(ring_size));
}

uint64_t shm_memory_ring_size(uint64_t peers)
{
	uint64_t size = config_get()->shm_ring;

	while (size > MEMORY_RING_MODEST && !memory_is_modest(size))
		size /= 2;
	return memory_is_valid_size(peers) && peers < size ? peers : size;
}

static int memory_map(int fd, uint64_t ring_size, struct shm_memory *m)
{
	uint64_t len = memory_len(ring_size);
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int ret;

	if (base == MAP_FAILED)
		return -errno;
	/* Exclude the memory from fork(): a forked child that writes to the rings would disturb its
	 * parent's connection. */
	if (madvise(base, len, MADV_DONTFORK) || madvise(base, len, MADV_POPULATE_WRITE)) {
		ret = -errno;
		munmap(base, len);
		return ret;
	}
	madvise(base, len, MADV_DONTDUMP);
	*m = (struct shm_memory){.base = base, .ring_size = ring_size};
	return 0;
}

static int memory_map_reserved(int fd, uint64_t ring_size, struct shm_memory *m)
{
	uint64_t len = memory_len(ring_size), before = atomic_fetch_add(&memory_mapped, len);
	int ret;

	if (before + len > config_get()->shm_max)
		ret = -EDQUOT;
	else if (!memory_limit_permits(len, "/proc/self/cgroup", "/sys/fs/cgroup"))
		ret = -ENOMEM;
	else
		ret = memory_map(fd, ring_size, m);
	if (ret)
		atomic_fetch_sub(&memory_mapped, len);
	return ret;
}

int shm_memory_new(uint64_t ring_size, struct shm_memory *m, int *fd)
{
	int ret = 0;

	if (!memory_limit_permits_file(memory_len(ring_size)))
		return -EFBIG;
	*fd = memfd_create("softrnic", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)memory_len(ring_size)) || fcntl(*fd, F_ADD_SEALS, MEMORY_SEALS))
		ret = -errno;
	if (!ret)
		ret = memory_map_reserved(*fd, ring_size, m);
	if (ret)
		close(*fd);
	return ret;
}

enum shm_state shm_memory_why(int err)
{
	switch (err) {
	case -EDQUOT:
		return SHM_WHY_MAX;
	case -EFBIG:
		return SHM_WHY_FILE;
	case -ENOMEM:
		return SHM_WHY_MEMORY;
	case -EPERM:
		return SHM_WHY_SEALS;
	default:
		return SHM_WHY_MAP;
	}
}

int shm_memory_take(int fd, uint64_t ring_size, struct shm_memory *m)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (!memory_is_valid_size(ring_size) || seals < 0 ||
	    (seals & MEMORY_SEALS) != MEMORY_SEALS || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != memory_len(ring_size))
		return -EPERM;
	/* The file must have all its pages. Files of huge pages, and files with other seals, are
	 * refused, because their pages can be missing. */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || (uint64_t)fs.f_bsize != memory_page())
		return -EPERM;
	return memory_map_reserved(fd, ring_size, m);
}

void shm_memory_free(struct shm_memory *m)
{
	if (!m->base)
		return;
	munmap(m->base, memory_len(m->ring_size));
	atomic_fetch_sub(&memory_mapped, memory_len(m->ring_size));
	m->base = NULL;
}

void shm_memory_forked(struct shm_memory *m)
{
	if (m->base)
		atomic_fetch_sub(&memory_mapped, memory_len(m->ring_size));
	m->base = NULL;
}

void shm_memory_ring(const struct shm_memory *m, unsigned which, struct ring *r)
{
	struct memory_head *head = m->base;
	uint8_t *bytes = (uint8_t *)m->base + memory_page() + which * m->ring_size;

	ring_init(r, &head->ring[which], bytes, m->ring_size);
}

/*
 * The word by which an end gives up its bytes. An end of a version without this word leaves it 0.
 */
atomic_uint *shm_memory_given_up(const struct shm_memory *m, unsigned which)
{
	struct memory_head *head = m->base;

	return &head->end[which].given_up;
}
