/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_unmap(): ends the role of primary, and deletes the object. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mirror/errmsg.h"
#include "mirror/map.h"
#include "mirror/repair.h"
#include "mirror/restore.h"

void map_stop_thread(struct rpmirror *m)
{
	if (!m->has_thread)
		return;
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	set_wake(m);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	m->has_thread = false;
	write_back_stop(m);
}

/* The application has closed the set's descriptors. Their numbers, and those of the connections,
 * may belong to files of the application by now. Release only objects that use no descriptor; the
 * kernel releases the rest when the process exits. */
static void map_abandon(struct rpmirror *m)
{
	map_stop_thread(m);
	repair_leave(m);
	restore_leave(m);
	munmap(m->app, m->size);
	munmap(m->copy.shared, m->size);
	daemon_close(&m->daemon);
}

void map_delete(struct rpmirror *m)
{
	map_stop_thread(m);
	if (m->has_lost_files) {
		map_abandon(m);
		return;
	}
	repair_close(m);
	restore_close(m);
	direct_delete(m);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		ask_drop(m, slot);
	if (m->app)
		munmap(m->app, m->size);
	staging_fini(&m->staging);
	rpma_cq_delete(&m->cq);
	rpma_peer_delete(&m->peer);
	copy_close(&m->copy);
	hot_close(&m->hot);
	ranges_union_clear(&m->records);
	daemon_close(&m->daemon);
	events_fini(&m->events);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	write_back_fini(&m->write_back);
	pthread_cond_destroy(&m->cond);
	pthread_mutex_destroy(&m->turn);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Returns true if the time for which a flush waits for the register has passed since the end of all
 * flushes. */
static bool map_is_late(const struct rpmirror *m)
{
	uint64_t limit = m->primary.rec.config.blocked_ms;

	return m->quiesced && limit != UINT32_MAX && clock_boot_ms() - m->quiesced_ms >= limit;
}

static int map_demote(struct rpmirror *m)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	if (!files_look(m)) {
		primary_demote(&m->primary);
		act_all(m);
		set_wake(m);
	}
	while (!m->ended && !map_is_late(m))
		wait_step(m, CLOCK_NEVER);
	if (m->ended < 0)
		rc = errmsg_fail(m->ended, "%s", m->ended_why);
	else if (!m->ended)
		rc = errmsg_fail(
			RPMIRROR_E_QUORUM,
			"set %s: the register does not answer, so the end of this primary is not "
			"recorded there: the next primary waits for the end of the lease, and "
			"makes the copies equal",
			m->set);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

int rpmirror_unmap(struct rpmirror **m_ptr)
{
	struct rpmirror *m;
	int rc = 0, released = 0;
	bool is_primary;

	if (!m_ptr)
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_unmap: the argument is NULL");
	m = *m_ptr;
	if (!m)
		return 0;
	if (!set_is_usable(m))
		return errmsg_fail(RPMIRROR_E_INVAL, "a parent process mapped the set");
	*m_ptr = NULL;
	is_primary = m->has_thread;
	if (is_primary) {
		rc = map_demote(m);
		direct_close(m);
		map_stop_thread(m);
	}
	if (is_primary && !m->has_lost_files)
		released = release_wait(m, !rc && m->clean);
	map_delete(m);
	return rc ? rc : released;
}
