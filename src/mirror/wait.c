/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles completions: one thread takes them, and the other threads sleep until it has taken their
 * completions. */
#include <stdio.h>

#include "base/poll.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/set.h"

#define WAIT_TAKE 32
/* Longest wait for completions: the thread that waits for them does not notice other changes. */
#define WAIT_LOOK_MS 10

static void wait_take(struct rpmirror *m, const struct ibv_wc *wcs, int count)
{
	for (int i = 0; i < count; i++)
		lane_on_completion(m, &wcs[i]);
	wait_settle(m);
}

void wait_poll(struct rpmirror *m)
{
	struct ibv_wc wcs[WAIT_TAKE];
	int count = 0;

	while (!m->polling && !rpma_cq_get_wc(m->cq, WAIT_TAKE, wcs, &count))
		wait_take(m, wcs, count);
}

/* Returns the number up to which all members that have to acknowledge have every flush. For the own
 * copy the result of the local write-back counts. */
static uint64_t wait_common(const struct rpmirror *m)
{
	mirror_mask must = primary_must_have(&m->primary), own = MIRROR_BIT(m->self);
	uint64_t common = flush_acked(&m->flush, must & (mirror_mask)~own);

	if (m->failed_seq && must & own && common >= m->failed_seq)
		/* no flush from the failed one on is acknowledged until this host's member is
		 * excluded */
		common = m->failed_seq - 1;
	return common;
}

void wait_settle(struct rpmirror *m)
{
	mirror_mask members = flush_members(&m->flush);
	uint64_t before = m->flush.retired, sent = m->flush.begun;

	flush_retire(&m->flush, primary_may_ack(&m->primary) ? wait_common(m) : m->flush.retired);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members & MIRROR_BIT(slot) && m->flush.members[slot].done < sent)
			sent = m->flush.members[slot].done;
	if (sent + FLUSH_MAX > m->flush.begun)
		staging_free(&m->staging, m->staged_to[sent % FLUSH_MAX]);
	if (m->flush.retired == before)
		return;
	flush_note_durable(m, before);
	repair_on_acked(m, before, m->flush.retired);
	act_retire(m);
	set_notify(m);
}

/* Write the members that are away, or lack something: "b (10.0.0.2:7640), c (10.0.0.3:7640)". */
static void wait_name_absent(const struct rpmirror *m, char *text, size_t size)
{
	const struct mirror_record *rec = &m->primary.rec;
	size_t len = 0;

	*text = '\0';
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && len < size; slot++) {
		if (!rec->config.members[slot].id || slot == m->self ||
		    (rec->view.insync & MIRROR_BIT(slot) && m->members[slot].batch))
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
					set_member_name(m, slot).text);
	}
}

/* Report that the lease is over, or that a member does not answer: with the members' names, and
 * advice. */
int wait_fail_blocked(const struct rpmirror *m)
{
	bool needs_register = m->is_protected || m->primary.swap_failures;
	char absent[400];

	wait_name_absent(m, absent, sizeof(absent));
	return errmsg_fail(
		needs_register ? RPMIRROR_E_QUORUM : RPMIRROR_E_COPIES,
		"set %s: %s; %s%s%s%s; the ranges are neither acknowledged nor undone", m->set,
		m->is_protected ? "the lease is over" : m->blocked_why,
		absent[0] ? "not connected or not in-sync: " : "", absent, absent[0] ? "; " : "",
		needs_register
			? "check that this host's rpmirrord runs and the register answers: "
			  "'rpmirror explain' shows more"
			: "start their rpmirrord, or add a copy: 'rpmirror explain' shows more");
}

int wait_check(struct rpmirror *m, uint64_t since_ms)
{
	uint64_t limit = m->primary.rec.config.blocked_ms;

	if (set_end_code(m))
		return errmsg_fail(set_end_code(m), "%s", m->ended_why);
	if ((!m->blocked && !m->is_protected) || limit == UINT32_MAX)
		return 0;
	if (since_ms < m->blocked_since_ms)
		since_ms = m->blocked_since_ms;
	if (clock_boot_ms() - since_ms < limit)
		return 0;
	return wait_fail_blocked(m);
}

static int wait_ms(uint64_t deadline_ns)
{
	int ms = poll_ms_left(deadline_ns);

	return ms < 0 || ms > WAIT_LOOK_MS ? WAIT_LOOK_MS : ms;
}

/* Take completions without the lock: spin for some time, then sleep for at most ms. */
static int wait_look(struct rpmirror *m, struct ibv_wc *wcs, int ms)
{
	uint64_t until = clock_now_ns() + SET_SPIN_NS;
	int count = 0, rc;

	do {
		rc = rpma_cq_get_wc(m->cq, WAIT_TAKE, wcs, &count);
	} while (rc == RPMA_E_NO_COMPLETION && clock_now_ns() < until);
	if (rc && ms && !rpma_cq_wait_timeout(m->cq, ms))
		rc = rpma_cq_get_wc(m->cq, WAIT_TAKE, wcs, &count);
	return rc ? 0 : count;
}

static void wait_as_poller(struct rpmirror *m, int ms)
{
	struct ibv_wc wcs[WAIT_TAKE];
	int count;

	m->polling = true;
	pthread_mutex_unlock(&m->lock);
	count = wait_look(m, wcs, ms);
	pthread_mutex_lock(&m->lock);
	m->polling = false;
	wait_take(m, wcs, count);
	set_notify(m); /* so that another thread takes completions */
}

bool wait_step(struct rpmirror *m, uint64_t deadline_ns)
{
	struct timespec until;

	if (!files_look(m) && !m->polling) {
		wait_as_poller(m, wait_ms(deadline_ns));
		return poll_ms_left(deadline_ns) != 0;
	}
	until = clock_timespec(clock_now_ns() + (uint64_t)wait_ms(deadline_ns) * NSEC_PER_MS);
	m->waiters++;
	pthread_cond_timedwait(&m->cond, &m->lock, &until);
	m->waiters--;
	return poll_ms_left(deadline_ns) != 0;
}
