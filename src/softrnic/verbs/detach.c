/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detach.c -- makes connections release a region that is deregistered, and waits for threads that
 * use its memory.
 *
 * The lock of a connection may be held by a thread that uses another region and waits for a file
 * system. Deregistration must not wait for that thread, so it skips this connection as long as
 * possible. Deregistration ends when nothing holds the region any more, even if some connections
 * were skipped.
 */
#include "softrnic/io/conn.h"
#include "softrnic/persist/persist.h"
#include "softrnic/verbs/device.h"

#define WAIT_MAX_MS   64u
#define FORGET_MAX_MS 16u

/* Make all connections release the region. Waits at most wait_ms for each lock. Returns true if all
 * connections have released it. */
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
 * Connections keep a record of bytes that were placed in the region and not flushed. If the
 * region's file has failed, these bytes are lost, and connections must forget them, because a
 * record would keep the entry of the failed file alive.
 */
void conns_detach_mr(struct mr *mr)
{
	detach(mr, mr->backing.persist && persist_region_has_failed(mr->backing.persist));
}

/* The region may already be gone, and with it the object that the binding's backing points to. So
 * do not access the backing. */
void conns_detach_binding(struct mr *binding)
{
	detach(binding, false);
}
