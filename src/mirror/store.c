/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_sync() and rpmirror_store8(), in terms of flushes. */
#include <stdlib.h>

#include "mirror/dirty.h"
#include "mirror/errmsg.h"
#include "mirror/set.h"

#define STORE_RUNS 256 /* of pages, in one flush */

/* Pages that were stored to, a few at a time; what was not is as the file has it. */
static int store_sync_isolated(struct rpmirror *m)
{
	struct rpmirror_range v[STORE_RUNS], all = {m->app, m->size};
	struct dirty_scan scan;
	int n, rc = 0;

	if (!dirty_begin(&scan, m->app, m->size))
		return rpmirror_flush(m, &all, 1, 0, NULL);
	while (!rc && (n = dirty_next(&scan, v, STORE_RUNS)) > 0)
		rc = rpmirror_flush(m, v, (unsigned)n, 0, NULL);
	dirty_end(&scan);
	if (rc || !n)
		return rc;
	return rpmirror_flush(m, &all, 1, 0, NULL);
}

/* What was never stored to, or was flushed since it was, is equal everywhere. */
static int store_sync_direct(struct rpmirror *m)
{
	struct mirror_range *v;
	uint32_t n;
	int rc;

	pthread_mutex_lock(&m->lock);
	v = direct_list(m->direct, &n);
	rc = v ? flush_whole(m, v, n) : errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
	free(v); /* used up */
	v = rc ? NULL : direct_list(m->direct, &n);
	if (v)
		direct_on_flush(m->direct, v, n);
	pthread_mutex_unlock(&m->lock);
	free(v);
	return rc;
}

int rpmirror_sync(struct rpmirror *m, const void *addr, size_t len)
{
	struct rpmirror_range range = {addr, len};

	if (!addr && !len && set_is_usable(m) && m->has_thread)
		return m->direct ? store_sync_direct(m) : store_sync_isolated(m);
	return rpmirror_flush(m, &range, 1, 0, NULL);
}

/*
 * A flush takes aligned words whole, in the order of its numbers, and what this thread flushed
 * before is acknowledged: hence the order. The store happens before the snapshot that contains it.
 */
int rpmirror_store8(struct rpmirror *m, uint64_t *p, uint64_t value)
{
	struct rpmirror_range range = {p, sizeof(*p)};
	uintptr_t at = (uintptr_t)p;

	if (!set_is_usable(m) || !m->has_thread || at % sizeof(*p) || at < (uintptr_t)m->app ||
	    at - (uintptr_t)m->app >= m->size)
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "rpmirror_store8: %p is not an aligned word of a mapped set",
				   (void *)p);
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
	return rpmirror_flush(m, &range, 1, 0, NULL);
}
