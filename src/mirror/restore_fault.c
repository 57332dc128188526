/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This code runs in the thread that touched the page, in a handler of SIGBUS. So it may make only
 * async-signal-safe calls, use little stack, and take no lock.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirror/errmsg.h"
#include "mirror/restore_impl.h"

#define RESTORE_LOOK_NS (50 * NSEC_PER_MS)
#define RESTORE_POINTS  8 /* largest number of sets for which a thread has backtrack points */

/* For variables that handlers read. Initial-exec, so that an access never allocates. */
#define TLS_FOR_HANDLER static __thread __attribute__((tls_model("initial-exec")))

/* An access of the library itself. */
struct restore_trial {
	struct restore *restore;
	/* a store to the application's mapping, which the application may have forbidden */
	bool is_store;
	uint64_t offset; /* offset at which the access faulted */
	sigjmp_buf env;
};
TLS_FOR_HANDLER struct restore_trial *restore_trial;

TLS_FOR_HANDLER struct {
	uint64_t serial; /* serial number of the mapping; 0: the entry is free */
	sigjmp_buf *env;
} restore_points[RESTORE_POINTS];

/* The last fault that was passed on. A handler that has replaced this handler may call this handler
 * again for the same fault, in a frame further down the stack. The frame of a new fault at the same
 * address is not further down. */
TLS_FOR_HANDLER struct {
	const void *uctx, *at;
	uintptr_t frame;
} restore_passed;

/* ---- requests ---- */

static struct restore_request *restore_take_request(struct restore *r)
{
	for (unsigned i = 0; i < RESTORE_REQUESTS; i++) {
		unsigned state = RESTORE_FREE;

		if (atomic_compare_exchange_strong(&r->requests[i].state, &state, RESTORE_TAKEN))
			return &r->requests[i];
	}
	return NULL;
}

/* Give up a request that took too long without progress, unless the restore thread works on it
 * now. */
static bool restore_abandon(struct restore_request *q)
{
	unsigned state = RESTORE_ASKED;

	if (atomic_compare_exchange_strong(&q->state, &state, RESTORE_FREE))
		return true;
	return atomic_compare_exchange_strong(&q->state, &state, RESTORE_ABANDONED);
}

static bool restore_sleep(struct restore *r, struct restore_request *q)
{
	const struct timespec look = {.tv_nsec = RESTORE_LOOK_NS};
	const uint64_t limit = r->patience_ns * (MIRROR_MEMBERS_MAX + 1);
	uint64_t since = clock_now_ns();
	unsigned seen = atomic_load(&r->progress), state;

	while ((state = atomic_load(&q->state)) != RESTORE_DONE) {
		syscall(SYS_futex, &q->state, FUTEX_WAIT_PRIVATE, state, &look, NULL, 0);
		if (seen != atomic_load(&r->progress)) {
			seen = atomic_load(&r->progress);
			since = clock_now_ns();
		} else if (clock_now_ns() - since > limit && restore_abandon(q)) {
			return false;
		}
	}
	return true;
}

enum restore_verdict restore_ask(struct restore *r, uint64_t offset, unsigned flags)
{
	uint64_t ticket = atomic_fetch_add(&r->clock, 1);
	struct restore_request *q;
	enum restore_verdict verdict;

	while (!(q = restore_take_request(r)))
		sched_yield();
	q->offset = offset - offset % MIRROR_BLOCK;
	q->ticket = ticket;
	q->flags = flags;
	atomic_store(&q->state, RESTORE_ASKED);
	restore_wake(r);
	if (!restore_sleep(r, q))
		return RESTORE_FAILED;
	verdict = q->verdict;
	atomic_store(&q->state, RESTORE_FREE);
	return verdict;
}

/* ---- the handler ---- */

static sigjmp_buf *restore_find_point(uint64_t serial)
{
	for (unsigned i = 0; i < RESTORE_POINTS; i++)
		if (restore_points[i].serial == serial)
			return restore_points[i].env;
	return NULL;
}

static bool restore_resolve(struct restore *r, struct fault *fault, uint64_t offset)
{
	unsigned flags = 0;

#ifdef BUS_MCEERR_AR
	if (fault->info->si_code == BUS_MCEERR_AR)
		flags = RESTORE_POISON;
#endif
	switch (restore_ask(r, offset, flags)) {
	case RESTORE_WHOLE:
		return true;
	case RESTORE_LOST:
		/*
		 * Continue at the thread's backtrack point, or repeat the access, or raise the
		 * signal.
		 */
		fault->leave = restore_find_point(r->serial);
		fault->raises = !fault->leave && r->signals;
		return !fault->raises;
	default:
		return false;
	}
}

static bool restore_on_fault(struct restore *r, struct fault *fault, const uint8_t *base)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct restore_trial *trial = restore_trial;
	uint64_t offset = (uint64_t)((uint8_t *)fault->at - base);

	if (trial && trial->restore == r) {
		trial->offset = offset;
		fault->leave = &trial->env;
		return true;
	}
	if (restore_passed.uctx == fault->uctx && restore_passed.at == fault->at &&
	    frame < restore_passed.frame)
		return false;
	if (restore_resolve(r, fault, offset))
		return true;
	restore_passed.uctx = fault->uctx;
	restore_passed.at = fault->at;
	restore_passed.frame = frame;
	return false;
}

static bool restore_on_app_fault(void *arg, struct fault *fault)
{
	struct restore *r = arg;

	return restore_on_fault(r, fault, r->m->app);
}

static bool restore_on_shared_fault(void *arg, struct fault *fault)
{
	struct restore *r = arg;

	return restore_on_fault(r, fault, r->m->copy.shared);
}

/* Handles forbidden stores to an isolated mapping. direct.c handles all faults of a direct
 * mapping. */
static bool restore_on_forbidden(void *arg, struct fault *fault)
{
	const struct restore *r = arg;

	return restore_trial && restore_trial->is_store && restore_end_try(r->m, fault);
}

int restore_watch(struct restore *r)
{
	struct rpmirror *m = r->m;
	int rc = fault_watch(&r->app_watch, SIGBUS, m->app, m->size, restore_on_app_fault, r);

	if (!rc && !m->copy.is_direct)
		rc = fault_watch(&r->store_watch, SIGSEGV, m->app, m->size, restore_on_forbidden,
				 r);
	if (!rc && m->copy.shared != m->app)
		rc = fault_watch(&r->shared_watch, SIGBUS, m->copy.shared, m->size,
				 restore_on_shared_fault, r);
	return rc;
}

void restore_unwatch(struct restore *r)
{
	fault_unwatch(&r->app_watch);
	fault_unwatch(&r->store_watch);
	fault_unwatch(&r->shared_watch);
}

/* ---- the library's own accesses ---- */

static bool restore_try_as(const struct rpmirror *m, bool is_store, void (*fn)(void *arg),
			   void *arg, uint64_t *offset)
{
	struct restore_trial trial = {.restore = m->restore, .is_store = is_store};
	bool is_done = false;

	if (!sigsetjmp(trial.env, 0)) {
		restore_trial = &trial;
		atomic_signal_fence(memory_order_seq_cst);
		fn(arg);
		atomic_signal_fence(memory_order_seq_cst);
		is_done = true;
	}
	restore_trial = NULL;
	*offset = trial.offset;
	return is_done;
}

bool restore_try(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset)
{
	return restore_try_as(m, false, fn, arg, offset);
}

bool restore_try_store(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset)
{
	return restore_try_as(m, true, fn, arg, offset);
}

bool restore_end_try(const struct rpmirror *m, struct fault *fault)
{
	struct restore_trial *trial = restore_trial;

	if (!trial || trial->restore != m->restore)
		return false;
	trial->offset = UINT64_MAX;
	fault->leave = &trial->env;
	return true;
}

bool restore_wait(struct rpmirror *m, uint64_t offset)
{
	enum restore_verdict verdict;

	pthread_mutex_unlock(&m->lock);
	verdict = restore_ask(m->restore, offset, RESTORE_LIBRARY);
	pthread_mutex_lock(&m->lock);
	restore_collect(m);
	if (verdict == RESTORE_FAILED)
		set_local_failed(m, m->flush.begun + 1, -EIO);
	return verdict != RESTORE_FAILED;
}

struct restore_span {
	const uint8_t *at;
	uint64_t len;
};

static void restore_load(void *arg)
{
	const struct restore_span *span = arg;
	uint64_t skip = (uintptr_t)span->at % MIRROR_BLOCK;

	for (uint64_t at = 0; at < span->len; at += MIRROR_BLOCK - (at ? 0 : skip))
		__atomic_load_n(span->at + at, __ATOMIC_RELAXED);
}

bool restore_touch(struct rpmirror *m, const uint8_t *at, uint64_t len)
{
	struct restore_span span = {at, len};
	uint64_t offset;
	bool may = true;

	while (may && !restore_try(m, restore_load, &span, &offset))
		may = restore_wait(m, offset);
	return may;
}

void restore_later(struct rpmirror *m, uint64_t offset)
{
	atomic_store(&m->restore->later, offset + 1);
	restore_wake(m->restore);
}

/* ---- backtrack points ---- */

int rpmirror_set_backtrack(struct rpmirror *m, void *env)
{
	unsigned i = 0;

	if (!set_is_usable(m) || !m->restore)
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "rpmirror_set_backtrack: not this process's set, or read-only");
	while (i < RESTORE_POINTS && restore_points[i].serial != m->restore->serial)
		i++;
	for (unsigned free = 0; i == RESTORE_POINTS && free < RESTORE_POINTS; free++)
		if (!restore_points[free].serial)
			i = free;
	if (i == RESTORE_POINTS)
		return env ? errmsg_fail(RPMIRROR_E_NOMEM,
					 "a thread can have backtrack points of %d sets",
					 RESTORE_POINTS)
			   : 0;
	restore_points[i].env = env;
	atomic_signal_fence(memory_order_seq_cst);
	restore_points[i].serial = env ? m->restore->serial : 0;
	return 0;
}
