/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/order.h"

#include <stdio.h>

#include "mirror/repair.h"
#include "mirror/set.h"

/* ---- answers ---- */

void order_answer(struct rpmirror *m, uint32_t id, enum packet_status status, const char *text,
		  const struct packet_verified *verified)
{
	struct packet *p = packet_begin(&m->packet_out, PACKET_ORDERED, id);

	p->ordered.status = (uint8_t)status;
	snprintf(p->ordered.text, sizeof(p->ordered.text), "%s", text);
	if (verified)
		p->ordered.verified = *verified;
	daemon_send(&m->daemon, p);
}

static void order_end(struct rpmirror *m, enum packet_status status, const char *text)
{
	if (!m->order.is_answered)
		order_answer(m, m->order.id, status, text, NULL);
	m->order.is_open = false;
}

static bool order_is_insync(const struct rpmirror *m)
{
	return m->primary.rec.view.insync & MIRROR_BIT(m->order.what.member);
}

static void order_refuse(struct rpmirror *m, enum packet_status status, const char *why)
{
	char text[PACKET_TEXT];

	snprintf(text, sizeof(text), "member %s %s",
		 m->primary.rec.config.members[m->order.what.member].name, why);
	order_end(m, status, text);
}

/* ---- each order ---- */

/* Take the member out of the in-sync set, or end the work with it; afterwards the member stays
 * away. */
static bool order_exclude(struct rpmirror *m)
{
	uint8_t slot = m->order.what.member;
	const char *why;
	char text[PACKET_TEXT / 2];
	int rc;

	repair_note_equal(m, slot);
	rc = primary_exclude(&m->primary, slot, &why);
	if (rc) {
		snprintf(text, sizeof(text), "cannot be excluded: %s", why);
		order_refuse(m, PACKET_COPIES, text);
		return false;
	}
	snprintf(m->members[slot].why, sizeof(m->members[slot].why),
		 "an operator keeps it away: rpmirror resume lets it return");
	return true;
}

static void order_resync(struct rpmirror *m)
{
	uint8_t slot = m->order.what.member;

	/* Do not exclude the member: it could not return to the in-sync set as long as this
	 * primary serves. */
	if (!primary_is_source(&m->primary)) {
		order_end(m, PACKET_COPY_FAILED,
			  "the primary's copy has failed, so it cannot make other copies equal: "
			  "promote a member whose copy is good first");
		return;
	}
	if (!m->order.what.flag && order_is_insync(m)) {
		order_end(m, PACKET_OK,
			  "it is in-sync and lacks nothing; --full would compare all of it");
		return;
	}
	if (!m->order.what.flag || !order_exclude(m))
		return;
	repair_forget(m, slot);
}

static void order_pause(struct rpmirror *m)
{
	if (order_is_insync(m))
		order_refuse(m, PACKET_BAD, "is in-sync: there is no resync; `fence` excludes it");
	else if (order_exclude(m))
		order_end(m, PACKET_OK, "");
}

/* Carry out an order that can be answered immediately. */
static void order_carry_out(struct rpmirror *m)
{
	switch (m->order.what.order) {
	case PACKET_ORDER_DEMOTE:
		primary_demote(&m->primary);
		break;
	case PACKET_ORDER_RESYNC:
		order_resync(m);
		break;
	case PACKET_ORDER_PAUSE:
		order_pause(m);
		break;
	case PACKET_ORDER_RESUME:
		primary_readmit(&m->primary, m->order.what.member);
		order_end(m, PACKET_OK, "");
		break;
	case PACKET_ORDER_FENCE:
		order_exclude(m);
		break;
	default:
		order_end(m, PACKET_BAD, "this version of librpmirror does not do that");
		break;
	}
}

static bool order_is_possible(struct rpmirror *m)
{
	uint8_t slot = m->order.what.member;
	bool has_member = slot < MIRROR_MEMBERS_MAX && m->primary.rec.config.members[slot].id;

	if (m->order.what.order == PACKET_ORDER_DEMOTE)
		return true;
	if (m->primary.state != PRIMARY_SERVING)
		order_end(m, PACKET_BUSY, "the primary does not serve yet, or no longer serves");
	else if (!has_member)
		order_end(m, PACKET_BAD, "there is no such member");
	else if (slot == m->self)
		order_refuse(m, PACKET_BAD, "is the primary, which is the source of all others");
	else
		return true;
	return false;
}

uint64_t order_deadline(const struct packet_order_request *what)
{
	/* Subtract an eighth, because the answer has to arrive before the time limit. */
	return what->timeout_ms ? clock_boot_ms() + what->timeout_ms - what->timeout_ms / 8
				: UINT64_MAX;
}

void order_begin(struct rpmirror *m, const struct packet *p)
{
	if (p->order.order == PACKET_ORDER_VERIFY) {
		compare_order(m, p);
		return;
	}
	if (m->order.is_open && !m->order.is_answered) {
		order_answer(m, p->id, PACKET_BUSY, "another order is being carried out", NULL);
		return;
	}
	m->order = (struct order){.is_open = true,
				  .id = p->id,
				  .what = p->order,
				  .deadline_ms = order_deadline(&p->order)};
	if (order_is_possible(m))
		order_carry_out(m);
	act_all(m);
	set_wake(m);
}

/* ---- orders that take time ---- */

/* Returns the status for a role that ended in another way than by a demotion. */
static enum packet_status order_ended_status(const struct rpmirror *m)
{
	return m->ended == RPMIRROR_E_FENCED ? PACKET_EPOCH : PACKET_BAD;
}

static void order_look_demoted(struct rpmirror *m)
{
	if (m->ended)
		order_end(m, m->ended > 0 ? PACKET_OK : order_ended_status(m),
			  m->ended > 0 ? "" : m->ended_why);
}

static void order_look_excluded(struct rpmirror *m)
{
	uint8_t slot = m->order.what.member;

	if (!order_is_insync(m))
		order_end(m, PACKET_OK, "it is excluded until `rpmirror resume`");
	else if (!m->primary.members[slot].kept_out)
		order_refuse(m, PACKET_REGISTER,
			     "is in-sync again: the register had not answered in time");
}

static void order_look_resync(struct rpmirror *m)
{
	if (m->order.what.flag && order_is_insync(m) &&
	    m->primary.members[m->order.what.member].kept_out)
		return; /* the member is leaving the in-sync set */
	primary_readmit(&m->primary, m->order.what.member);
	order_end(m, PACKET_OK, "");
}

static void order_look(struct rpmirror *m)
{
	switch (m->order.what.order) {
	case PACKET_ORDER_DEMOTE:
		order_look_demoted(m);
		break;
	case PACKET_ORDER_FENCE:
		order_look_excluded(m);
		break;
	case PACKET_ORDER_RESYNC:
		order_look_resync(m);
		break;
	default:
		break;
	}
}

void order_step(struct rpmirror *m, uint64_t now_ms)
{
	if (!m->order.is_open)
		return;
	order_look(m);
	if (m->order.is_open && m->ended)
		order_end(m, order_ended_status(m), m->ended_why);
	if (!m->order.is_open || m->order.is_answered || now_ms < m->order.deadline_ms)
		return;
	order_answer(m, m->order.id, PACKET_TIMEOUT,
		     m->blocked                              ? m->blocked_why
		     : m->primary.state == PRIMARY_QUIESCING ? "flushes are not acknowledged yet"
							     : "the register has not answered yet",
		     NULL);
	m->order.is_answered = true;
}
