/* SPDX-License-Identifier: BSD-3-Clause */
/* life_ops.c -- the parts of a life with batches, messages gathered from segments, and queries of
 * the target. */
#include "fault/life_impl.h"

enum { BATCH_SIZE = 3 };

static void life_batch(struct life *l)
{
	struct rpma_batch *b = NULL;

	MAKE(l, &b, rpma_batch_new, l->active, BATCH_SIZE);
	if (l->over)
		return;
	STEP(l, rpma_batch_write, b, l->remote, 8192, l->mr, 0, 1000, RPMA_F_COMPLETION_ON_ERROR,
	     NULL);
	STEP(l, rpma_batch_flush, b, l->remote, 8192, 1000, RPMA_FLUSH_TYPE_PERSISTENT,
	     RPMA_F_COMPLETION_ON_ERROR, NULL);
	STEP(l, rpma_batch_atomic_write, b, l->remote, 12288, "01234567", RPMA_F_COMPLETION_ALWAYS,
	     NULL);
	STEP(l, rpma_batch_post, b);
	life_await_active(l, false);
	RELEASE(l, rpma_batch_delete, &b);
}

static void life_gathered(struct life *l)
{
	struct rpma_segment parts[2] = {{l->mr, 0, LIFE_MSG / 2}, {l->mr, 4096, LIFE_MSG / 2}};

	STEP(l, rpma_srq_recv, l->srq, l->mr, 8192, LIFE_MSG, NULL);
	STEP(l, rpma_send_gather, l->active, parts, 2, RPMA_F_COMPLETION_ALWAYS, NULL);
	life_await_active(l, false);
	life_await_passive(l, true);
}

/* Make only the queries that the peer supports. */
static void life_queries(struct life *l)
{
	const int always = RPMA_F_COMPLETION_ALWAYS;
	enum rpma_durability durability;
	struct rpma_digest digest;
	uint32_t caps = 0;

	if (l->over)
		return;
	rpma_conn_get_remote_caps(l->active, &caps);
	if (!(caps & RPMA_CAP_VERIFY))
		return;
	STEP(l, rpma_flush_all, l->active, RPMA_FLUSH_TYPE_PERSISTENT, always, NULL);
	life_await_active(l, false);
	STEP(l, rpma_query_durability, l->active, l->remote, 8192, 4096, &durability, always, NULL);
	life_await_active(l, false);
	STEP(l, rpma_verify, l->active, l->remote, 8192, 8192, RPMA_DIGEST_AUTO, &digest, always,
	     NULL);
	life_await_active(l, false);
}

void life_use_more(struct life *l)
{
	life_batch(l);
	life_gathered(l);
	life_queries(l);
}
