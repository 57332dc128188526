/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out the actions of core/primary.h. */
#include <errno.h>
#include <stdio.h>

#include "mirror/absent.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define ACT_READ_MS 1000 /* a read of the register is repeated if it gets no answer in this time */

static void act_swap(struct rpmirror *m, const struct primary_action *action)
{
	uint64_t limit = m->primary.rec.config.blocked_ms, now_ms = clock_boot_ms();
	struct packet *p = &m->packet_out;

	if (!m->primary.swap_failures)
		m->swap_sent_ms = now_ms;
	m->swap_deadline_ms = now_ms + (limit < SET_SWAP_MS ? limit : SET_SWAP_MS);
	absent_exclude(m, action);
	packet_begin(p, PACKET_SWAP, 0);
	p->swap.promotes = action->promotion;
	p->swap.revision = action->revision;
	p->swap.before = *action->expected;
	p->swap.after = *action->record;
	if (daemon_send(&m->daemon, p))
		m->swap_id = p->id;
	else
		primary_on_swap(&m->primary, PRIMARY_SWAP_UNKNOWN, NULL, 0);
}

void act_read(struct rpmirror *m)
{
	struct packet *p = packet_begin(&m->packet_out, PACKET_GET_RECORD, 0);

	m->read_id = 0;
	m->read_again_ms = clock_boot_ms() + ACT_READ_MS;
	if (daemon_send(&m->daemon, p))
		m->read_id = p->id;
}

/* Let the daemon record durably that this copy holds the epoch's flushes. No flush is made before
 * this record. */
void act_serve(struct rpmirror *m)
{
	struct packet *p = packet_begin(&m->packet_out, PACKET_SERVE, 0);

	p->serve = (struct packet_serve){m->epoch, m->primary.force};
	ranges_union_clear(&m->records);
	if (daemon_send(&m->daemon, p))
		m->serve_id = p->id;
}

void act_end(struct rpmirror *m, int code, const char *why)
{
	snprintf(m->ended_why, sizeof(m->ended_why), "set %s: %s", m->set, why);
	__atomic_store_n(&m->ended, code, __ATOMIC_RELEASE);
	m->serving = false;
	if (m->direct)
		direct_begin_close(m->direct);
	lease_end(&m->lease);
	__atomic_store_n(&m->lease_until_ms, 0, __ATOMIC_RELEASE);
	set_notify(m);
}

static void act_fenced(struct rpmirror *m)
{
	events_add(&m->events, RPMIRROR_EVENT_FENCED, UINT32_MAX, m->primary.rec.view.epoch.number,
		   "another primary exists");
	act_end(m, RPMIRROR_E_FENCED,
		"another primary exists: this process is fenced for good; unmap");
}

/* Handle a demotion, which comes from rpmirror_unmap(), the set's last call, or from an
 * operator. */
static void act_demoted(struct rpmirror *m)
{
	events_add(&m->events, RPMIRROR_EVENT_FENCED, UINT32_MAX, m->primary.rec.view.epoch.number,
		   "demoted: all is flushed");
	act_end(m, 1,
		"this host was demoted after all was flushed: unmap the set, and map it again to "
		"become the primary");
}

/* Returns the library's error for a promotion that has failed with this error of primary_fail(). */
static int act_code(int error)
{
	switch (-error) {
	case EBUSY:
	case EAGAIN: /* another promotion was faster */
		return RPMIRROR_E_BUSY;
	case EPERM:
		return RPMIRROR_E_NOTINSYNC;
	case ENOTUNIQ:
		return RPMIRROR_E_SPLIT;
	case EIO:
		return RPMIRROR_E_MEDIUM;
	default:
		return RPMIRROR_E_UNKNOWN;
	}
}

static void act_blocked(struct rpmirror *m, bool blocked, const char *why)
{
	if (blocked && !m->blocked)
		m->blocked_since_ms = m->primary.swap_failures ? m->swap_sent_ms : clock_boot_ms();
	if (!blocked && m->blocked)
		m->blocked_until_us = clock_now_ns() / NSEC_PER_US;
	m->blocked = blocked;
	snprintf(m->blocked_why, sizeof(m->blocked_why), "%s", why ? why : "");
	events_add(&m->events, blocked ? RPMIRROR_EVENT_BLOCKED : RPMIRROR_EVENT_UNBLOCKED,
		   UINT32_MAX, 0, "%s", blocked ? m->blocked_why : "flushes go on");
	set_notify(m);
}

/* Before the set is given up, all flushes must be acknowledged; agent.c repeats this check
 * later. */
static void act_quiesce(struct rpmirror *m)
{
	m->quiescing = true;
	m->quiescing_since_ms = clock_boot_ms();
	if (m->direct)
		direct_begin_close(m->direct);
	set_wake(m);
}

static void act_drop(struct rpmirror *m, unsigned slot)
{
	repair_drop(m, slot);
	if (slot != m->self)
		ask_drop(m, slot);
}

void act_say_failed(struct rpmirror *m)
{
	struct packet *p =
		packet_begin(&m->packet_out, m->lost_error ? PACKET_LOST : PACKET_FAIL, 0);

	p->lost.error = (uint16_t)m->lost_error;
	if (m->says_failed && !m->resume_id && daemon_send(&m->daemon, p))
		m->says_failed = false;
}

/* A former primary may have placed bytes in this host's copy without flushing them. This process
 * reads these bytes and removes their records, so write them to the medium first. */
static void act_ranges(struct rpmirror *m, unsigned slot)
{
	struct mirror_range all = {0, m->size};
	int rc = slot == m->self ? copy_persist(&m->copy, &all, 1) : 0;

	if (rc) {
		set_local_failed(m, 1, rc);
		act_say_failed(m); /* report the failure now, because this process exits */
	} else {
		ask_member(m, slot, ASK_RANGES);
	}
}

void act_retire(struct rpmirror *m)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct set_member *member = &m->members[slot];

		if (!member->retires || m->flush.retired < member->settled)
			continue;
		member->retires = false;
		ask_member(m, slot, ASK_RETIRE);
	}
}

static void act_one(struct rpmirror *m, const struct primary_action *action)
{
	switch (action->type) {
	case PRIMARY_DO_SWAP:
		act_swap(m, action);
		break;
	case PRIMARY_DO_READ:
		act_read(m);
		break;
	case PRIMARY_DO_PROMISE:
		ask_member(m, action->slot, ASK_PROMISE);
		break;
	case PRIMARY_DO_RANGES:
		act_ranges(m, action->slot);
		break;
	case PRIMARY_DO_EQUALISE:
		repair_equalise(m, action);
		break;
	case PRIMARY_DO_RESYNC:
		repair_resync(m, action->slot, action->whole);
		break;
	case PRIMARY_DO_DROP:
		act_drop(m, action->slot);
		break;
	case PRIMARY_DO_RETIRE:
		absent_retire(m, action->slot);
		m->members[action->slot].retires = !action->keeps;
		act_retire(m);
		break;
	case PRIMARY_DO_VIEW:
		ask_member(m, action->slot, ASK_VIEW);
		break;
	case PRIMARY_DO_SERVE:
		act_serve(m);
		break;
	case PRIMARY_DO_QUIESCE:
		act_quiesce(m);
		break;
	case PRIMARY_DO_BLOCKED:
		act_blocked(m, true, action->why);
		break;
	case PRIMARY_DO_UNBLOCKED:
		act_blocked(m, false, NULL);
		break;
	case PRIMARY_DO_DEMOTED:
		act_demoted(m);
		break;
	case PRIMARY_DO_FENCED:
		act_fenced(m);
		break;
	case PRIMARY_DO_FAILED:
		act_end(m, act_code(action->error), action->why);
		break;
	case PRIMARY_DO_COUNT:
		break;
	}
}

/* Start or stop sending flushes to each member, according to primary_sends_to(). */
static void act_align_members(struct rpmirror *m)
{
	mirror_mask wanted = primary_sends_to(&m->primary);

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		bool has = m->flush.members[slot].from, wants = wanted & MIRROR_BIT(slot);
		enum primary_member_state state = m->primary.members[slot].state;

		wants = wants && m->members[slot].batch;
		if (wants && !has)
			flush_member_begin(&m->flush, slot, state == PRIMARY_MEMBER_EQUALISE);
		if (has && !wants)
			flush_member_end(&m->flush, slot);
		if (state == PRIMARY_MEMBER_EQUAL)
			flush_member_paid(&m->flush, slot);
	}
}

static void act_note_view(struct rpmirror *m)
{
	const struct mirror_view *view = &m->primary.rec.view;

	if (view->seq == m->noted_seq && view->insync == m->noted_insync)
		return;
	m->noted_seq = view->seq;
	m->noted_insync = view->insync;
	events_add(&m->events, RPMIRROR_EVENT_VIEW, UINT32_MAX, view->insync,
		   "epoch %llu.%llu: in-sync members %#x", (unsigned long long)view->epoch.number,
		   (unsigned long long)view->seq, view->insync);
}

void act_all(struct rpmirror *m)
{
	struct primary_action action;

	if (m->has_lost_files)
		return;
	while (primary_next(&m->primary, &action)) {
		if (!m->epoch.number && m->primary.state == PRIMARY_RECOVERING)
			m->epoch = m->primary.rec.view.epoch;
		act_one(m, &action);
		act_align_members(m);
	}
	act_align_members(m);
	absent_configure(m);
	act_note_view(m);
	restore_publish(m);
	wait_settle(m);
}

void act_lost(struct rpmirror *m, unsigned slot, const char *why)
{
	struct set_member *member = &m->members[slot];

	if (m->has_lost_files)
		return;
	snprintf(member->why, sizeof(member->why), "%s", why);
	events_add(&m->events, RPMIRROR_EVENT_LOST, slot, 0, "%s: %s",
		   set_member_name(m, slot).text, member->why);
	repair_drop(m, slot);
	if (slot != m->self)
		ask_drop(m, slot);
	primary_tick(&m->primary, clock_boot_ms());
	primary_on_lost(&m->primary, (uint8_t)slot);
}
