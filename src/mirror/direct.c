/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/thread.h"
#include "mirror/core/killpoint.h"
#include "mirror/errmsg.h"
#include "mirror/fault.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define DIRECT_WAIT_MS 100 /* a store that waits checks again after this time */

/* ---- protection ---- */

struct mirror_range direct_range(const struct direct *d, uint32_t extent)
{
	uint64_t offset = (uint64_t)extent * MIRROR_EXTENT, left = d->m->size - offset;

	return (struct mirror_range){offset, left < MIRROR_EXTENT ? left : MIRROR_EXTENT};
}

bool direct_protect(struct direct *d, uint32_t extent, int protection)
{
	struct mirror_range range = direct_range(d, extent);

	if (d->is_barred || d->is_frozen)
		return true;
	return !mprotect(d->m->app + range.offset, range.len, protection);
}

/* Protect each extent according to its state. */
static bool direct_unbar(struct direct *d)
{
	bool ok =
		!mprotect(d->m->app, d->m->size, d->is_frozen ? PROT_READ | PROT_WRITE : PROT_READ);

	d->is_barred = !ok;
	for (uint32_t e = 0; ok && e < d->extents.count; e++)
		if (d->extents.states[e] == EXTENTS_OPEN)
			direct_protect(d, e, PROT_READ | PROT_WRITE);
	siglock_notify(&d->change);
	return ok;
}

bool direct_bar(struct direct *d, bool bar)
{
	bool ok;

	siglock_take(&d->lock);
	if (bar)
		ok = d->is_barred = !mprotect(d->m->app, d->m->size, PROT_NONE);
	else
		ok = direct_unbar(d);
	siglock_notify(&d->change);
	siglock_release(&d->lock);
	return ok;
}

/* Replace the mapping by a private one, so that no later store of the application reaches the file.
 * The kernel replaces it in one step, so no thread finds an unmapped page. */
static void direct_freeze(struct direct *d)
{
	int protection;

	siglock_take(&d->lock);
	protection = d->is_barred ? PROT_NONE : PROT_READ | PROT_WRITE;
	if (!d->is_frozen &&
	    (ownfd_is_lost(&d->m->copy.own) ||
	     mmap(d->m->app, d->m->size, protection, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
		  d->m->copy.fd, 0) == MAP_FAILED))
		d->is_barred = !mprotect(d->m->app, d->m->size, PROT_READ);
	d->is_frozen = true;
	siglock_notify(&d->change);
	siglock_release(&d->lock);
}

/* ---- stores ---- */

/* Fill one slot with the extent; the slot is durable on return. */
static void direct_fill(struct direct *d, uint32_t extent, uint16_t slot)
{
	sigset_t before;
	int rc;

	siglock_pause(&d->lock, &before);
	rc = meta_hot_fill(&d->m->hot.meta, slot, extent);
	siglock_resume(&d->lock, &before);
	extents_fill_ended(&d->extents, extent, slot, rc);
	if (extents_is_low(&d->extents))
		siglock_notify(&d->work);
	siglock_notify(&d->change);
}

static int direct_permit(struct direct *d, uint32_t extent)
{
	struct mirror_range range = direct_range(d, extent);
	sigset_t before;
	bool ok;

	/* Release the lock during the split, so that stores to other extents need not wait. */
	siglock_pause(&d->lock, &before);
	folio_split_cached(&d->m->copy.stored, d->m->app + range.offset, range.offset, range.len);
	siglock_resume(&d->lock, &before);

	ok = direct_protect(d, extent, PROT_READ | PROT_WRITE);
	extents_opened(&d->extents, extent, ok);
	siglock_notify(&d->change);
	killpoint(KILLPOINT_direct_opened);
	return ok ? 0 : -ENOMEM;
}

/* Do one step for a store. Returns 1 if another step follows. */
static int direct_try(struct direct *d, uint32_t extent)
{
	uint16_t slot;

	if (d->is_barred)
		return -EACCES;
	if (d->is_frozen)
		return 0;
	switch (extents_begin(&d->extents, extent, &slot)) {
	case EXTENTS_WRITABLE:
		return 0;
	case EXTENTS_PERMIT:
		return direct_permit(d, extent);
	case EXTENTS_FILL:
		direct_fill(d, extent, slot);
		return d->extents.states[extent] == EXTENTS_OPENING ? direct_permit(d, extent) : 1;
	case EXTENTS_WAIT:
		break;
	}
	if (extents_is_low(&d->extents))
		siglock_notify(&d->work);
	siglock_wait(&d->lock, &d->change, siglock_seen(&d->change), DIRECT_WAIT_MS);
	return 1;
}

int direct_make_writable(struct direct *d, uint32_t extent)
{
	int rc;

	siglock_take(&d->lock);
	do
		rc = direct_try(d, extent);
	while (rc > 0);
	siglock_release(&d->lock);
	return rc;
}

/* Returns true if the fault is that of a store. The protection of a closed extent makes only
 * stores fault, not loads or jumps. */
static bool direct_is_store(const struct fault *fault)
{
	if (fault->info->si_code != SEGV_ACCERR)
		return false;
#ifdef __x86_64__
	return ((const ucontext_t *)fault->uctx)->uc_mcontext.gregs[REG_ERR] & 2;
#else
	return true;
#endif
}

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* Returns true if the page cannot be written. A kernel without this advice returns EINVAL as
 * well. */
static bool direct_is_unwritable(void *at)
{
	void *page = (void *)((uintptr_t)at & ~((uintptr_t)MIRROR_BLOCK - 1));

	return madvise(page, MIRROR_BLOCK, MADV_POPULATE_WRITE) && errno == EINVAL &&
	       !madvise(page, 0, MADV_POPULATE_WRITE);
}

/* Returns true if the page is not writable although the library permits stores to it: the
 * application has forbidden stores by mprotect(2). */
static bool direct_is_forbidden(struct direct *d, void *at)
{
	uint32_t extent = meta_extent_of((uint64_t)((uint8_t *)at - d->m->app));
	bool is_forbidden;

	siglock_take(&d->lock);
	is_forbidden = !d->is_barred &&
		       (d->is_frozen || d->extents.states[extent] == EXTENTS_OPEN) &&
		       direct_is_unwritable(at);
	siglock_release(&d->lock);
	return is_forbidden;
}

/* The address at which this thread's last store faulted. Initial-exec, so that an access in a
 * handler never allocates. */
static __thread void *direct_last __attribute__((tls_model("initial-exec")));

/* Returns false if the store would fault again. The system call is made only if the same address
 * faults repeatedly. */
static bool direct_permit_store(struct direct *d, const struct fault *fault)
{
	bool is_repeated = direct_last == fault->at;

	direct_last = fault->at;
	if (direct_make_writable(d, meta_extent_of((uint64_t)((uint8_t *)fault->at - d->m->app))))
		return false;
	return !is_repeated || !direct_is_forbidden(d, fault->at);
}

static bool direct_on_fault(void *arg, struct fault *fault)
{
	struct direct *d = arg;

	/* This was a store of the library itself: its caller has opened the extent, and tries
	 * again. */
	if (direct_is_store(fault) && restore_end_try(d->m, fault))
		return true;
	if (direct_is_store(fault) && direct_permit_store(d, fault))
		return true;
	/* stores are barred, or the application has to handle the fault */
	return restore_end_try(d->m, fault);
}

int rpmirror_touch(struct rpmirror *m, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr;
	uint64_t offset;
	uint32_t most;
	int rc = 0;

	if (!set_is_usable(m) || !m->has_thread || at < (uintptr_t)m->app ||
	    at - (uintptr_t)m->app > m->size || len > m->size - (at - (uintptr_t)m->app))
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "rpmirror_touch: %zu bytes at %p are not inside a mapped set",
				   len, addr);
	if (!m->direct || !len)
		return 0;
	if (set_end_code(m))
		return errmsg_fail(set_end_code(m), "%s", m->ended_why);
	fault_renew();
	offset = at - (uintptr_t)m->app;
	most = m->hot.meta.super.hot_slots / 2;
	for (uint32_t e = meta_extent_of(offset); !rc && e <= meta_extent_of(offset + len - 1);
	     e++) {
		if (!extents_pin(&m->direct->extents, e, most))
			return errmsg_fail(
				RPMIRROR_E_NOMEM,
				"set %s: no more than %u extents of 2 MiB are kept writable; flush "
				"the extents that were touched before",
				m->set, most);
		rc = direct_make_writable(m->direct, e);
	}
	if (!rc)
		return 0;
	return errmsg_fail(rc == -EACCES ? RPMIRROR_E_LEASE : RPMIRROR_E_PROVIDER,
			   "set %s: the range cannot be made writable: %s", m->set,
			   rc == -EACCES ? "the lease is over" : strerror(-rc));
}

/* ---- flushes ---- */

void direct_on_flush(struct direct *d, const struct mirror_range *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t last = meta_extent_of(v[i].offset + v[i].len - 1);

		for (uint32_t e = meta_extent_of(v[i].offset); e <= last; e++) {
			meta_hot_note(&d->m->hot.meta, e);
			extents_unpin(&d->extents, e);
		}
	}
}

bool direct_may_differ(struct direct *d, uint32_t extent)
{
	bool may;

	siglock_take(&d->lock);
	may = d->extents.states[extent] != EXTENTS_CLOSED;
	siglock_release(&d->lock);
	return may;
}

static bool direct_is_hot(const struct direct *d, uint32_t extent)
{
	return d->extents.states[extent] >= EXTENTS_OPENING &&
	       d->extents.states[extent] <= EXTENTS_MIRRORING;
}

struct mirror_range *direct_list(struct direct *d, uint32_t *n)
{
	struct mirror_range *v = malloc((d->extents.count + 1) * sizeof(*v));

	*n = 0;
	if (!v)
		return NULL;
	siglock_take(&d->lock);
	for (uint32_t e = 0; e < d->extents.count; e++)
		if (direct_is_hot(d, e))
			v[(*n)++] = direct_range(d, e);
	siglock_release(&d->lock);
	return v;
}

bool direct_on_carried(struct rpmirror *m, unsigned slot)
{
	struct direct *d = m->direct;
	bool has_any = false;

	if (!d)
		return false;
	siglock_take(&d->lock);
	for (uint32_t e = 0; e < d->extents.count && !has_any; e++)
		has_any = direct_is_hot(d, e);
	if (has_any)
		siglock_notify(&d->work);
	siglock_release(&d->lock);
	if (has_any)
		d->carried |= MIRROR_BIT(slot);
	return has_any;
}

/* ---- begin and end ---- */

void *direct_map(const struct rpmirror *m, void *hint, int flags)
{
	void *p = mmap(hint, m->size, PROT_NONE, flags | MAP_SHARED_VALIDATE | MAP_SYNC, m->copy.fd,
		       0);

	if (p == MAP_FAILED)
		p = mmap(hint, m->size, PROT_NONE, flags | MAP_SHARED, m->copy.fd, 0);
	if (p != MAP_FAILED) /* so that a child cannot store to the file unnoticed */
		madvise(p, m->size, MADV_DONTFORK);
	return p;
}

static int direct_start(struct direct *d)
{
	struct rpmirror *m = d->m;
	int rc = extents_init(&d->extents, m->hot.meta.extents, m->hot.meta.super.hot_slots);

	if (!rc && mprotect(m->app, m->size, PROT_READ))
		rc = -errno;
	if (!rc)
		rc = fault_watch(&d->watch, SIGSEGV, m->app, m->size, direct_on_fault, d);
	if (!rc)
		rc = thread_start(&d->thread, 0, direct_main, d);
	d->has_thread = !rc;
	return rc;
}

int direct_open(struct rpmirror *m)
{
	struct direct *d = calloc(1, sizeof(*d));
	int rc = -ENOMEM;

	if (d) {
		d->m = m;
		m->direct = d;
		rc = direct_start(d);
	}
	if (rc)
		return errmsg_fail(rc == -ENOMEM ? RPMIRROR_E_NOMEM : RPMIRROR_E_PROVIDER,
				   "set %s cannot be mapped directly: %s", m->set, strerror(-rc));
	if (m->ended || m->quiescing) /* the set ended before m->direct was set */
		direct_begin_close(d);
	return 0;
}

void direct_begin_close(struct direct *d)
{
	direct_freeze(d);
	d->closing = true;
	siglock_take(&d->lock);
	siglock_notify(&d->work);
	siglock_release(&d->lock);
}

void direct_close(struct rpmirror *m)
{
	struct direct *d = m->direct;

	if (!d)
		return;
	pthread_mutex_lock(&m->lock);
	d->stopping = true;
	direct_begin_close(d);
	pthread_mutex_unlock(&m->lock);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	d->has_thread = false;
	fault_unwatch(&d->watch);
}

void direct_delete(struct rpmirror *m)
{
	if (!m->direct)
		return;
	extents_fini(&m->direct->extents);
	free(m->direct);
	m->direct = NULL;
}
