/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_sync() and rpmirror_store8(), made of flushes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/dirty.h"
#include "mirror/errmsg.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define STORE_RUNS 256 /* largest number of runs of pages in one flush */

/* Flush the pages that were stored to, a few at a time; all other pages are equal to the file. */
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
	if (rc)
		return rc;
	return rpmirror_flush(m, &all, !n ? 0 : 1, 0, NULL);
}

/* Flush the extents that may have unflushed stores. Other extents are equal in all copies. */
static int store_sync_direct(struct rpmirror *m)
{
	struct mirror_range *v = NULL;
	uint64_t since_ms;
	uint32_t n;
	int rc;

	set_lock_in_turn(m);
	/* Wait (without the lock) if the set is being given up. From then on, stores to a direct
	 * mapping are private and mark no extent, so a list of extents that is made later lacks
	 * them. */
	since_ms = clock_boot_ms();
	while (!(rc = wait_check(m, since_ms)) && m->quiescing)
		wait_step(m, CLOCK_NEVER);
	if (!rc)
		v = direct_list(m->direct, &n);
	if (!rc)
		rc = v ? flush_stored(m, v, n) : errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
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

/* Limit of repetitions. Another thread may close the extent again before the store, but hardly
 * this often. */
#define STORE_REFUSED_MAX 1000

struct store_word {
	uint64_t *p, value;
	unsigned refused; /* number of faults in an extent that was made writable */
};

static void store_put(void *arg)
{
	const struct store_word *word = arg;

	__atomic_store_n(word->p, word->value, __ATOMIC_RELEASE);
}

/* Try the store. Called with the set's lock. Returns 0; 1: not yet, because the lease is over or
 * the page has to be restored; or an RPMIRROR_E_*. Stores to a direct mapping wait for other
 * threads that need the lock (direct.h). */
static int store_try(struct rpmirror *m, struct store_word *word)
{
	uint64_t offset = UINT64_MAX;
	bool is_done = false;
	int rc = 0;

	if (m->direct) {
		pthread_mutex_unlock(&m->lock);
		rc = direct_make_writable(m->direct,
					  meta_extent_of((uint64_t)((uint8_t *)word->p - m->app)));
		if (!rc)
			is_done = restore_try_store(m, store_put, word, &offset);
		pthread_mutex_lock(&m->lock);
	} else {
		is_done = restore_try_store(m, store_put, word, &offset);
	}
	if (rc && rc != -EACCES)
		return errmsg_fail(RPMIRROR_E_PROVIDER,
				   "set %s: the word cannot be made writable: %s", m->set,
				   strerror(-rc));
	if (!rc && !is_done && offset == UINT64_MAX && ++word->refused == STORE_REFUSED_MAX)
		return errmsg_fail(
			RPMIRROR_E_PROVIDER,
			"set %s: the word cannot be stored to: the application has changed "
			"the protection of the mapping",
			m->set);
	if (!is_done && offset != UINT64_MAX && !restore_wait(m, offset))
		return errmsg_fail(RPMIRROR_E_MEDIUM, "set %s: the word's page cannot be read",
				   m->set);
	return !is_done;
}

/* Store the word. While the lease is over, the mapping may not permit the store. */
static int store_word(struct rpmirror *m, struct store_word *word)
{
	uint64_t since_ms = clock_boot_ms();
	int rc, again = 1;

	set_lock_in_turn(m);
	rc = flush_await_started(m);
	while (again > 0 && !rc && !(rc = wait_check(m, since_ms))) {
		if (m->is_protected)
			wait_step(m, CLOCK_NEVER);
		else
			again = store_try(m, word);
	}
	pthread_mutex_unlock(&m->lock);
	return again < 0 ? again : rc;
}

/*
 * Flushes copy aligned words as a whole. The word is stored only after this thread's earlier
 * flushes are acknowledged, including those of rpmirror_flush_start(). A member may write back any
 * page at any time. So a word that is stored earlier could reach a member's medium before bytes
 * that are still in the member's memory.
 */
int rpmirror_store8(struct rpmirror *m, uint64_t *p, uint64_t value)
{
	struct rpmirror_range range = {p, sizeof(*p)};
	struct store_word word = {.p = p, .value = value};
	uintptr_t at = (uintptr_t)p;
	int rc;

	if (!set_is_usable(m) || !m->has_thread || at % sizeof(*p) || at < (uintptr_t)m->app ||
	    at - (uintptr_t)m->app >= m->size)
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "rpmirror_store8: %p is not an aligned word of a mapped set",
				   (void *)p);
	rc = store_word(m, &word);
	return rc ? rc : rpmirror_flush(m, &range, 1, 0, NULL);
}
