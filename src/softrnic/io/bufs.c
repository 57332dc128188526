/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/bufs.h"

#include <pthread.h>
#include <stdlib.h>

#include "softrnic/stream/stream.h"

/* A few free buffers are kept; the surplus after a burst is returned to the system. */
#define BUFS_KEPT 4

static struct {
	pthread_mutex_t lock;
	void *kept[BUF_KINDS][BUFS_KEPT];
	int count[BUF_KINDS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const size_t buf_size[BUF_KINDS] = {[BUF_RX] = QP_RXBUF, [BUF_TX] = QP_TXBUF};

void *buf_get(enum buf_kind kind)
{
	void *buf = NULL;

	pthread_mutex_lock(&pool.lock);
	if (pool.count[kind] > 0)
		buf = pool.kept[kind][--pool.count[kind]];
	pthread_mutex_unlock(&pool.lock);
	return buf ? buf : malloc(buf_size[kind]);
}

void buf_put(enum buf_kind kind, void *buf)
{
	if (!buf)
		return;
	pthread_mutex_lock(&pool.lock);
	if (pool.count[kind] < BUFS_KEPT) {
		pool.kept[kind][pool.count[kind]++] = buf;
		buf = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	free(buf);
}

void bufs_atfork_prepare(void)
{
	pthread_mutex_lock(&pool.lock);
}

void bufs_atfork_release(void)
{
	pthread_mutex_unlock(&pool.lock);
}
