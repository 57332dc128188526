/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mirror/compare_impl.h"
#include "mirror/order.h"
#include "mirror/repair_impl.h"

/* ---- one member ---- */

/* Begin the comparison with one member. Returns false if memory is missing. */
static bool compare_begin(struct rpmirror *m, unsigned slot)
{
	struct mirror_range all = {0, m->size};
	struct repair_member *rm = repair_make_ready(m, slot);
	struct resync_config config = {.size = m->size, .piece = REPAIR_PIECE};

	if (rm && !rm->compare_bits)
		rm->compare_bits = calloc(resync_words(m->size), sizeof(uint64_t));
	if (!rm || !rm->compare_bits)
		return false;
	repair_note_equal(m, slot);
	config.bits = rm->compare_bits;
	config.calm_us = m->repair->calm_us;
	config.limits.max_rate = m->compare.rate;
	if (!m->compare.rate || m->compare.rate > RESYNC_MIN_RATE_DEFAULT)
		config.limits.min_rate = RESYNC_MIN_RATE_DEFAULT;
	memset(rm->compare_bits, 0, resync_words(m->size) * sizeof(uint64_t));
	resync_init(&rm->rs, RESYNC_VERIFY, &config, repair_now_us());
	resync_mark(&rm->rs, &all, 1, true);
	rm->is_equalise = false;
	rm->is_compare = true;
	repair_connect(m, slot);
	m->compare.running |= MIRROR_BIT(slot);
	m->compare.total += m->size;
	return true;
}

/* End the comparison with the member, and continue with the bitmap that it had before. */
static void compare_leave(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	rm->is_compare = false;
	repair_pump_end(m->repair, rm);
	repair_set_stage(m, rm, REPAIR_IDLE);
	if (rm->covers)
		repair_init_resync(m, rm, RESYNC_CATCH_UP);
	m->compare.running &= (mirror_mask)~MIRROR_BIT(slot);
	set_wake(m);
}

void compare_on_read(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	if (!rm->is_compare)
		return;
	for (uint64_t seq = m->flush.members[slot].done + 1; seq <= m->flush.begun; seq++) {
		const struct repair_sent *sent = &m->repair->sent[seq % FLUSH_MAX];

		resync_on_flush(&rm->rs, sent->ranges, sent->count);
	}
}

void compare_on_done(struct rpmirror *m, unsigned slot)
{
	m->compare.result.compared += m->size;
	m->compare.whole |= MIRROR_BIT(slot);
	compare_leave(m, slot);
}

void compare_on_lost(struct rpmirror *m, unsigned slot, const char *why)
{
	snprintf(m->compare.why, sizeof(m->compare.why), "the copy of %s could not be compared: %s",
		 set_member_name(m, slot).text, why);
	compare_leave(m, slot);
}

void compare_on_unreadable(struct rpmirror *m, unsigned slot, const struct mirror_range *range,
			   const char *why)
{
	const struct packet_difference d = {.member = (uint8_t)slot,
					    .wrong = FINDING_MEMBER,
					    .mended = PACKET_IS_REPAIRED,
					    .range = *range};
	struct repair_member *rm = m->repair->members[slot];
	struct resync_progress p;

	if (repair_get_progress(m, slot, &p))
		m->compare.result.compared += m->size - p.remaining;
	compare_note_difference(&m->compare.result, &d);
	m->compare.differ |= MIRROR_BIT(slot);
	compare_leave(m, slot);
	resync_mark(&rm->rs, range, 1, false);
	act_lost(m, slot, why);
}

/* ---- the order ---- */

static void compare_refuse(struct rpmirror *m, uint32_t id, enum packet_status status,
			   const char *text)
{
	order_answer(m, id, status, text, NULL);
}

/* Returns the in-sync members in `wanted`, without this host's member. */
static mirror_mask compare_members(const struct rpmirror *m, uint8_t wanted)
{
	mirror_mask mask = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (slot != m->self && (wanted == MIRROR_NO_SLOT || wanted == slot) &&
		    m->primary.members[slot].state == PRIMARY_MEMBER_EQUAL &&
		    m->primary.rec.view.insync & MIRROR_BIT(slot))
			mask |= MIRROR_BIT(slot);
	return mask;
}

static void compare_begin_all(struct rpmirror *m, mirror_mask members)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members & MIRROR_BIT(slot) && !compare_begin(m, slot))
			snprintf(m->compare.why, sizeof(m->compare.why),
				 "there is no memory to compare the copy of %s",
				 set_member_name(m, slot).text);
}

void compare_order(struct rpmirror *m, const struct packet *p)
{
	mirror_mask members = compare_members(m, p->order.member);

	if (m->compare.is_open) {
		compare_refuse(m, p->id, PACKET_BUSY, "the copies are being compared already");
	} else if (m->primary.state != PRIMARY_SERVING) {
		compare_refuse(m, p->id, PACKET_BUSY, "the primary does not serve");
	} else if (m->failed_seq) {
		compare_refuse(
			m, p->id, PACKET_COPY_FAILED,
			"the primary's copy has failed: other copies are not compared with it");
	} else if (!members) {
		compare_refuse(m, p->id, PACKET_NOT_INSYNC,
			       p->order.member == MIRROR_NO_SLOT
				       ? "only the primary's copy is in-sync"
				       : "its copy is not in-sync, or is the primary's");
	} else {
		m->compare = (struct compare){.is_open = true,
					      .id = p->id,
					      .repair = p->order.flag && !p->order.is_automatic,
					      .is_automatic = p->order.is_automatic,
					      .rate = p->order.rate,
					      .deadline_ms = order_deadline(&p->order)};
		compare_begin_all(m, members);
	}
}

static bool compare_is_repair(const struct compare *c)
{
	return c->repair || c->is_automatic;
}

/* Handle the members that leave the in-sync set after the comparison. A member to be repaired
 * returns without a pause. A member that is kept out does not return. */
static void compare_look_after(struct rpmirror *m)
{
	struct compare *c = &m->compare;
	mirror_mask insync = m->primary.rec.view.insync;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		mirror_mask bit = MIRROR_BIT(slot);
		bool is_equal = m->primary.members[slot].state == PRIMARY_MEMBER_EQUAL;

		if (c->lost & bit && !(insync & bit)) {
			c->lost &= (mirror_mask)~bit;
			if (m->primary.members[slot].kept_out)
				continue;
			c->absent |= bit;
			primary_readmit(&m->primary, (uint8_t)slot);
		} else if ((c->lost | c->absent) & bit && insync & bit && is_equal &&
			   !m->primary.members[slot].lost) {
			c->lost &= (mirror_mask)~bit;
			c->absent &= (mirror_mask)~bit;
		}
	}
}

static const char *compare_mended_text(const struct rpmirror *m, unsigned slot)
{
	if (m->compare.result.left_members & MIRROR_BIT(slot))
		return m->compare.leaves & MIRROR_BIT(slot) && !compare_is_repair(&m->compare)
			       ? " (excluded until 'rpmirror resume')"
			       : " (not overwritten)";
	return compare_is_repair(&m->compare) ? " (repaired)" : "";
}

/* Returns the text that names the wrong copy. */
static const char *compare_verdict_text(const struct compare *c)
{
	if (c->repair)
		return "";
	if (c->primary_differs)
		return "; the primary's copy is the one that differs from the others";
	if (c->undecided)
		return "; no majority of the copies agrees, so the right copy is unknown";
	return c->cannot_leave ? "; fewer copies would be left than the set needs" : "";
}

static void compare_text(const struct rpmirror *m, char *text, size_t size)
{
	const struct packet_verified *v = &m->compare.result;
	size_t n =
		(size_t)snprintf(text, size, "the copies were compared: %llu bytes, %llu differ",
				 (unsigned long long)v->compared, (unsigned long long)v->different);

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && n < size; slot++)
		if (m->compare.differ & MIRROR_BIT(slot))
			n += (size_t)snprintf(text + n, size - n, ", at %s%s",
					      m->primary.rec.config.members[slot].name,
					      compare_mended_text(m, slot));
	if (n < size)
		n += (size_t)snprintf(text + n, size - n, "%s", compare_verdict_text(&m->compare));
	if (m->compare.why[0] && n < size)
		snprintf(text + n, size - n, "; %s", m->compare.why);
}

static void compare_end(struct rpmirror *m)
{
	struct compare *c = &m->compare;
	char text[2 * PACKET_TEXT];

	compare_text(m, text, sizeof(text));
	events_add(&m->events, RPMIRROR_EVENT_VERIFIED,
		   c->differ ? (uint32_t)__builtin_ctz(c->differ) : UINT32_MAX, c->result.different,
		   "%.255s", text);
	/*
	 * The result contains only members that were compared as a whole. If the order was already
	 * answered at its time limit, the result is sent as an answer without an id.
	 */
	c->result.members = c->is_judged ? c->whole : 0;
	order_answer(m, c->is_answered ? 0 : c->id, c->why[0] ? PACKET_IO : PACKET_OK, c->why,
		     &c->result);
	c->is_open = false;
}

void compare_step(struct rpmirror *m, uint64_t now_ms)
{
	struct packet_report now = {0};
	char text[PACKET_TEXT];

	if (!m->compare.is_open)
		return;
	if (!m->compare.running && !m->compare.is_judged && !m->ended)
		compare_judge(m);
	compare_look_after(m);
	if (!m->compare.running && (m->ended || !(m->compare.lost | m->compare.absent))) {
		compare_end(m);
		return;
	}
	if (m->compare.is_answered || now_ms < m->compare.deadline_ms)
		return;
	compare_progress(m, &now);
	snprintf(text, sizeof(text), "%llu of %llu bytes were compared, %llu differ",
		 (unsigned long long)now.verify_compared, (unsigned long long)now.verify_total,
		 (unsigned long long)now.verify_different);
	compare_refuse(m, m->compare.id, PACKET_TIMEOUT, text);
	m->compare.is_answered = true;
}

void compare_progress(const struct rpmirror *m, struct packet_report *report)
{
	if (!m->compare.is_open)
		return;
	report->verify_total = m->compare.total;
	report->verify_compared = m->compare.result.compared;
	report->verify_different = m->compare.result.different;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct resync_progress p;

		if (m->compare.running & MIRROR_BIT(slot) && repair_get_progress(m, slot, &p))
			report->verify_compared += m->size - p.remaining;
	}
}
