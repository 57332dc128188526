/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out which members have a flush, and makes the result for the flush's caller. */
#include "mirror/errmsg.h"
#include "mirror/set.h"

/* Returns the members that have the flush by their lane, or by a resync from this copy while this
 * copy was good. */
static mirror_mask flush_durable_now(const struct rpmirror *m, uint64_t seq)
{
	mirror_mask own = MIRROR_BIT(m->self), insync = primary_counts(&m->primary);
	mirror_mask durable = insync & (mirror_mask)~own;
	bool has_failed = m->failed_seq && seq >= m->failed_seq;

	durable &= (mirror_mask)~flush_lacking(&m->flush, seq, durable);
	for (unsigned slot = 0; has_failed && slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->flush.members[slot].from > seq)
			durable &= (mirror_mask)~MIRROR_BIT(slot);
	if (!has_failed && flush_local_done(&m->flush, seq))
		durable |= own;
	return durable;
}

void flush_note_durable(struct rpmirror *m, uint64_t from)
{
	for (uint64_t seq = from + 1; seq <= m->flush.retired; seq++)
		m->durable[seq % FLUSH_MAX] = flush_durable_now(m, seq);
}

/* Returns the members that had the flush when it was acknowledged: a member may be lost before the
 * caller reads the result. */
static mirror_mask flush_durable(const struct rpmirror *m, uint64_t seq)
{
	bool is_noted = seq <= m->flush.retired && m->flush.begun - seq < FLUSH_MAX;

	return is_noted ? m->durable[seq % FLUSH_MAX] : flush_durable_now(m, seq);
}

void flush_fill_result(const struct rpmirror *m, uint64_t seq, struct rpmirror_result *res)
{
	mirror_mask all = mirror_config_members(&m->primary.rec.config), durable;

	*res = (struct rpmirror_result){.seq = seq,
					.failed_mask = all & ~m->primary.rec.view.insync};
	if (!seq)
		return;
	durable = flush_durable(m, seq);
	if (m->failed_seq && seq >= m->failed_seq)
		res->flags |= RPMIRROR_LOCAL_FAILED;
	res->durable_mask = durable;
	res->failed_mask &= ~(uint32_t)durable; /* a joining member may have the flush, too */
	if (durable != all)
		res->flags |= RPMIRROR_DEGRADED;
	if (__builtin_popcount(durable) < 2)
		res->flags |= RPMIRROR_SOLO;
}

/* Returns true if flushes may continue after a failed write-back. A direct mapping is the file
 * itself: after a failed write-back it shows the medium's older words, and the next flush would
 * send these to the other members. */
static bool flush_may_go_on(const struct rpmirror *m)
{
	return m->primary.rec.config.local_error_continues && !m->direct;
}

int flush_verdict(const struct rpmirror *m, uint64_t seq)
{
	if (!m->failed_seq || seq < m->failed_seq || (flush_may_go_on(m) && flush_durable(m, seq)))
		return 0;
	return errmsg_fail(
		RPMIRROR_E_MEDIUM,
		"set %s: the copy on this host has failed; the other copies have the ranges: unmap "
		"the set, and map it on a host whose copy is good",
		m->set);
}
