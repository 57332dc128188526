/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rand.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define POOL_LEN 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t pool[POOL_LEN];
static size_t pool_left; /* unused bytes, at the pool's end */
static bool use_pool;    /* only where a child is kept from what its parent uses */

/* The lock is held across fork(), so a child finds it free and the pool consistent; what the
 * parent may hand out from the pool is not the child's to use. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	pool_left = 0;
	pthread_mutex_unlock(&lock);
}

static void setup(void)
{
	use_pool = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

/* There is no safe way to go on with guessable STags, hence abort(). */
static void fill(uint8_t *p, size_t len)
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
	pthread_once(&once, setup);
	if (len > POOL_LEN / 4 || !use_pool) {
		fill(buf, len);
		return;
	}
	pthread_mutex_lock(&lock);
	if (pool_left < len) {
		fill(pool, sizeof(pool));
		pool_left = sizeof(pool);
	}
	memcpy(buf, pool + sizeof(pool) - pool_left, len);
	/* What was handed out must not be found in memory later. */
	explicit_bzero(pool + sizeof(pool) - pool_left, len);
	pool_left -= len;
	pthread_mutex_unlock(&lock);
}
