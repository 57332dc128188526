/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pagecache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/log.h"

#define PAGECACHE_PAGE   4096u
#define PAGECACHE_WINDOW (256u << 20) /* bytes that are examined at a time */
#define PAGECACHE_COPY   (64u << 10)
/* 100 ms in all: the kernel holds a page without a mapping for a far shorter time */
#define PAGECACHE_TRIES    20
#define PAGECACHE_PAUSE_US 5000u
/* an offset behind all pages, so that sync_file_range() waits for no page */
#define PAGECACHE_BEHIND ((off_t)1 << 62)

struct pagecache {
	_Alignas(PAGECACHE_PAGE) char copy[PAGECACHE_COPY];
	unsigned char cached[PAGECACHE_WINDOW / PAGECACHE_PAGE];
	int fd;
	bool was_written;
	/* a descriptor that bypasses the page cache (O_DIRECT); equal to fd if O_DIRECT is not
	 * possible */
	int direct;
};

static bool pagecache_has_medium(int fd)
{
	struct statfs fs;
	struct statx st;

	if (fstatfs(fd, &fs) || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return false;
	return statx(fd, "", AT_EMPTY_PATH, 0, &st) || !(st.stx_attributes & STATX_ATTR_DAX);
}

/* Find the cached pages of the window, without reading any page. */
static int pagecache_look(int fd, uint64_t offset, size_t len, unsigned char *cached)
{
	void *addr = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	int rc;

	if (addr == MAP_FAILED)
		return -errno;
	rc = mincore(addr, len, cached) ? -errno : 0;
	munmap(addr, len);
	return rc;
}

static size_t pagecache_window(uint64_t left)
{
	return left < PAGECACHE_WINDOW ? (size_t)left : PAGECACHE_WINDOW;
}

static size_t pagecache_pages(size_t len)
{
	return (len + PAGECACHE_PAGE - 1) / PAGECACHE_PAGE;
}

/* A direct write drops the page from the cache, together with the file system's state of the
 * page. */
static ssize_t pagecache_write(const struct pagecache *p, size_t len, uint64_t offset)
{
	ssize_t n = pwrite(p->direct, p->copy, len, (off_t)offset);

	if (n < 0 && errno == EINVAL) /* the file ends within a block */
		n = pwrite(p->fd, p->copy, len, (off_t)offset);
	return n;
}

/* If a write was short, the next pass of the loop writes the rest. */
static int pagecache_rewrite_range(struct pagecache *p, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t len = to - from < sizeof(p->copy) ? (size_t)(to - from) : sizeof(p->copy);
		ssize_t n = pread(p->fd, p->copy, len, (off_t)from);

		if (n <= 0) /* 0: the end of the file */
			return n ? -errno : 0;
		n = pagecache_write(p, (size_t)n, from);
		if (n <= 0)
			return n ? -errno : -EIO;
		p->was_written = true;
		from += (uint64_t)n;
	}
	return 0;
}

/* Rewrite the cached pages of the window that begins at `offset`. */
static int pagecache_rewrite_cached(struct pagecache *p, uint64_t offset, size_t pages)
{
	int rc = 0;

	for (size_t i = 0; i < pages && !rc; i++) {
		size_t first = i;

		while (i < pages && p->cached[i] & 1)
			i++;
		if (i > first)
			rc = pagecache_rewrite_range(p, offset + first * PAGECACHE_PAGE,
						     offset + i * PAGECACHE_PAGE);
	}
	return rc;
}

static int pagecache_rewrite_file(struct pagecache *p)
{
	struct stat st;
	uint64_t size;
	int rc = fstat(p->fd, &st) ? -errno : 0;

	size = rc ? 0 : (uint64_t)st.st_size;
	for (uint64_t at = 0; at < size && !rc; at += PAGECACHE_WINDOW) {
		size_t len = pagecache_window(size - at);

		rc = pagecache_look(p->fd, at, len, p->cached);
		if (!rc)
			rc = pagecache_rewrite_cached(p, at, pagecache_pages(len));
	}
	if (!rc && p->was_written && fdatasync(p->fd))
		rc = -errno;
	return rc;
}

static int pagecache_open(struct pagecache *p, const char *path)
{
	p->was_written = false;
	p->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0)
		return -errno;
	posix_fadvise(p->fd, 0, 0, POSIX_FADV_RANDOM); /* disable read-ahead */
	p->direct = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
	if (p->direct < 0)
		p->direct = p->fd;
	return 0;
}

/* Drop the clean pages that no process has mapped. */
static void pagecache_leave(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int pagecache_clean_and_leave(int fd)
{
	int rc = fdatasync(fd) ? -errno : 0;

	pagecache_leave(fd);
	return rc;
}

static int pagecache_count(int fd, unsigned char *cached, uint64_t *bytes)
{
	struct stat st;
	int rc = fstat(fd, &st) ? -errno : 0;
	uint64_t size = rc ? 0 : (uint64_t)st.st_size;

	*bytes = 0;
	for (uint64_t at = 0; at < size && !rc; at += PAGECACHE_WINDOW) {
		size_t len = pagecache_window(size - at);

		rc = pagecache_look(fd, at, len, cached);
		for (size_t i = 0; i < pagecache_pages(len) && !rc; i++)
			*bytes += cached[i] & 1 ? PAGECACHE_PAGE : 0;
	}
	return rc;
}

/*
 * Try again: the kernel's reclaim or migration of memory, or a process that reads the file, holds
 * a page for a moment and keeps it in the cache. A mapping may hold the page longer than all
 * tries.
 */
static int pagecache_leave_again(int fd, unsigned char *cached, uint64_t *stay)
{
	int rc = pagecache_count(fd, cached, stay);

	for (int i = 0; !rc && *stay && i < PAGECACHE_TRIES; i++) {
		usleep(PAGECACHE_PAUSE_US);
		pagecache_leave(fd);
		rc = pagecache_count(fd, cached, stay);
	}
	return rc;
}

int pagecache_evict(int fd, const char *path, uint64_t *stay, struct error *err)
{
	unsigned char *cached;
	int rc;

	*stay = 0;
	if (!pagecache_has_medium(fd))
		return 0;
	cached = malloc(PAGECACHE_WINDOW / PAGECACHE_PAGE);
	rc = cached ? pagecache_clean_and_leave(fd) : -ENOMEM;
	if (!rc)
		rc = pagecache_leave_again(fd, cached, stay);
	free(cached);
	return rc ? error_set(err, ERROR_LOCAL, -rc, "cannot write %s to its disk: %s", path,
			      strerror(-rc))
		  : 0;
}

static int pagecache_do(const char *path, bool drop)
{
	struct pagecache *p = aligned_alloc(PAGECACHE_PAGE, sizeof(*p));
	int rc = p ? pagecache_open(p, path) : -ENOMEM;

	if (!rc) {
		if (pagecache_has_medium(p->fd)) {
			/* Bytes that cannot be written back were never acknowledged, so dropping
			 * them is permitted. */
			rc = drop ? pagecache_clean_and_leave(p->fd) : 0;
			if (rc)
				LOG_WARNING("%s: %s", path, strerror(-rc));
			rc = pagecache_rewrite_file(p);
		}
		if (p->direct != p->fd)
			close(p->direct);
		close(p->fd);
	}
	free(p);
	return rc;
}

int pagecache_rewrite(const char *path)
{
	return pagecache_do(path, false);
}

int pagecache_drop(const char *path)
{
	return pagecache_do(path, true);
}

int pagecache_lost(int fd)
{
	if (!sync_file_range(fd, PAGECACHE_BEHIND, 1, SYNC_FILE_RANGE_WAIT_BEFORE))
		return 0;
	if (errno != ENOSYS && errno != EINVAL && errno != EPERM)
		return errno;
	/* The kernel lacks sync_file_range(), or a filter of system calls (seccomp) forbids it. */
	return fdatasync(fd) ? errno : 0;
}
