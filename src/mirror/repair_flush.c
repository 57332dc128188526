/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the effects of flushes and resyncs on each other. */
#include <string.h>

#include "base/clock.h"
#include "mirror/absent.h"
#include "mirror/core/ranges.h"
#include "mirror/repair_impl.h"

/* number of flushes from which the calm time, their 99th percentile, is measured */
#define REPAIR_CALM_COUNT 1000

bool repair_flush_enter(struct rpmirror *m, struct repair_hold *hold, const struct mirror_range *v,
			uint32_t n)
{
	bool may = true;

	if (!m->repair->active)
		return true;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct repair_member *rm = m->repair->members[slot];

		if (!rm || rm->stage == REPAIR_IDLE)
			continue;
		hold->holds[slot].ranges = v;
		hold->holds[slot].count = n;
		if (!resync_flush_enter(&rm->rs, &hold->holds[slot]))
			may = false;
	}
	return may;
}

void repair_flush_leave(struct rpmirror *m, struct repair_hold *hold)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (hold->holds[slot].ranges && m->repair->members[slot])
			resync_flush_leave(&m->repair->members[slot]->rs, &hold->holds[slot]);
}

/* Wait for the end of a piece, whose completion another thread takes. */
void repair_wait(struct rpmirror *m)
{
	struct timespec until = clock_timespec(clock_now_ns() + 10 * NSEC_PER_MS);

	m->waiters++;
	pthread_cond_timedwait(&m->cond, &m->lock, &until);
	m->waiters--;
}

static void repair_remember(struct repair *r, uint64_t seq, const struct mirror_range *v,
			    uint32_t n)
{
	struct repair_sent *sent = &r->sent[seq % FLUSH_MAX];
	struct mirror_range fewer[SET_PART_RANGES];

	sent->count = n;
	if (n > REPAIR_SENT_RANGES) {
		memcpy(fewer, v, n * sizeof(*v));
		sent->count = ranges_coarsen(fewer, n, REPAIR_SENT_RANGES, r->m->size);
		v = fewer;
	}
	memcpy(sent->ranges, v, sent->count * sizeof(*v));
}

void repair_on_begin(struct rpmirror *m)
{
	m->repair->sent[m->flush.begun % FLUSH_MAX].begun_us = repair_now_us();
}

void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n)
{
	repair_remember(m->repair, m->flush.begun, v, n);
	if (m->counted)
		absent_on_flush(m, (mirror_mask)~flush_members(&m->flush), v, n);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct repair_member *rm = m->repair->members[slot];
		bool is_sent = m->flush.members[slot].from;

		if (rm && rm->covers && (!is_sent || rm->stage != REPAIR_IDLE))
			resync_on_flush(&rm->rs, v, n);
	}
}

const struct mirror_range *repair_flush_ranges(const struct rpmirror *m, uint64_t seq,
					       uint32_t *count)
{
	const struct repair_sent *sent = &m->repair->sent[seq % FLUSH_MAX];

	*count = sent->count;
	return sent->ranges;
}

struct mirror_range repair_flush_span(const struct rpmirror *m, uint64_t seq)
{
	const struct repair_sent *sent = &m->repair->sent[seq % FLUSH_MAX];
	uint64_t from = UINT64_MAX, to = 0;

	for (uint32_t i = 0; i < sent->count; i++) {
		uint64_t end = sent->ranges[i].offset + sent->ranges[i].len;

		from = sent->ranges[i].offset < from ? sent->ranges[i].offset : from;
		to = end > to ? end : to;
	}
	return (struct mirror_range){to ? from : 0, to ? to - from : 0};
}

uint64_t repair_flush_age(const struct rpmirror *m, uint64_t seq)
{
	return repair_now_us() - m->repair->sent[seq % FLUSH_MAX].begun_us;
}

void repair_on_acked(struct rpmirror *m, uint64_t before, uint64_t retired)
{
	struct repair *r = m->repair;
	uint64_t now = repair_now_us();

	for (uint64_t seq = before + 1; seq <= retired; seq++) {
		uint64_t begun = r->sent[seq % FLUSH_MAX].begun_us, took = now - begun;

		/* If the flush waited for a copy or the register while the set was blocked, its
		 * duration is no measure. */
		if (!m->blocked && begun > m->blocked_until_us)
			latency_add(&m->latency, took);
		for (unsigned slot = 0; r->active && slot < MIRROR_MEMBERS_MAX; slot++)
			if (r->members[slot] && r->members[slot]->stage == REPAIR_RUNNING)
				resync_on_latency(&r->members[slot]->rs, took, now);
		if (!r->active)
			resync_latencies_add(&r->latencies, took);
	}
	if (r->latencies.count >= REPAIR_CALM_COUNT) {
		uint64_t p99 = resync_latencies_p99(&r->latencies);

		r->calm_us = r->calm_us ? (r->calm_us * 3 + p99) / 4 : p99;
		memset(&r->latencies, 0, sizeof(r->latencies));
	}
}
