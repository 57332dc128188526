/* SPDX-License-Identifier: BSD-3-Clause */
/* Returns the copy to this host's daemon. */
#include <sys/mman.h>

#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

static bool release_ask(struct rpmirror *m, bool clean)
{
	struct packet *p = packet_begin(&m->packet_out, PACKET_UNMAP, 0);

	p->unmap.clean = clean;
	if (m->daemon.fd < 0 || !daemon_send(&m->daemon, p))
		return false;
	m->release_id = p->id;
	return true;
}

/* Stop all writes to the copy. Flushes have been refused since the end of the role, under the same
 * lock, so no thread writes to the copy any more. */
static void release_freeze(struct rpmirror *m)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (slot == m->self)
			continue;
		repair_drop(m, slot);
		ask_drop(m, slot);
	}
	restore_freeze(m);
	mprotect(m->copy.shared, m->size, PROT_READ);
}

void release_step(struct rpmirror *m)
{
	if (!m->ended || !m->mapped || m->released || m->release_id || m->resume_id ||
	    m->daemon.fd < 0)
		return;
	if (m->direct && !m->direct->is_closed)
		return;
	release_freeze(m);
	release_ask(m, m->ended == 1 && m->clean);
}

void release_on_done(struct rpmirror *m, const struct packet *p)
{
	if (!m->release_id || p->id != m->release_id)
		return;
	m->release_id = 0;
	m->released = true;
}

int release_wait(struct rpmirror *m, bool clean)
{
	if (m->released || (!m->release_id && !release_ask(m, clean)))
		return 0;
	for (;;) {
		if (daemon_wait(&m->daemon, SET_ANSWER_MS) != DAEMON_GOT_PACKET)
			return errmsg_fail(RPMIRROR_E_DAEMON,
					   "rpmirrord does not confirm that set %s is unmapped",
					   m->set);
		if (m->daemon.packet->type == PACKET_DONE && m->daemon.packet->id == m->release_id)
			return map_status(m, m->daemon.packet->done.status,
					  m->daemon.packet->done.text);
	}
}
