/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The periodic comparison of a set's copies: the daemon of the primary's host orders it, and keeps
 * in the copy's superblock when the last one ended and what it found.
 */
#include <string.h>
#include <time.h>

#include "mirrord/clients.h"
#include "mirrord/requests.h"

#define SCRUB_RETRY_MS (10 * 60 * 1000) /* after one that was refused or could not be done */

static void scrub_record(struct set *s, const struct meta_scrub *scrub)
{
	struct meta_super super = s->meta.super;

	super.scrub = *scrub;
	if (meta_set_super(&s->meta, &super))
		LOG_ERROR("set %s: the time of the last scrub cannot be recorded", s->conf->name);
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
	static struct packet p; /* large */

	memset(&p, 0, sizeof(p));
	p.type = PACKET_ORDER;
	p.id = SCRUB_ID;
	p.order = (struct packet_order_request){.order = PACKET_ORDER_VERIFY,
						.member = MIRROR_NOBODY,
						.flag = true,
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
	/* Time counts from the first look; also after a clock that was wrong. */
	if (!last || last > now_s) {
		struct meta_scrub first = {.time_s = now_s};

		scrub_record(s, &first);
	} else if (now_s - last >= s->conf->scrub_s) {
		scrub_begin(s);
	}
}

void scrub_on_ordered(struct set *s, const struct packet_ordered *ordered)
{
	struct meta_scrub scrub = {.time_s = (uint64_t)time(NULL),
				   .compared = ordered->verified.compared,
				   .different = ordered->verified.different};

	s->is_scrubbing = false;
	if (ordered->status == PACKET_OK) {
		scrub_record(s, &scrub);
		return;
	}
	s->scrub_retry_ms = clock_boot_ms() + SCRUB_RETRY_MS;
	LOG_WARNING("set %s: the scrub was not done: %s", s->conf->name,
		    ordered->text[0] ? ordered->text : packet_status_2str(ordered->status));
}
