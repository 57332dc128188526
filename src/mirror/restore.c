/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "mirror/errmsg.h"
#include "mirror/restore_impl.h"

static _Atomic uint64_t restore_serials;

bool restore_holds_flushes(const struct rpmirror *m)
{
	return atomic_load(&m->restore->holds_flushes);
}

static int restore_start(struct restore *r)
{
	int rc = restore_watch(r);

	if (rc)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot handle SIGBUS: %s", strerror(-rc));
	rc = thread_start(&r->thread, 0, restore_main, r);
	if (rc)
		return errmsg_fail(RPMIRROR_E_NOMEM, "cannot start a thread: %s", strerror(-rc));
	r->has_thread = true;
	return 0;
}

int restore_open(struct rpmirror *m)
{
	const char *on_medium = getenv("RPMIRROR_ON_MEDIUM");
	struct restore *r = calloc(1, sizeof(*r));

	if (!r)
		return errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
	m->restore = r;
	r->m = m;
	r->serial = atomic_fetch_add(&restore_serials, 1) + 1;
	r->signals = on_medium && !strcmp(on_medium, "signal");
	r->patience_ns = m->primary.rec.config.replica_timeout_ms * NSEC_PER_MS;
	r->place = m->control_place;
	r->place.sq_size = LINK_SENDS;
	r->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	r->wake_fd = ownfd_event(EFD_NONBLOCK);
	if (r->wake_fd < 0)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot make an eventfd: %s",
				   strerror(errno));
	return restore_start(r);
}

void restore_freeze(struct rpmirror *m)
{
	atomic_store(&m->restore->is_frozen, true);
	while (atomic_load(&m->restore->is_writing))
		sched_yield();
}

static void restore_stop_thread(struct restore *r)
{
	if (!r->has_thread)
		return;
	atomic_store(&r->stopping, true);
	restore_wake(r);
	pthread_join(r->thread, NULL);
	r->has_thread = false;
}

void restore_leave(struct rpmirror *m)
{
	if (!m->restore)
		return;
	restore_unwatch(m->restore);
	restore_stop_thread(m->restore);
}

void restore_close(struct rpmirror *m)
{
	struct restore *r = m->restore;

	if (!r)
		return;
	restore_unwatch(r);
	restore_stop_thread(r);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		link_close(&r->lanes[slot].link);
	if (r->mr)
		rpma_mr_dereg(&r->mr);
	if (r->buffers)
		munmap(r->buffers, (size_t)MIRROR_MEMBERS_MAX * RESTORE_PIECE);
	if (r->pagemap_fd >= 0)
		close(r->pagemap_fd);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	m->restore = NULL;
	free(r);
}
