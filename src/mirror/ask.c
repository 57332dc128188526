/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends the primary's questions to the members' daemons: one question at a time for each member. A
 * question to another host uses the member's control connection; a question about the own copy is
 * sent through this host's daemon.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mirror/core/ranges.h"
#include "mirror/repair.h"
#include "mirror/set.h"

/* factor on replica_timeout: the answer takes longer than a flush, because a promise is written to
 * the medium */
#define ASK_TIMEOUT_FACTOR 2

static enum message_type ask_type(unsigned what)
{
	switch (what) {
	case ASK_PROMISE:
		return MESSAGE_PROMISE;
	case ASK_RANGES:
		return MESSAGE_GET_RANGES;
	case ASK_RETIRE:
		return MESSAGE_RETIRE;
	default:
		return MESSAGE_VIEW;
	}
}

bool ask_send(struct rpmirror *m, unsigned slot, struct message *question)
{
	struct packet p = {.type = PACKET_MEMBER};

	question->uuid = m->uuid;
	question->epoch = m->epoch;
	question->id = ++m->last_question;
	if (slot != m->self)
		return link_send(&m->members[slot].control, question);
	p.member = *question;
	return daemon_send(&m->daemon, &p);
}

static void ask_now(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	struct set_member *member = &m->members[slot];
	/* take the lowest bit, because the bits have the order of the protocol */
	unsigned what = member->asks & -member->asks;
	struct message question = {.type = ask_type(what)};

	if (what == ASK_RANGES)
		question.ranges.index = member->ranges_seen;
	if (what == ASK_VIEW)
		question.view = (struct message_view){m->primary.revision, m->primary.rec.view};
	if (!ask_send(m, slot, &question))
		return;
	member->asks &= ~what;
	member->asking = what;
	member->ask_id = question.id;
	member->ask_deadline_ms =
		now_ms + (uint64_t)m->control_place.timeout_ms * ASK_TIMEOUT_FACTOR;
}

static void ask_connect(struct rpmirror *m, unsigned slot, enum greeting_kind kind, uint64_t now_ms)
{
	const struct mirror_member *to = &m->primary.rec.config.members[slot];
	struct set_member *member = &m->members[slot];
	struct greeting greeting = {.uuid = m->uuid,
				    .epoch = m->epoch,
				    .from = m->self,
				    .to = (uint8_t)slot,
				    .kind = (uint8_t)kind};

	if (kind == GREETING_LANE)
		link_open(&member->lane, &m->lane_place, to->host, to->port, &greeting, now_ms);
	else
		link_open(&member->control, &m->control_place, to->host, to->port, &greeting,
			  now_ms);
}

void ask_member(struct rpmirror *m, unsigned slot, enum ask what)
{
	struct set_member *member = &m->members[slot];

	member->asks |= what;
	if (what == ASK_RANGES)
		member->ranges_seen = 0;
	if (what == ASK_PROMISE)
		member->reported = false;
	if (slot != m->self && member->control.state == LINK_DOWN)
		ask_connect(m, slot, GREETING_CONTROL, clock_boot_ms());
	set_wake(m);
}

void ask_drop(struct rpmirror *m, unsigned slot)
{
	struct set_member *member = &m->members[slot];

	lane_end(m, slot);
	link_close(&member->control);
	member->asks = 0;
	member->asking = 0;
	member->reported = member->retires = false;
}

/* A daemon that cannot write its metadata has to be restarted first. If this process waited for
 * the restart, it would keep the role from hosts with good copies. */
static bool ask_own_has_failed(const struct rpmirror *m, unsigned slot, enum greeting_status status)
{
	return slot == m->self && !m->serving &&
	       (status == GREETING_IO || status == GREETING_COPY_FAILED);
}

static void ask_refused(struct rpmirror *m, unsigned slot, enum greeting_status status,
			struct mirror_epoch known)
{
	enum primary_refusal why = PRIMARY_REFUSED_BUSY;

	if (ask_own_has_failed(m, slot, status)) {
		set_local_failed(m, 1, -EIO);
		act_say_failed(m);
		return;
	}
	if (status == GREETING_EPOCH)
		why = PRIMARY_REFUSED_EPOCH;
	else if (status == GREETING_SPLIT)
		why = PRIMARY_REFUSED_SPLIT;
	else if (status == GREETING_WRONG_COPY || status == GREETING_NO_SET ||
		 status == GREETING_NOT_MEMBER)
		why = PRIMARY_REFUSED_COPY;
	else if (status != GREETING_BUSY && status != GREETING_HELD && status != GREETING_SMALLER) {
		act_lost(m, slot, greeting_status_2str(status));
		return;
	}
	snprintf(m->members[slot].why, sizeof(m->members[slot].why), "%s",
		 greeting_status_2str(status));
	ask_drop(m, slot);
	primary_on_refused(&m->primary, (uint8_t)slot, why, known);
}

/* ---- answers ---- */

static void ask_report(struct rpmirror *m, unsigned slot)
{
	struct set_member *member = &m->members[slot];

	member->reported = true;
	primary_on_promised(&m->primary, (uint8_t)slot, &member->report);
}

/* Returns true if the member gets no lane, because core/primary.h does not use the member in this
 * state. */
static bool ask_is_of_no_use(const struct rpmirror *m, unsigned slot)
{
	const struct primary_report *report = &m->members[slot].report;

	return report->held || report->copy == MIRROR_COPY_FAILED ||
	       (report->tail_unknown && !(m->primary.rec.view.insync & MIRROR_BIT(slot)));
}

/* Pass the promise to the primary: together with the lane, or immediately if the member gets no
 * lane. */
static void ask_on_promised(struct rpmirror *m, unsigned slot, const struct message_promised *p)
{
	struct set_member *member = &m->members[slot];

	member->report = (struct primary_report){
		.copy = (enum mirror_copy)p->copy,
		.held = p->flags & MESSAGE_REPORT_HELD,
		.uncertain = p->flags & MESSAGE_REPORT_UNCERTAIN,
		.tail_unknown = p->size > m->size && p->flags & MESSAGE_REPORT_UNKNOWN,
		.seen = p->seen,
	};
	member->copy_epoch = p->copy_epoch;
	member->source_id = p->source_id;
	member->copy_size = p->size;
	if (slot == m->self) {
		member->report.held = false; /* the holder is this process itself */
		ask_report(m, slot);
	} else if (p->copy_id != m->primary.rec.config.members[slot].id) {
		ask_refused(m, slot, GREETING_WRONG_COPY, m->epoch);
	} else if (p->size < m->size) {
		ask_refused(m, slot, GREETING_SMALLER, m->epoch);
	} else if (ask_is_of_no_use(m, slot)) {
		ask_report(m, slot);
	} else if (member->lane.state == LINK_DOWN) {
		ask_connect(m, slot, GREETING_LANE, clock_boot_ms());
	}
}

static void ask_on_ranges(struct rpmirror *m, unsigned slot, const struct message_ranges *r)
{
	struct set_member *member = &m->members[slot];
	struct mirror_range ranges[MESSAGE_RANGES_MAX];

	/* The member's copy may have grown since this copy was mapped, so cut off the ranges
	 * beyond this copy's end. */
	memcpy(ranges, r->ranges, r->count * sizeof(*ranges));
	if (!ranges_union_add(&m->records, ranges, ranges_clip(ranges, r->count, m->size))) {
		act_lost(m, slot, "there is no memory for its records");
		return;
	}
	member->ranges_seen += r->count;
	if (member->ranges_seen < r->total && r->count)
		member->asks |= ASK_RANGES;
	else
		primary_on_ranges(&m->primary, (uint8_t)slot);
}

static void ask_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer)
{
	struct set_member *member = &m->members[slot];
	unsigned asked = member->asking;

	if (!asked || answer->id != member->ask_id) {
		repair_on_answer(m, slot, answer);
		return;
	}
	member->asking = 0;
	if (answer->type == MESSAGE_DONE) {
		if (answer->done.status != GREETING_OK)
			ask_refused(m, slot, answer->done.status, answer->done.known);
	} else if (answer->type == MESSAGE_PROMISED && asked == ASK_PROMISE) {
		ask_on_promised(m, slot, &answer->promised);
	} else if (answer->type == MESSAGE_RANGES && asked == ASK_RANGES) {
		ask_on_ranges(m, slot, &answer->ranges);
	} else {
		act_lost(m, slot, "its daemon breaks the protocol");
	}
}

void ask_on_own(struct rpmirror *m, const struct message *answer)
{
	ask_on_answer(m, m->self, answer);
}

/* ---- the thread's periodic work ---- */

static void ask_step_lane(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	struct set_member *member = &m->members[slot];
	char why[256];

	link_step(&member->lane, now_ms);
	if (member->lane.state == LINK_READY && !member->batch) {
		lane_begin(m, slot);
		if (!member->lane_failed)
			ask_report(m, slot);
	}
	if (member->lane.state != LINK_ENDED)
		return;
	if (member->lane.status != GREETING_OK) {
		ask_refused(m, slot, member->lane.status, member->lane.known);
	} else {
		lane_explain(m, slot, why, sizeof(why));
		act_lost(m, slot, why);
	}
}

static void ask_step_control(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	struct set_member *member = &m->members[slot];
	struct message answer;

	link_step(&member->control, now_ms);
	while (link_receive(&member->control, &answer))
		ask_on_answer(m, slot, &answer);
	if (member->control.state != LINK_ENDED)
		return;
	if (member->control.status != GREETING_OK)
		ask_refused(m, slot, member->control.status, member->control.known);
	else
		act_lost(m, slot, member->control.why);
}

void ask_step(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	struct set_member *member = &m->members[slot];

	if (slot != m->self) {
		ask_step_control(m, slot, now_ms);
		ask_step_lane(m, slot, now_ms);
	}
	if (member->asking && now_ms >= member->ask_deadline_ms) {
		act_lost(m, slot, "its daemon does not answer");
		return;
	}
	if (member->asks && !member->asking &&
	    (slot == m->self || member->control.state == LINK_READY))
		ask_now(m, slot, now_ms);
}
