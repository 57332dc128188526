/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_malloc.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_REPLACED 0
#elif defined(__has_feature)
#define IS_REPLACED !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_REPLACED 1
#endif

#if IS_REPLACED
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool is_mine;

static void enter(void)
{
	static const char text[] = "malloc() while its lock is held\n";

	if (is_mine) {
		ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

		(void)n;
		_exit(3);
	}
	pthread_mutex_lock(&lock);
}

#define ENTERED(type, call)                                                                        \
	({                                                                                         \
		type result_;                                                                      \
		enter();                                                                           \
		result_ = (call);                                                                  \
		pthread_mutex_unlock(&lock);                                                       \
		result_;                                                                           \
	})

void *malloc(size_t size)
{
	return ENTERED(void *, __libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return ENTERED(void *, __libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	return ENTERED(void *, __libc_realloc(p, size));
}

void *memalign(size_t align, size_t size)
{
	return ENTERED(void *, __libc_memalign(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
	return ENTERED(void *, __libc_memalign(align, size));
}

int posix_memalign(void **out, size_t align, size_t size)
{
	void *p = ENTERED(void *, __libc_memalign(align, size));

	*out = p;
	return p ? 0 : ENOMEM;
}

void free(void *p)
{
	enter();
	__libc_free(p);
	pthread_mutex_unlock(&lock);
}

bool malloc_hold(void)
{
	enter();
	is_mine = true;
	return true;
}

void malloc_release(void)
{
	is_mine = false;
	pthread_mutex_unlock(&lock);
}
#else
bool malloc_hold(void)
{
	return false;
}

void malloc_release(void)
{
}
#endif
