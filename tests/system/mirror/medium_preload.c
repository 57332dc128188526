/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_preload.c -- LD_PRELOAD: write-backs of a copy's data file (the file called "data") pass
 * the points placed_before and placed_after of core/killpoint.h, and fail where asked:
 *
 *   MEDIUM_FAIL=NAME:ERRNO:N[:M]   the Nth to Mth write-back of the file NAME fails with that errno
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mirror/core/killpoint.h"

#define MEDIUM_MAPPINGS 64

enum medium_file { MEDIUM_OTHER, MEDIUM_DATA, MEDIUM_META };

static struct medium_mapping {
	uintptr_t start, end;
	enum medium_file file;
} medium_mappings[MEDIUM_MAPPINGS];

static unsigned medium_counts[MEDIUM_META + 1];

static enum medium_file medium_of_path(const char *path)
{
	const char *name = strrchr(path, '/');

	if (name && !strcmp(name, "/data"))
		return MEDIUM_DATA;
	return name && !strcmp(name, "/data.rpmirror") ? MEDIUM_META : MEDIUM_OTHER;
}

/* A thread of the software RNIC has descriptors of its own. */
static enum medium_file medium_of_fd(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return medium_of_path(path);
}

static enum medium_file medium_of_addr(const void *addr)
{
	for (unsigned i = 0; i < MEDIUM_MAPPINGS; i++)
		if ((uintptr_t)addr >= medium_mappings[i].start &&
		    (uintptr_t)addr < medium_mappings[i].end)
			return medium_mappings[i].file;
	return MEDIUM_OTHER;
}

/* 0, or the errno that this write-back is to have. */
static int medium_fault(enum medium_file file)
{
	static const char *const names[] = {"", "data", "meta"};
	const char *order = getenv("MEDIUM_FAIL");
	unsigned error, first, last = UINT_MAX, count;
	char name[8];
	int got;

	if (file == MEDIUM_OTHER)
		return 0;
	count = __atomic_add_fetch(&medium_counts[file], 1, __ATOMIC_RELAXED);
	got = order ? sscanf(order, "%7[a-z]:%u:%u:%u", name, &error, &first, &last) : 0;
	if (got < 3 || strcmp(name, names[file]) != 0 || count < first || count > last)
		return 0;
	return (int)error;
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
	for (unsigned i = 0; p != MAP_FAILED && file && i < MEDIUM_MAPPINGS; i++) {
		uintptr_t none = 0;

		if (!__atomic_compare_exchange_n(&medium_mappings[i].start, &none, (uintptr_t)p,
						 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		medium_mappings[i].file = file;
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
	return next(addr, len);
}

int msync(void *addr, size_t len, int flags)
{
	static int (*next)(void *, size_t, int);
	enum medium_file file = medium_of_addr(addr);
	int fault = medium_fault(file), rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "msync");
	medium_point(file, KILLPOINT_placed_before);
	rc = next(addr, len, flags);
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
	rc = next(fd);
	medium_point(file, KILLPOINT_placed_after);
	if (!fault)
		return rc;
	errno = fault;
	return -1;
}
