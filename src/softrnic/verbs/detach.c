/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detach.c -- a region is deregistered: connections release it, and threads that use its memory are
 * awaited.
 *
 * The lock of a connection may be held by a thread that waits for a file system, while it uses
 * another region. Deregistration must not wait for that, so it skips such a connection as long as
 * possible, and ends when nothing holds the region, even if not all connections were visited.
 */
#include "softrnic/io/conn.h"
#include "softrnic/persist/persist.h"
#include "softrnic/verbs/device.h"

#define WAIT_MAX_MS   64u
#define FORGET_MAX_MS 16u

/* Returns whether all connections have released it; waits at most wait_ms for each lock. */
static bool detach_from_all(struct mr *mr, bool forget, unsigned wait_ms)
{
	struct conn *c = NULL;
	bool all = true;

	while ((forget || !mr_is_idle(mr)) && (c = conns_next(c)))
		all &= conn_detach_mr(c, mr, forget, wait_ms);
	if (c)
		conn_put(c);
	return all;
}

static void detach(struct mr *mr, bool forget)
{
	unsigned wait_ms = 0;

	while (!detach_from_all(mr, forget, wait_ms) &&
	       (!mr_is_idle(mr) || (forget && wait_ms < FORGET_MAX_MS)))
		wait_ms = wait_ms == 0 ? 1 : wait_ms < WAIT_MAX_MS ? 2 * wait_ms : WAIT_MAX_MS;
	mr_wait_idle(mr);
}

/*
 * Connections keep a note of what was placed in the region and not flushed, unless its file has
 * failed: then these bytes are lost, and no note may keep the failed file's entry alive.
 */
void conns_detach_mr(struct mr *mr)
{
	detach(mr, mr->backing.persist && persist_region_has_failed(mr->backing.persist));
}

/* The region may be gone already, and with it what the binding's backing refers to. */
void conns_detach_binding(struct mr *binding)
{
	detach(binding, false);
}
