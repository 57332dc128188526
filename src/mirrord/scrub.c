/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders the periodic comparison of a set's copies. The daemon of the primary's host orders it,
 * and keeps in the copy's superblock the time of the last comparison and its findings. Comparisons
 * that an operator orders count as well.
 */
#include <time.h>

#include "mirrord/clients.h"
#include "mirrord/requests.h"

#define SCRUB_RETRY_MS (10 * 60 * 1000) /* pause after a comparison that could not be made */
#define SCRUB_BUSY_MS  (10 * 1000)      /* pause after a refusal: an operator's comparison runs */

static void scrub_record(struct set *s, const struct meta_super *super)
{
	if (meta_set_super(&s->meta, super))
		LOG_ERROR("set %s: cannot record the result of the last comparison", s->conf->name);
}

static bool scrub_may_begin(struct set *s, uint64_t now_ms)
{
	const struct packet_report *report = set_report(s);

	return s->is_open && s->conf->scrub_s && s->holder.client && s->holder.epoch.number &&
	       report && now_ms >= s->scrub_retry_ms &&
	       (report->status.health == MIRROR_HEALTH_HEALTHY ||
		report->status.health == MIRROR_HEALTH_DEGRADED);
}

static void scrub_begin(struct set *s)
{
	static struct packet p; /* static, because it is large */

	packet_begin(&p, PACKET_ORDER, SCRUB_ID);
	p.order = (struct packet_order_request){.order = PACKET_ORDER_VERIFY,
						.member = MIRROR_NO_SLOT,
						.is_automatic = true,
						.rate = s->conf->scrub_rate};
	s->is_scrubbing = true;
	LOG_NOTICE("set %s: a scrub begins", s->conf->name);
	local_send(s->holder.client, &p, NULL, 0);
}

void scrub_tick(struct set *s, uint64_t now_ms)
{
	uint64_t now_s = (uint64_t)time(NULL), last = s->is_open ? s->meta.super.scrub.time_s : 0;

	if (!s->holder.client)
		s->is_scrubbing = false;
	if (s->is_scrubbing || !scrub_may_begin(s, now_ms))
		return;
	/* If no comparison was made yet, or its time lies in the future because the clock was
	 * wrong, the period begins now. */
	if (!last || last > now_s) {
		struct meta_super super = s->meta.super;

		super.scrub = (struct meta_scrub){.time_s = now_s};
		scrub_record(s, &super);
	} else if (now_s - last >= s->conf->scrub_s) {
		scrub_begin(s);
	}
}

/* ---- the findings ---- */

static void scrub_add(struct findings *f, const struct packet_verified *v)
{
	uint64_t listed = 0;

	for (unsigned i = 0; i < v->count; i++) {
		const struct packet_difference *d = &v->differences[i];
		const struct finding finding = {.members = MIRROR_BIT(d->member),
						.wrong = d->wrong,
						.is_due = d->mended == PACKET_IS_DUE,
						.range = d->range};

		if (d->mended == PACKET_IS_REPAIRED)
			continue;
		listed += d->range.len;
		findings_add(f, &finding);
	}
	if (v->left > listed) {
		f->more += v->left - listed;
		f->more_members |= v->left_members;
	}
}

/* Keep the findings about members that this comparison did not include. */
static void scrub_note_findings(const struct set *s, const struct packet_verified *v,
				struct findings *f)
{
	mirror_mask all = mirror_config_members(&s->entry.record.config);

	findings_forget(f, v->members);
	scrub_add(f, v);
	f->time_s = (uint64_t)time(NULL);
	f->epoch = s->holder.epoch;
	f->is_whole = (v->members | MIRROR_BIT(s->meta.super.slot)) == all;
}

void scrub_on_ordered(struct set *s, uint32_t id, const struct packet_ordered *ordered)
{
	const struct packet_verified *v = &ordered->verified;
	struct meta_super super = s->meta.super;

	if (!s->is_open)
		return;
	if (v->members)
		scrub_note_findings(s, v, &super.findings);
	if (id == SCRUB_ID && ordered->status == PACKET_OK)
		super.scrub = (struct meta_scrub){.time_s = (uint64_t)time(NULL),
						  .compared = v->compared,
						  .different = v->different};
	if (v->members || (id == SCRUB_ID && ordered->status == PACKET_OK))
		scrub_record(s, &super);
	if (id != SCRUB_ID)
		return;
	s->is_scrubbing = false;
	if (ordered->status == PACKET_OK)
		return;
	s->scrub_retry_ms =
		clock_boot_ms() + (ordered->status == PACKET_BUSY ? SCRUB_BUSY_MS : SCRUB_RETRY_MS);
	LOG_WARNING("set %s: the scrub was not done: %s", s->conf->name,
		    ordered->text[0] ? ordered->text : packet_status_2str(ordered->status));
}
