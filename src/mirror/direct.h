/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h -- a direct mapping: the application's stores reach the file immediately.
 *
 * The file is mapped shared, and each extent (core/extents.h) is read-only until the first store to
 * it faults. Then a slot names the extent durably (W2), and the extent is opened. A thread keeps
 * slots in reserve: if an extent was not flushed for a long time, the thread flushes the extent and
 * takes back its slot. Everything else works as in an isolated mapping, except that a flush needs
 * no slots, and takes its snapshot from the file's other mapping.
 *
 * Locks: code that needs both locks takes the set's lock first, then `lock`, which handlers take.
 * A handler that waits for a slot waits for the thread, which needs the set's lock. So no code
 * stores to the mapping while it holds the set's lock.
 */
#ifndef MIRROR_DIRECT_H
#define MIRROR_DIRECT_H

#include <pthread.h>
#include <signal.h>

#include "base/siglock.h"
#include "mirror/core/extents.h"
#include "mirror/core/types.h"

struct rpmirror;
struct fault_watch;

struct direct {
	struct rpmirror *m;
	struct siglock lock; /* protects the members up to `thread` */
	/* notified when an extent has changed, for threads that wait to store */
	struct siglock_event change;
	struct siglock_event work; /* notified when there is work for the thread */
	struct extents extents;
	bool is_barred; /* the application can neither load nor store (guard.h) */
	bool is_frozen; /* stores are private from now on */
	struct fault_watch *watch;
	pthread_t thread;
	bool has_thread;
	/* flags for the thread; the set's lock protects these and all members below */
	bool stopping, closing;
	/* members to which a resync has sent stores that other members lack */
	mirror_mask carried;
	bool is_closed; /* the close has finished, and no unflushed store is left */
	bool is_cold;   /* all extents were made cold; false if that failed */
};

/* Map the file at the future value of m->app. Returns MAP_FAILED with errno on failure. */
void *direct_map(const struct rpmirror *m, void *hint, int flags);
/* Permit stores from now on. Called with the set's lock. Returns 0 or an RPMIRROR_E_*. */
int direct_open(struct rpmirror *m);
/* direct_close() freezes the mapping, makes all extents cold, and ends the thread and the watch of
 * faults; other threads may still use the object. direct_delete() frees the object. The caller does
 * not hold the set's lock; m->direct may be NULL. */
void direct_close(struct rpmirror *m);
void direct_delete(struct rpmirror *m);

/* The functions below are called with the set's lock, unless noted otherwise. */

/* Make loads and stores of the application fault, or no longer fault. Returns false if the system
 * refuses. */
bool direct_bar(struct direct *d, bool bar);
/* Freeze the mapping, and let the thread make all extents cold; afterwards the thread sets
 * is_closed. */
void direct_begin_close(struct direct *d);
/* Report that the application has flushed these ranges. */
void direct_on_flush(struct direct *d, const struct mirror_range *v, uint32_t n);
/* Returns true if the extent may have stores that were not flushed, so that other copies may lack
 * them. */
bool direct_may_differ(struct direct *d, uint32_t extent);
/* Returns the ranges that may be unflushed, ascending; the caller frees the array. NULL: out of
 * memory. */
struct mirror_range *direct_list(struct direct *d, uint32_t *n);
/*
 * Report that a resync has copied stores, which may be unflushed, to a member, and that the member
 * has recorded them. The thread flushes these stores to all members, and then sets that member's
 * `settled`. m->direct may be NULL. Returns false if there is nothing to flush.
 */
bool direct_on_carried(struct rpmirror *m, unsigned slot);

/* Make the extent writable, so that a store to it need not fault. Called without the set's lock.
 * Returns 0, -EACCES (all stores are barred) or -ENOMEM. */
int direct_make_writable(struct direct *d, uint32_t extent);

/* direct_thread.c: the thread of a direct mapping. */
void *direct_main(void *d);
/* Change the protection of an extent, unless the whole mapping is barred or frozen. Called with
 * d->lock. */
bool direct_protect(struct direct *d, uint32_t extent, int protection);
struct mirror_range direct_range(const struct direct *d, uint32_t extent);

#endif
