/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signal handlers read the list of watches, so no watch ever leaves the list. A watch that was
 * stopped is reused. Neither the handlers nor the functions here take a lock.
 */
#include "mirror/fault.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sigfault.h"

struct fault_watch {
	struct fault_watch *next;
	atomic_bool is_taken; /* set by the user of the watch, which then owns the fields */
	atomic_bool is_on;    /* handlers may read the fields */
	atomic_uint users;    /* number of handlers that use the watch now */
	int sig;
	pid_t pid;
	uintptr_t base;
	size_t len;
	fault_fn *fn;
	void *arg;
};

static _Atomic(struct fault_watch *) fault_watches;

/* Ask a watch about a fault. fault_unwatch() may run at the same time: either this function finds
 * the watch off, or fault_unwatch() finds this user counted. */
static bool fault_ask(struct fault_watch *w, struct fault *fault)
{
	bool is_resolved = false;

	atomic_fetch_add(&w->users, 1);
	if (atomic_load(&w->is_on) && w->sig == fault->sig &&
	    (uintptr_t)fault->at - w->base < w->len && w->pid == getpid())
		is_resolved = w->fn(w->arg, fault);
	atomic_fetch_sub(&w->users, 1);
	return is_resolved;
}

static enum sigfault_verdict fault_resolve(const siginfo_t *info, void *uctx)
{
	struct fault fault = {
		.sig = info->si_signo, .at = info->si_addr, .info = info, .uctx = uctx};

	for (struct fault_watch *w = atomic_load(&fault_watches); w; w = w->next) {
		if (!fault_ask(w, &fault))
			continue;
		if (fault.leave)
			siglongjmp(*fault.leave, 1);
		return SIGFAULT_RESUME;
	}
	return fault.raises ? SIGFAULT_RAISE : SIGFAULT_PASS;
}

/* Returns a watch that is no longer used, or a new one at the head of the list. */
static struct fault_watch *fault_take(void)
{
	struct fault_watch *w;
	bool is_taken;

	for (w = atomic_load(&fault_watches); w; w = w->next) {
		is_taken = false;
		if (atomic_compare_exchange_strong(&w->is_taken, &is_taken, true))
			return w;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	atomic_store(&w->is_taken, true);
	w->next = atomic_load(&fault_watches);
	while (!atomic_compare_exchange_weak(&fault_watches, &w->next, w))
		;
	return w;
}

int fault_renew(void)
{
	return sigfault_setup(fault_resolve);
}

int fault_watch(struct fault_watch **out, int sig, void *base, size_t len, fault_fn *fn, void *arg)
{
	struct fault_watch *w;
	int rc = fault_renew();

	if (rc)
		return rc;
	w = fault_take();
	if (!w)
		return -ENOMEM;
	w->sig = sig;
	w->pid = getpid();
	w->base = (uintptr_t)base;
	w->len = len;
	w->fn = fn;
	w->arg = arg;
	atomic_store(&w->is_on, true);
	*out = w;
	return 0;
}

void fault_unwatch(struct fault_watch **watch)
{
	struct fault_watch *w = *watch;

	*watch = NULL;
	if (!w)
		return;
	atomic_store(&w->is_on, false);
	while (atomic_load(&w->users))
		sched_yield();
	atomic_store(&w->is_taken, false);
}
