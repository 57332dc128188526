/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/guard.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mirror/set.h"

enum guard_policy guard_choose(const struct rpmirror *m, unsigned flags)
{
	const char *text = getenv("RPMIRROR_ON_FENCED");

	if (flags & RPMIRROR_MAP_FENCED_ERROR)
		return GUARD_ERROR;
	if (flags & RPMIRROR_MAP_FENCED_PROTECT)
		return GUARD_PROTECT;
	if (flags & RPMIRROR_MAP_FENCED_KILL)
		return GUARD_KILL;
	if (text && !strcmp(text, "error"))
		return GUARD_ERROR;
	if (text && !strcmp(text, "kill"))
		return GUARD_KILL;
	if (text && !strcmp(text, "protect"))
		return GUARD_PROTECT;
	return m->primary.rec.config.lonely == MIRROR_LONELY_NONE ? GUARD_PROTECT : GUARD_ERROR;
}

uint64_t guard_deadline(const struct rpmirror *m)
{
	if (!m->serving || m->lease_over || !m->lease.valid_until)
		return UINT64_MAX;
	return m->lease.valid_until;
}

static void guard_protect(struct rpmirror *m, bool protect)
{
	bool done;

	if (m->is_protected == protect)
		return;
	done = m->direct ? direct_bar(m->direct, protect)
			 : !mprotect(m->app, m->size, protect ? PROT_NONE : PROT_READ | PROT_WRITE);
	if (done)
		__atomic_store_n(&m->is_protected, protect, __ATOMIC_RELAXED);
	set_notify(m);
}

void guard_step(struct rpmirror *m, uint64_t now_ms)
{
	bool fenced = m->ended == RPMIRROR_E_FENCED || m->has_lost_files;

	if (!m->mapped || (!m->lease.valid_until && !fenced))
		return;
	if (!m->lease_over && (fenced || now_ms >= m->lease.valid_until)) {
		m->lease_over = true;
		events_add(&m->events, RPMIRROR_EVENT_LEASE_OVER, UINT32_MAX, 0, "%s",
			   fenced ? "fenced"
				  : "the lease is over: bytes that are read may be stale");
		if (m->guard == GUARD_KILL)
			raise(SIGKILL);
		if (m->guard == GUARD_PROTECT)
			guard_protect(m, true);
	} else if (m->lease_over && !fenced && now_ms < m->lease.valid_until) {
		m->lease_over = false;
		guard_protect(m, false);
	}
}
