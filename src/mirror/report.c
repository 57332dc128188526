/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/report.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mirror/repair.h"
#include "mirror/set.h"

/* a wait of this many times replica_timeout without any progress is reported */
#define REPORT_STUCK 3

/* ---- the status of members ---- */

static enum mirror_flow report_flow(const struct rpmirror *m, unsigned slot)
{
	if (m->compare.running & MIRROR_BIT(slot))
		return MIRROR_FLOW_VERIFYING;
	switch (m->primary.members[slot].state) {
	case PRIMARY_MEMBER_EQUAL:
		return slot == m->self ? MIRROR_FLOW_NONE : MIRROR_FLOW_REPLICATING;
	case PRIMARY_MEMBER_JOINING:
	case PRIMARY_MEMBER_JOINED:
		return MIRROR_FLOW_JOINING;
	case PRIMARY_MEMBER_EQUALISE:
		return m->serving ? MIRROR_FLOW_JOINING : MIRROR_FLOW_CATCHING_UP;
	case PRIMARY_MEMBER_RESYNC:
		return MIRROR_FLOW_CATCHING_UP;
	default:
		return m->primary.members[slot].kept_out ? MIRROR_FLOW_PAUSED : MIRROR_FLOW_NONE;
	}
}

static enum mirror_link report_link(const struct rpmirror *m, unsigned slot)
{
	const struct primary_member *member = &m->primary.members[slot];

	if (slot == m->self || member->state > PRIMARY_MEMBER_FENCING)
		return MIRROR_LINK_CONNECTED;
	if (primary_is_refused(&m->primary, (uint8_t)slot))
		return MIRROR_LINK_REFUSED;
	return m->members[slot].control.state == LINK_DOWN ? MIRROR_LINK_DOWN
							   : MIRROR_LINK_CONNECTING;
}

static enum mirror_copy report_copy(const struct rpmirror *m, unsigned slot)
{
	if (slot == m->self && m->failed_seq)
		return MIRROR_COPY_FAILED;
	if (m->primary.rec.view.insync & MIRROR_BIT(slot))
		return MIRROR_COPY_INSYNC;
	return m->primary.members[slot].state >= PRIMARY_MEMBER_EQUALISE ? MIRROR_COPY_SYNCING
									 : MIRROR_COPY_UNKNOWN;
}

/* Fill in the times until the next attempts. A member that is kept out has no such time, because
 * only an operator lets it return. */
static void report_fill_waits(const struct rpmirror *m, unsigned slot, struct packet_report *r)
{
	const struct primary_member *member = &m->primary.members[slot];

	if (slot == m->self || m->ended)
		return;
	if (member->state == PRIMARY_MEMBER_AWAY && !member->kept_out)
		r->retry_ms[slot] = member->retry_ms;
	r->deadline_ms[slot] = member->deadline_ms;
}

/* Returns the reason why a member is not in-sync. An error of the member's connection explains
 * more than its silence. */
static const char *report_reason(const struct rpmirror *m, unsigned slot)
{
	const char *trouble = m->primary.members[slot].trouble;

	if (m->members[slot].why[0] && !primary_is_refused(&m->primary, (uint8_t)slot))
		return m->members[slot].why;
	return trouble ? trouble : "";
}

static void report_fill_member(const struct rpmirror *m, unsigned slot, struct packet_report *r)
{
	struct message_member *out = &r->status.members[slot];
	struct resync_progress progress;

	out->copy = (uint8_t)report_copy(m, slot);
	out->link = (uint8_t)report_link(m, slot);
	out->flow = (uint8_t)report_flow(m, slot);
	out->remaining = repair_get_remaining(m, slot);
	if (repair_get_progress(m, slot, &progress))
		out->rate = (uint32_t)(progress.rate >> 10);
	out->p99_us = latency_percentile(&m->members[slot].latency, 99);
	report_fill_waits(m, slot, r);
	if (m->primary.members[slot].state == PRIMARY_MEMBER_EQUAL &&
	    out->copy == MIRROR_COPY_INSYNC)
		return;
	text_cut(r->reasons[slot], PACKET_WHY, report_reason(m, slot));
}

/* ---- the status of the set ---- */

static enum mirror_health report_health(const struct rpmirror *m)
{
	if (m->ended || !m->serving)
		return MIRROR_HEALTH_DOWN;
	if (m->blocked || m->is_protected)
		return MIRROR_HEALTH_BLOCKED;
	if (m->lease_over)
		return MIRROR_HEALTH_DEGRADED; /* without a lease no read can be confirmed */
	return primary_is_whole(&m->primary) ? MIRROR_HEALTH_HEALTHY : MIRROR_HEALTH_DEGRADED;
}

static enum mirror_role report_role(const struct rpmirror *m)
{
	if (m->ended == RPMIRROR_E_FENCED)
		return MIRROR_ROLE_FENCED;
	return m->epoch.number && !m->ended ? MIRROR_ROLE_PRIMARY : MIRROR_ROLE_SECONDARY;
}

static bool report_any_stuck(const struct rpmirror *m)
{
	bool any = m->report.blocked.is_stuck;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		any |= m->report.members[slot].is_stuck;
	return any;
}

static void report_fill(struct rpmirror *m, struct packet_report *r)
{
	memset(r, 0, sizeof(*r));
	r->status.role = (uint8_t)report_role(m);
	r->status.health = (uint8_t)report_health(m);
	r->status.copy = (uint8_t)report_copy(m, m->self);
	r->status.flags = report_any_stuck(m) ? MESSAGE_STATUS_STUCK : 0;
	r->status.flushes = m->flush.begun;
	r->status.acked = m->flush.retired;
	r->status.p50_us = latency_percentile(&m->latency, 50);
	r->status.p99_us = latency_percentile(&m->latency, 99);
	if (m->ended)
		text_cut(r->why, sizeof(r->why), m->ended_why);
	else if (m->blocked)
		text_cut(r->why, sizeof(r->why), m->blocked_why);
	else if (m->lease_over)
		snprintf(r->why, sizeof(r->why),
			 "the lease is over, because the register was not reached: no read is "
			 "confirmed");
	compare_progress(m, r);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->primary.rec.config.members[slot].id)
			report_fill_member(m, slot, r);
}

/* Remove the numbers that change all the time, so that reports can be compared. */
static void report_strip(struct packet_report *r)
{
	r->status.flushes = r->status.acked = 0;
	r->status.p50_us = r->status.p99_us = 0;
	r->verify_compared = r->verify_different = 0;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		r->status.members[slot].remaining = 0;
		r->status.members[slot].rate = 0;
		r->status.members[slot].p99_us = 0;
	}
}

static void report_send_status(struct rpmirror *m, uint64_t now_ms)
{
	struct packet *p = packet_begin(&m->packet_out, PACKET_STATUS, 0);
	struct packet_report words;

	report_fill(m, &p->report);
	words = p->report;
	report_strip(&words);
	if (now_ms < m->report.next_ms && !memcmp(&words, &m->report.last, sizeof(words)))
		return;
	if (!daemon_send(&m->daemon, p))
		return;
	m->report.last = words;
	m->report.next_ms = now_ms + PACKET_STATUS_MS;
}

void report_again(struct rpmirror *m)
{
	m->report.next_ms = 0;
}

/* ---- events ---- */

static bool report_event_what(enum rpmirror_event_type type, uint8_t *what)
{
	static const struct {
		enum rpmirror_event_type type;
		enum packet_event_what what;
	} words[] = {
		{RPMIRROR_EVENT_LOST, PACKET_EVENT_LOST},
		{RPMIRROR_EVENT_SLOW, PACKET_EVENT_SLOW},
		{RPMIRROR_EVENT_LEASE_OVER, PACKET_EVENT_LEASE},
		{RPMIRROR_EVENT_FENCED, PACKET_EVENT_FENCED},
		{RPMIRROR_EVENT_LOCAL_FAILED, PACKET_EVENT_MEDIUM},
		{RPMIRROR_EVENT_ERROR, PACKET_EVENT_ERROR},
		{RPMIRROR_EVENT_STUCK, PACKET_EVENT_STUCK},
		{RPMIRROR_EVENT_VERIFIED, PACKET_EVENT_VERIFY},
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].type == type) {
			*what = (uint8_t)words[i].what;
			return true;
		}
	}
	return false; /* send no EVENT: the daemon notices this itself */
}

static void report_send_events(struct rpmirror *m)
{
	struct packet *p = &m->packet_out;
	struct rpmirror_event event;

	while (m->daemon.fd >= 0 && events_take_unreported(&m->events, &event)) {
		packet_begin(p, PACKET_EVENT, 0);
		if (!report_event_what(event.type, &p->event.what))
			continue;
		p->event.member =
			event.member < MIRROR_MEMBERS_MAX ? (uint8_t)event.member : MIRROR_NO_SLOT;
		snprintf(p->event.text, sizeof(p->event.text), "%s", event.text);
		daemon_send(&m->daemon, p);
	}
}

/* ---- members without progress ---- */

/* Returns true if a wait has become stuck. Returns false if it is not stuck, or was already
 * reported. */
static bool report_got_stuck(const struct rpmirror *m, struct report_wait *wait, uint64_t token,
			     uint64_t now_ms)
{
	if (token != wait->token || !wait->since_ms) {
		*wait = (struct report_wait){.token = token, .since_ms = now_ms};
		return false;
	}
	if (wait->is_stuck ||
	    now_ms - wait->since_ms <
		    REPORT_STUCK * (uint64_t)m->primary.rec.config.replica_timeout_ms)
		return false;
	wait->is_stuck = true;
	return true;
}

/* Returns a number that changes with each step of the work that makes the member equal. */
static uint64_t report_token(const struct rpmirror *m, unsigned slot)
{
	enum primary_member_state state = m->primary.members[slot].state;
	struct resync_progress p;

	if (!repair_get_progress(m, slot, &p))
		/* count an attempt to connect as no progress */
		return state < PRIMARY_MEMBER_RANGES ? 1 : 2;
	return 3 + p.copied + p.equal + p.differing + p.pass;
}

static void report_watch_member(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	struct report_wait *wait = &m->report.members[slot];
	const char *why = m->primary.members[slot].trouble;

	if (!m->primary.rec.config.members[slot].id || slot == m->self || m->ended ||
	    m->primary.members[slot].state == PRIMARY_MEMBER_EQUAL ||
	    m->primary.members[slot].kept_out) {
		memset(wait, 0, sizeof(*wait));
		return;
	}
	if (!report_got_stuck(m, wait, report_token(m, slot), now_ms))
		return;
	if (!why)
		why = m->members[slot].why[0] ? m->members[slot].why : "it cannot be reached";
	events_add(&m->events, RPMIRROR_EVENT_STUCK, slot, now_ms - wait->since_ms,
		   "%s: not in-sync, and no progress for %.1f s: %s", set_member_name(m, slot).text,
		   (double)(now_ms - wait->since_ms) / 1000, why);
}

static void report_watch(struct rpmirror *m, uint64_t now_ms)
{
	struct report_wait *wait = &m->report.blocked;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		report_watch_member(m, slot, now_ms);
	if (!m->blocked || m->ended)
		memset(wait, 0, sizeof(*wait));
	else if (report_got_stuck(m, wait, m->blocked_since_ms, now_ms))
		events_add(&m->events, RPMIRROR_EVENT_STUCK, UINT32_MAX, now_ms - wait->since_ms,
			   "blocked for %.1f s: %s", (double)(now_ms - wait->since_ms) / 1000,
			   m->blocked_why);
}

void report_step(struct rpmirror *m, uint64_t now_ms)
{
	latency_tick(&m->latency, now_ms);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		latency_tick(&m->members[slot].latency, now_ms);
	report_watch(m, now_ms);
	report_send_events(m);
	report_send_status(m, now_ms);
}
