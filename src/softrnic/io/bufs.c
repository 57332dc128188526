/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/bufs.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "softrnic/stream/stream.h"

/* Number of free buffers that the pool keeps. Further free buffers are returned to the system. */
#define BUFS_KEPT 4

/* Each entry holds a buffer or NULL. Each send and each receive borrows a buffer, so an entry is
 * taken or filled by one atomic exchange, without a lock. */
static void *_Atomic kept[BUF_KINDS][BUFS_KEPT];

static const size_t buf_size[BUF_KINDS] = {[BUF_RX] = QP_RXBUF, [BUF_TX] = QP_TXBUF};

void *buf_get(enum buf_kind kind)
{
	for (int i = 0; i < BUFS_KEPT; i++) {
		void *buf = NULL;

		if (atomic_load_explicit(&kept[kind][i], memory_order_relaxed))
			buf = atomic_exchange_explicit(&kept[kind][i], NULL, memory_order_acquire);
		if (buf)
			return buf;
	}
	return malloc(buf_size[kind]);
}

void buf_put(enum buf_kind kind, void *buf)
{
	for (int i = 0; i < BUFS_KEPT && buf; i++)
		if (!atomic_load_explicit(&kept[kind][i], memory_order_relaxed))
			buf = atomic_exchange_explicit(&kept[kind][i], buf, memory_order_acq_rel);
	free(buf);
}
