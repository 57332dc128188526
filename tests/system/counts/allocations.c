/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocations.c -- if this library is preloaded, it counts the allocations and the mutex locks of
 * all threads. When the process exits, it appends a line "ALLOCATIONS MUTEXES" to the file
 * $ALLOCATIONS. Locks that are compiled inline are not counted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
int __pthread_mutex_lock(pthread_mutex_t *mutex);
int __pthread_mutex_trylock(pthread_mutex_t *mutex);

static atomic_ulong allocations, mutexes;

static void count(atomic_ulong *of)
{
	atomic_fetch_add_explicit(of, 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
	count(&allocations);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count(&allocations);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	count(&allocations);
	return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	count(&allocations);
	return __libc_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	count(&allocations);
	*p = __libc_memalign(align, size);
	return *p ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	count(&mutexes);
	return __pthread_mutex_lock(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	count(&mutexes);
	return __pthread_mutex_trylock(mutex);
}

__attribute__((destructor)) static void report(void)
{
	unsigned long a = allocations, m = mutexes;
	const char *path = getenv("ALLOCATIONS");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%lu %lu\n", a, m);
	fclose(f);
}
