/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that restores pages, one request after the other. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ownfd.h"
#include "mirror/restore_impl.h"

/* May also be called in a signal handler. */
void restore_wake(struct restore *r)
{
	ownfd_wake(r->wake_fd);
}

static bool restore_serve_one(struct restore *r, struct restore_request *q)
{
	unsigned state = RESTORE_ASKED;

	if (!atomic_compare_exchange_strong(&q->state, &state, RESTORE_SERVED))
		return false;
	q->verdict = restore_page(r, q);
	/* The flush that made the request takes the report before the flush ends. */
	if (q->flags & RESTORE_LIBRARY)
		restore_send_held(r);
	state = RESTORE_SERVED;
	if (atomic_compare_exchange_strong(&q->state, &state, RESTORE_DONE))
		syscall(SYS_futex, &q->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	else
		atomic_store(&q->state, RESTORE_FREE);
	atomic_fetch_add(&r->progress, 1);
	return true;
}

static bool restore_serve_later(struct restore *r)
{
	uint64_t later = atomic_exchange(&r->later, 0);
	struct restore_request q = {.offset = (later - 1) / MIRROR_BLOCK * MIRROR_BLOCK,
				    .flags = RESTORE_LIBRARY};

	if (!later)
		return false;
	q.ticket = atomic_fetch_add(&r->clock, 1);
	restore_page(r, &q);
	return true;
}

void *restore_main(void *arg)
{
	struct restore *r = arg;

	while (!atomic_load(&r->stopping)) {
		bool any = restore_serve_later(r);

		for (unsigned i = 0; i < RESTORE_REQUESTS; i++)
			any = restore_serve_one(r, &r->requests[i]) || any;
		if (any)
			continue;
		if (!ownfd_is_lost(&r->m->copy.own))
			restore_send_held(r);
		ownfd_wait(r->wake_fd);
	}
	return NULL;
}
