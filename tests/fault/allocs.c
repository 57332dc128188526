/* SPDX-License-Identifier: BSD-3-Clause */
/* allocs.c -- allocations and other requests that fail on demand (allocs.h). */
#include "fault/allocs.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS_MAX = 8192, PLACE_LEN = 256 };

struct block {
	void *ptr;
	size_t size;
	const void *caller;
	unsigned int age;
};

static struct {
	pthread_mutex_t lock;
	struct block block[BLOCKS_MAX];
	unsigned int count, made, mark;
	enum alloc_kind kind;
	unsigned int left; /* requests until one fails; 0: no request fails */
	bool for_good, failed;
	const void *failed_at;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

#pragma GCC visibility push(default)
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_reallocarray(void *ptr, size_t n, size_t size);
void __real_free(void *ptr);
void __wrap_free(void *ptr);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t len);
int __wrap_munmap(void *addr, size_t len);
#pragma GCC visibility pop

bool alloc_must_fail(enum alloc_kind kind, const void *caller)
{
	bool fails = false;

	pthread_mutex_lock(&all.lock);
	if (all.left && all.kind == kind) {
		fails = --all.left == 0;
		if (fails && all.for_good)
			all.left = 1;
	}
	if (fails && !all.failed) {
		all.failed = true;
		all.failed_at = caller;
	}
	pthread_mutex_unlock(&all.lock);
	return fails;
}

static bool allocs_must_fail(const void *caller)
{
	bool fails = alloc_must_fail(ALLOC_MEMORY, caller);

	if (fails)
		errno = ENOMEM;
	return fails;
}

static void *allocs_keep(void *ptr, size_t size, const void *caller)
{
	pthread_mutex_lock(&all.lock);
	if (ptr && all.count == BLOCKS_MAX)
		abort();
	if (ptr)
		all.block[all.count++] = (struct block){ptr, size, caller, ++all.made};
	pthread_mutex_unlock(&all.lock);
	return ptr;
}

/* Call this before free(): after free(), another thread can get a block at the same address. */
static void allocs_forget(const void *ptr)
{
	pthread_mutex_lock(&all.lock);
	for (unsigned int i = all.count; i-- > 0;)
		if (all.block[i].ptr == ptr) {
			all.block[i] = all.block[--all.count];
			break;
		}
	pthread_mutex_unlock(&all.lock);
}

#define CALLER __builtin_return_address(0)

void *__wrap_malloc(size_t size)
{
	return allocs_must_fail(CALLER) ? NULL : allocs_keep(__real_malloc(size), size, CALLER);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocs_must_fail(CALLER) ? NULL
					: allocs_keep(__real_calloc(n, size), n * size, CALLER);
}

static void *allocs_resize(void *ptr, size_t size, const void *caller)
{
	if (allocs_must_fail(caller))
		return NULL;
	allocs_forget(ptr);
	return allocs_keep(__real_realloc(ptr, size), size, caller);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return allocs_resize(ptr, size, CALLER);
}

void *__wrap_reallocarray(void *ptr, size_t n, size_t size)
{
	return allocs_resize(ptr, n * size, CALLER);
}

void __wrap_free(void *ptr)
{
	allocs_forget(ptr);
	__real_free(ptr);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *ptr;

	if (allocs_must_fail(CALLER))
		return MAP_FAILED;
	ptr = __real_mmap(addr, len, prot, flags, fd, offset);
	return ptr == MAP_FAILED ? ptr : allocs_keep(ptr, len, CALLER);
}

int __wrap_munmap(void *addr, size_t len)
{
	allocs_forget(addr);
	return __real_munmap(addr, len);
}

void allocs_arm(enum alloc_kind kind, unsigned int nth, bool for_good)
{
	pthread_mutex_lock(&all.lock);
	all.kind = kind;
	all.left = nth;
	all.for_good = for_good;
	all.failed = false;
	all.failed_at = NULL;
	pthread_mutex_unlock(&all.lock);
}

void allocs_disarm(void)
{
	pthread_mutex_lock(&all.lock);
	all.left = 0;
	pthread_mutex_unlock(&all.lock);
}

bool allocs_failed(void)
{
	bool failed;

	pthread_mutex_lock(&all.lock);
	failed = all.failed;
	pthread_mutex_unlock(&all.lock);
	return failed;
}

static const char *allocs_place_of(const void *caller)
{
	static char text[PLACE_LEN];
	Dl_info info;

	if (!caller || !dladdr(caller, &info))
		return "nowhere";
	/* The return address is after the call, so step back one byte into the call. */
	snprintf(text, sizeof(text), "%s+%#lx", info.dli_fname,
		 (unsigned long)((uintptr_t)caller - 1 - (uintptr_t)info.dli_fbase));
	return text;
}

const char *allocs_failed_at(void)
{
	return allocs_place_of(all.failed_at);
}

unsigned int allocs_live(size_t size)
{
	unsigned int count = 0;

	pthread_mutex_lock(&all.lock);
	for (unsigned int i = 0; i < all.count; i++)
		count += !size || all.block[i].size == size;
	pthread_mutex_unlock(&all.lock);
	return count;
}

unsigned int allocs_live_above(size_t size)
{
	unsigned int count = 0;

	pthread_mutex_lock(&all.lock);
	for (unsigned int i = 0; i < all.count; i++)
		count += all.block[i].size > size;
	pthread_mutex_unlock(&all.lock);
	return count;
}

void allocs_mark(void)
{
	pthread_mutex_lock(&all.lock);
	all.mark = all.made;
	pthread_mutex_unlock(&all.lock);
}

void allocs_print_since_mark(void)
{
	pthread_mutex_lock(&all.lock);
	for (unsigned int i = 0; i < all.count; i++)
		if (all.block[i].age > all.mark)
			fprintf(stderr, "%zu bytes live, made at %s\n", all.block[i].size,
				allocs_place_of(all.block[i].caller));
	pthread_mutex_unlock(&all.lock);
}
