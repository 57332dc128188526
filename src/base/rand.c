/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rand.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define POOL_LEN 512

static pthread_mutex_t rand_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t rand_once = PTHREAD_ONCE_INIT;
static uint8_t rand_pool[POOL_LEN];
static size_t rand_pool_left; /* unused bytes, at the pool's end */
static bool rand_use_pool;    /* false if the handlers of fork() cannot be installed */

/* Hold the lock across fork(), so that the child finds the lock free and the pool consistent. The
 * child drops the pool, because the parent may return the same numbers. */
static void rand_atfork_prepare(void)
{
	pthread_mutex_lock(&rand_lock);
}

static void rand_atfork_parent(void)
{
	pthread_mutex_unlock(&rand_lock);
}

static void rand_atfork_child(void)
{
	rand_pool_left = 0;
	pthread_mutex_unlock(&rand_lock);
}

static void rand_setup(void)
{
	rand_use_pool =
		pthread_atfork(rand_atfork_prepare, rand_atfork_parent, rand_atfork_child) == 0;
}

/* Abort on failure: predictable STags would be a vulnerability. */
static void rand_fill(uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			abort();
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

void rand_bytes(void *buf, size_t len)
{
	pthread_once(&rand_once, rand_setup);
	if (len > POOL_LEN / 4 || !rand_use_pool) {
		rand_fill(buf, len);
		return;
	}
	pthread_mutex_lock(&rand_lock);
	if (rand_pool_left < len) {
		rand_fill(rand_pool, sizeof(rand_pool));
		rand_pool_left = sizeof(rand_pool);
	}
	memcpy(buf, rand_pool + sizeof(rand_pool) - rand_pool_left, len);
	/* Erase a number when it is returned, so that it cannot be read from the pool later. */
	explicit_bzero(rand_pool + sizeof(rand_pool) - rand_pool_left, len);
	rand_pool_left -= len;
	pthread_mutex_unlock(&rand_lock);
}
