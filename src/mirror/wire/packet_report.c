/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes the primary's reports (status, events), the orders that the daemon gives to
 * the primary, and the primary's answers to orders (ORDERED). */
#include <assert.h>
#include <string.h>

#include "mirror/wire/fields.h"
#include "mirror/wire/packet_impl.h"

/* The status has the form of the message STATUS. */
void packet_put_report(struct wcursor *c, const struct packet *p)
{
	const struct packet_report *report = &p->report;
	struct message m = {.type = MESSAGE_STATUS, .status = report->status};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, p->versions.newest, buf);
	wcursor_bytes(c, buf, sizeof(buf));
	fields_put_text(c, report->why, sizeof(report->why));
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		fields_put_text(c, report->reasons[i], sizeof(report->reasons[i]));
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		wcursor_le(c, report->retry_ms[i], 8);
		wcursor_le(c, report->deadline_ms[i], 8);
	}
	wcursor_le(c, report->verify_total, 8);
	wcursor_le(c, report->verify_compared, 8);
	wcursor_le(c, report->verify_different, 8);
}

static void packet_get_status(struct rcursor *c, unsigned version, struct message_status *status)
{
	const uint8_t *at = rcursor_bytes(c, MESSAGE_SIZE);
	static const struct mirror_uuid none;
	struct message m;

	if (!at || message_decode(at, MESSAGE_SIZE, version, &m) || m.type != MESSAGE_STATUS ||
	    m.id || memcmp(&m.uuid, &none, sizeof(none)) != 0 || m.epoch.number || m.epoch.nonce)
		c->bad = true;
	else
		*status = m.status;
}

void packet_get_report(struct rcursor *c, struct packet *p)
{
	struct packet_report *report = &p->report;

	packet_get_status(c, p->versions.newest, &report->status);
	fields_get_text(c, report->why, sizeof(report->why));
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		fields_get_text(c, report->reasons[i], sizeof(report->reasons[i]));
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		report->retry_ms[i] = rcursor_le(c, 8);
		report->deadline_ms[i] = rcursor_le(c, 8);
	}
	report->verify_total = rcursor_le(c, 8);
	report->verify_compared = rcursor_le(c, 8);
	report->verify_different = rcursor_le(c, 8);
}

void packet_put_event(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->event.what);
	wcursor_u8(c, p->event.member);
	fields_put_text(c, p->event.text, sizeof(p->event.text));
}

void packet_get_event(struct rcursor *c, struct packet *p)
{
	p->event.what = fields_get_below(c, PACKET_EVENT_END);
	p->event.member = fields_get_slot(c);
	fields_get_text(c, p->event.text, sizeof(p->event.text));
}

void packet_put_order(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->order.order);
	wcursor_u8(c, p->order.member);
	wcursor_u8(c, p->order.flag);
	wcursor_le(c, p->order.timeout_ms, 4);
	wcursor_le(c, p->order.rate, 8);
	if (packet_has_findings(p))
		wcursor_u8(c, p->order.is_automatic);
}

void packet_get_order(struct rcursor *c, struct packet *p)
{
	p->order.order = fields_get_below(c, PACKET_ORDER_END);
	p->order.member = fields_get_slot(c);
	p->order.flag = rcursor_bool(c, 1);
	p->order.timeout_ms = (uint32_t)rcursor_le(c, 4);
	p->order.rate = rcursor_le(c, 8);
	/* A daemon of version 1 orders a scrub as a repair: recognise it by its number. */
	p->order.is_automatic =
		packet_has_findings(p) ? rcursor_bool(c, 1) : p->id == PACKET_SCRUB_ID;
	if (!p->order.order)
		c->bad = true;
}

static void packet_put_verdicts(struct wcursor *c, const struct packet_verified *v)
{
	wcursor_u8(c, v->members);
	wcursor_le(c, v->left, 8);
	wcursor_u8(c, v->left_members);
	for (unsigned i = 0; i < v->count; i++) {
		wcursor_u8(c, v->differences[i].wrong);
		wcursor_u8(c, v->differences[i].mended);
	}
}

static void packet_get_verdicts(struct rcursor *c, struct packet_verified *v)
{
	v->members = rcursor_u8(c);
	v->left = rcursor_le(c, 8);
	v->left_members = rcursor_u8(c);
	for (unsigned i = 0; i < v->count; i++) {
		v->differences[i].wrong = fields_get_below(c, FINDING_WRONG_END);
		v->differences[i].mended = fields_get_below(c, PACKET_MENDED_END);
	}
}

void packet_put_ordered(struct wcursor *c, const struct packet *p)
{
	const struct packet_verified *v = &p->ordered.verified;

	assert(v->count <= PACKET_DIFFERENCES);
	wcursor_u8(c, p->ordered.status);
	fields_put_text(c, p->ordered.text, sizeof(p->ordered.text));
	wcursor_le(c, v->compared, 8);
	wcursor_le(c, v->different, 8);
	wcursor_u8(c, v->count);
	for (unsigned i = 0; i < v->count; i++) {
		wcursor_u8(c, v->differences[i].member);
		wcursor_le(c, v->differences[i].range.offset, 8);
		wcursor_le(c, v->differences[i].range.len, 8);
	}
	if (packet_has_findings(p))
		packet_put_verdicts(c, v);
}

void packet_get_ordered(struct rcursor *c, struct packet *p)
{
	struct packet_verified *v = &p->ordered.verified;

	p->ordered.status = fields_get_below(c, PACKET_STATUS_END);
	fields_get_text(c, p->ordered.text, sizeof(p->ordered.text));
	v->compared = rcursor_le(c, 8);
	v->different = rcursor_le(c, 8);
	v->count = fields_get_below(c, PACKET_DIFFERENCES + 1);
	for (unsigned i = 0; i < v->count; i++) {
		v->differences[i].member = fields_get_below(c, MIRROR_MEMBERS_MAX);
		v->differences[i].range.offset = rcursor_le(c, 8);
		v->differences[i].range.len = rcursor_le(c, 8);
	}
	if (packet_has_findings(p))
		packet_get_verdicts(c, v);
}
