/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_preload.c -- if this library is preloaded, write-backs of a copy's data file (the file
 * named "data") pass the points placed_before and placed_after of core/killpoint.h, and calls fail
 * as these variables request:
 *
 *   MEDIUM_FAIL=NAME:ERRNO:N[:M]  The Nth to Mth write-back of the file NAME fails with ERRNO. NAME
 *                                 is data, meta, or sync (fsync(2) of the data file).
 *   MEDIUM_ARM=FILE               Count write-backs only while FILE exists. The first one that
 *                                 fails removes FILE.
 *   MEDIUM_LOG=FILE               Append a byte to FILE for each failure.
 *   MEDIUM_PART=PAGES             A failed write-back of the data file writes this many of the
 *                                 changed pages. The others are dropped, so they read as before.
 *   MEDIUM_UNREADABLE=OFFSET:LEN  While the file of MEDIUM_ARM exists, pread(2) of any part of this
 *                                 range of the data file fails with EIO, and removes that file.
 *   MEDIUM_BAD=OFFSET:LEN         pread(2) of any part of this range of the data file fails with
 *                                 EIO, until pwrite(2) has written to a part of it.
 *   MEDIUM_KILL=1                 A failure kills the process.
 *   MEDIUM_SLOW=MS                While the file of MEDIUM_ARM exists, a write-back of the data
 *                                 file takes this long.
 *   MEDIUM_HANG=FILE              While FILE exists, pread(2) of the data file waits.
 *   MEDIUM_AWAY=FILE              While FILE exists, stat(2) of the data file waits, as on a
 *                                 network file system whose server does not answer.
 *
 * Like in the kernel, sync_file_range(2) reports a loss once to each process that mapped the data
 * file before the loss, whichever process caused the loss. The file data.lost, in the same folder,
 * has a byte for each loss.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mirror/core/killpoint.h"

#define MEDIUM_MAPPINGS 64
#define MEDIUM_PAGE     4096u

enum medium_file { MEDIUM_OTHER, MEDIUM_DATA, MEDIUM_META, MEDIUM_SYNC };

static struct medium_mapping {
	uintptr_t start, end;
	uint64_t offset; /* offset in the file */
	enum medium_file file;
} medium_mappings[MEDIUM_MAPPINGS];

static unsigned medium_counts[MEDIUM_SYNC + 1];

static char medium_lost_path[PATH_MAX + 8];
static off_t medium_lost_seen;

/* The content of the data file's medium, for MEDIUM_PART. */
static struct {
	/* file: the first shared mapping of the data file; medium: the medium's content; NULL: not
	 * needed */
	uint8_t *file, *medium;
	size_t len;
} medium_shadow;

static enum medium_file medium_of_path(const char *path)
{
	const char *name = strrchr(path, '/');

	if (name && !strcmp(name, "/data"))
		return MEDIUM_DATA;
	return name && !strcmp(name, "/data.rpmirror") ? MEDIUM_META : MEDIUM_OTHER;
}

/* A thread of the software RNIC has its own table of descriptors. */
static void medium_path_of_fd(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
}

static enum medium_file medium_of_fd(int fd)
{
	char path[PATH_MAX];

	medium_path_of_fd(fd, path);
	return medium_of_path(path);
}

static const struct medium_mapping *medium_of_addr(const void *addr)
{
	static const struct medium_mapping none;

	for (unsigned i = 0; i < MEDIUM_MAPPINGS; i++)
		if ((uintptr_t)addr >= medium_mappings[i].start &&
		    (uintptr_t)addr < medium_mappings[i].end)
			return &medium_mappings[i];
	return &none;
}

static void medium_append(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "", 1) != 1)
		abort();
	close(fd);
}

/* ---- what was lost ---- */

static off_t medium_lost(void)
{
	struct stat st;

	return stat(medium_lost_path, &st) ? 0 : st.st_size;
}

static void medium_lost_begin(int fd)
{
	char path[PATH_MAX];

	if (medium_lost_path[0])
		return;
	medium_path_of_fd(fd, path);
	snprintf(medium_lost_path, sizeof(medium_lost_path), "%s.lost", path);
	medium_lost_seen = medium_lost();
}

static void medium_lose(void)
{
	medium_append(medium_lost_path);
}

/* ---- what is on the medium ---- */

static void medium_shadow_begin(uint8_t *file, size_t len)
{
	if (!getenv("MEDIUM_PART") || medium_shadow.medium)
		return;
	medium_shadow.medium = malloc(len);
	if (!medium_shadow.medium)
		abort();
	memcpy(medium_shadow.medium, file, len);
	medium_shadow.file = file;
	medium_shadow.len = len;
}

static void medium_shadow_end(const void *file)
{
	if (file != medium_shadow.file)
		return;
	free(medium_shadow.medium);
	medium_shadow.medium = NULL;
	medium_shadow.file = NULL;
}

/* Let `pages` of the changed pages of [from, to) reach the medium, and drop the others. */
static void medium_shadow_write(size_t from, size_t to, unsigned pages)
{
	for (size_t at = from; medium_shadow.medium && at < to; at += MEDIUM_PAGE) {
		uint8_t *file = medium_shadow.file + at, *medium = medium_shadow.medium + at;

		if (!memcmp(file, medium, MEDIUM_PAGE))
			continue;
		if (pages)
			memcpy(medium, file, MEDIUM_PAGE);
		else
			memcpy(file, medium, MEDIUM_PAGE);
		pages -= pages != 0;
	}
}

/* Record whether the range of a file was written back: fault is 0, or an errno. */
static void medium_settle(enum medium_file file, size_t from, size_t to, int fault)
{
	const char *part = getenv("MEDIUM_PART");

	if (file == MEDIUM_DATA && part)
		medium_shadow_write(from, to < medium_shadow.len ? to : medium_shadow.len,
				    fault ? (unsigned)atoi(part) : UINT_MAX);
}

/* ---- faults ---- */

static bool medium_is_armed(void)
{
	const char *arm = getenv("MEDIUM_ARM");

	return !arm || !access(arm, F_OK);
}

/* Returns 0, or the errno with which this write-back fails. */
static int medium_fault(enum medium_file file)
{
	static const char *const names[] = {"", "data", "meta", "sync"};
	const char *order = getenv("MEDIUM_FAIL"), *arm = getenv("MEDIUM_ARM");
	static bool has_failed;
	unsigned error, first, last = UINT_MAX, count;
	char name[8];
	int got;

	if (file == MEDIUM_OTHER || !(has_failed || medium_is_armed()))
		return 0;
	count = __atomic_add_fetch(&medium_counts[file], 1, __ATOMIC_RELAXED);
	got = order ? sscanf(order, "%7[a-z]:%u:%u:%u", name, &error, &first, &last) : 0;
	if (got < 3 || strcmp(name, names[file]) != 0 || count < first || count > last)
		return 0;
	if (arm && !has_failed)
		unlink(arm);
	has_failed = true;
	if (file == MEDIUM_DATA)
		medium_lose();
	if (getenv("MEDIUM_LOG"))
		medium_append(getenv("MEDIUM_LOG"));
	if (getenv("MEDIUM_KILL"))
		raise(SIGKILL);
	return (int)error;
}

static void medium_delay(enum medium_file file)
{
	const char *slow = getenv("MEDIUM_SLOW");

	if (slow && file == MEDIUM_DATA && medium_is_armed())
		usleep((unsigned)atoi(slow) * 1000);
}

/* ---- what cannot be read ---- */

static bool medium_cannot_read(int fd, uint64_t from, uint64_t to)
{
	const char *order = getenv("MEDIUM_UNREADABLE"), *arm = getenv("MEDIUM_ARM");
	unsigned long long offset, len;

	return order && arm && sscanf(order, "%llu:%llu", &offset, &len) == 2 &&
	       from < offset + len && to > offset && medium_of_fd(fd) == MEDIUM_DATA &&
	       !unlink(arm);
}

static bool medium_is_cured; /* true: a write has made the range of MEDIUM_BAD readable */

static bool medium_is_bad(int fd, uint64_t from, uint64_t to)
{
	const char *order = getenv("MEDIUM_BAD");
	unsigned long long offset, len;

	return order && !medium_is_cured && sscanf(order, "%llu:%llu", &offset, &len) == 2 &&
	       from < offset + len && to > offset && medium_of_fd(fd) == MEDIUM_DATA;
}

int stat(const char *restrict path, struct stat *restrict st)
{
	static int (*next)(const char *, struct stat *);
	const char *away = getenv("MEDIUM_AWAY");

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "stat");
	while (away && medium_of_path(path) == MEDIUM_DATA && !access(away, F_OK))
		usleep(1000);
	return next(path, st);
}

static void medium_hang(int fd)
{
	const char *hang = getenv("MEDIUM_HANG");

	while (hang && medium_of_fd(fd) == MEDIUM_DATA && !access(hang, F_OK))
		usleep(1000);
}

static void medium_point(enum medium_file file, enum killpoint point)
{
	if (file == MEDIUM_DATA)
		killpoint(point);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	static void *(*next)(void *, size_t, int, int, int, off_t);
	enum medium_file file = fd >= 0 ? medium_of_fd(fd) : MEDIUM_OTHER;
	void *p;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "mmap");
	p = next(addr, len, prot, flags, fd, offset);
	if (p != MAP_FAILED && file == MEDIUM_DATA)
		medium_lost_begin(fd);
	if (p != MAP_FAILED && file == MEDIUM_DATA && flags & MAP_SHARED && prot & PROT_WRITE)
		medium_shadow_begin(p, len);
	for (unsigned i = 0; p != MAP_FAILED && file && i < MEDIUM_MAPPINGS; i++) {
		uintptr_t none = 0;

		if (!__atomic_compare_exchange_n(&medium_mappings[i].start, &none, (uintptr_t)p,
						 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		medium_mappings[i].file = file;
		medium_mappings[i].offset = (uint64_t)offset;
		__atomic_store_n(&medium_mappings[i].end, (uintptr_t)p + len, __ATOMIC_RELEASE);
		break;
	}
	return p;
}

int munmap(void *addr, size_t len)
{
	static int (*next)(void *, size_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "munmap");
	for (unsigned i = 0; i < MEDIUM_MAPPINGS; i++)
		if (medium_mappings[i].start == (uintptr_t)addr) {
			medium_mappings[i].end = 0;
			__atomic_store_n(&medium_mappings[i].start, 0, __ATOMIC_RELEASE);
		}
	medium_shadow_end(addr);
	return next(addr, len);
}

int msync(void *addr, size_t len, int flags)
{
	static int (*next)(void *, size_t, int);
	const struct medium_mapping *mapping = medium_of_addr(addr);
	size_t from = (uintptr_t)addr - mapping->start + mapping->offset;
	enum medium_file file = mapping->file;
	int fault = medium_fault(file), rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "msync");
	medium_point(file, KILLPOINT_placed_before);
	medium_delay(file);
	rc = next(addr, len, flags);
	medium_settle(file, from, from + len, fault);
	medium_point(file, KILLPOINT_placed_after);
	if (!fault)
		return rc;
	errno = fault;
	return -1;
}

int fdatasync(int fd)
{
	static int (*next)(int);
	enum medium_file file = medium_of_fd(fd);
	int fault = medium_fault(file), rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fdatasync");
	medium_point(file, KILLPOINT_placed_before);
	medium_delay(file);
	rc = next(fd);
	medium_settle(file, 0, SIZE_MAX, fault);
	medium_point(file, KILLPOINT_placed_after);
	if (!fault)
		return rc;
	errno = fault;
	return -1;
}

int fsync(int fd)
{
	static int (*next)(int);
	int fault = medium_of_fd(fd) == MEDIUM_DATA ? medium_fault(MEDIUM_SYNC) : 0, rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fsync");
	rc = next(fd);
	if (!fault)
		return rc;
	errno = fault;
	return -1;
}

int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
	static int (*next)(int, off_t, off_t, unsigned);
	bool asks = flags == SYNC_FILE_RANGE_WAIT_BEFORE && medium_of_fd(fd) == MEDIUM_DATA;
	off_t lost = asks ? medium_lost() : 0;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sync_file_range");
	if (lost <= medium_lost_seen)
		return next(fd, offset, len, flags);
	medium_lost_seen = lost;
	errno = EIO;
	return -1;
}

ssize_t pread(int fd, void *bytes, size_t len, off_t offset)
{
	static ssize_t (*next)(int, void *, size_t, off_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pread");
	medium_hang(fd);
	if (!medium_cannot_read(fd, (uint64_t)offset, (uint64_t)offset + len) &&
	    !medium_is_bad(fd, (uint64_t)offset, (uint64_t)offset + len))
		return next(fd, bytes, len, offset);
	errno = EIO;
	return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	static ssize_t (*next)(int, const void *, size_t, off_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pwrite");
	if (medium_is_bad(fd, (uint64_t)offset, (uint64_t)offset + len))
		medium_is_cured = true;
	return next(fd, bytes, len, offset);
}
