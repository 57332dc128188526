/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/growth.h"

#include <errno.h>
#include <stdio.h>

#include "mirror/core/killpoint.h"

/* ---- one copy ---- */

static bool growth_has_failed(const struct member *m)
{
	return member_copy(m, true) == MIRROR_COPY_FAILED;
}

static bool growth_has_room(const struct member *m, const struct growth_files *files, uint64_t size)
{
	const struct meta_super *super = &m->meta->super;

	return size <= super->size ||
	       (size <= super->room && size <= files->data && meta_size_for(size) <= files->meta);
}

static void growth_note_failure(struct growth *g, uint64_t size, int error, const char *why,
				uint64_t now_ms)
{
	g->failed = size;
	g->error = error;
	g->retry_ms = now_ms + GROWTH_RETRY_MS;
	snprintf(g->why, sizeof(g->why), "%.*s", (int)sizeof(g->why) - 1, why);
}

enum growth_room growth_make_room(struct growth *g, const struct member *m,
				  const struct growth_files *files, uint64_t size, uint64_t now_ms)
{
	bool has_failed = growth_has_failed(m);

	if (size > m->meta->super.size) {
		g->asked_ms = now_ms;
		if (g->is_cutting)
			return GROWTH_UNDER_WAY;
	}
	if (!has_failed && growth_has_room(m, files, size))
		return GROWTH_HAS_ROOM;
	if (g->is_running)
		return GROWTH_UNDER_WAY;
	if (has_failed) {
		growth_note_failure(g, size, EIO, "the copy has failed", now_ms);
		return GROWTH_FAILED;
	}
	if (g->failed == size && now_ms < g->retry_ms)
		return GROWTH_FAILED;
	g->is_running = true;
	killpoint(KILLPOINT_grow_room_before);
	return GROWTH_BEGIN;
}

uint64_t growth_keep(const struct member *m)
{
	const struct meta_super *super = &m->meta->super;

	return super->room > super->size ? super->room : super->size;
}

void growth_on_files(struct growth *g, struct member *m, uint64_t size, int error, const char *why,
		     uint64_t now_ms)
{
	struct member_verdict v = {.answer = MEMBER_YES};

	g->is_running = false;
	if (!error && m) {
		killpoint(KILLPOINT_grow_room_long);
		member_reserve(m, size, &v);
		killpoint(KILLPOINT_grow_room_after);
	}
	if (error)
		growth_note_failure(g, size, error, why, now_ms);
	else if (v.answer != MEMBER_YES)
		growth_note_failure(g, size, EIO, v.text, now_ms);
	else
		g->failed = 0;
}

bool growth_begin_cut(struct growth *g, const struct member *m, const struct mirror_record *rec,
		      uint64_t now_ms, uint64_t quiet_ms)
{
	const struct meta_super *super = &m->meta->super;

	if (g->is_running || super->room <= super->size || rec->config.size != super->size ||
	    growth_has_failed(m))
		return false;
	if (!g->asked_ms)
		g->asked_ms = now_ms; /* the daemon has just started: an order may be under way */
	if (now_ms - g->asked_ms < quiet_ms)
		return false;
	g->is_running = g->is_cutting = true;
	return true;
}

void growth_on_cut(struct growth *g, struct member *m, int error, uint64_t now_ms)
{
	struct member_verdict v;

	g->is_running = g->is_cutting = false;
	g->asked_ms = now_ms;
	if (!error && m)
		member_unreserve(m, &v);
}

bool growth_is_due(const struct member *m, const struct mirror_record *rec)
{
	return rec->config.size > m->meta->super.size && !growth_has_failed(m);
}

bool growth_may_take(const struct growth *g, const struct member *m, uint64_t size)
{
	return !g->is_running && member_may_grow(m, size);
}

const char *growth_obstacle(const struct growth *g, const struct member *m,
			    const struct mirror_record *rec)
{
	if (rec->config.size <= m->meta->super.size)
		return NULL;
	if (g->failed == rec->config.size)
		return g->why;
	return "the copy of this host grows to the set's new size first";
}

/* ---- an operator's order ---- */

static enum growth_step growth_judge(const struct growth_order *order, uint64_t copy_id,
				     const struct growth_answer *answer, uint64_t now_ms)
{
	bool is_patient = now_ms - order->begun_ms < GROWTH_SILENT_MS;

	if (!answer->answers || answer->copy_id != copy_id)
		return is_patient ? GROWTH_WAITS : GROWTH_SILENT;
	if (answer->size != order->size || answer->room == GROWTH_UNDER_WAY)
		return GROWTH_WAITS;
	return answer->room == GROWTH_HAS_ROOM ? GROWTH_SWAP : GROWTH_REFUSED;
}

enum growth_step growth_order_next(const struct growth_order *order,
				   const struct mirror_record *rec,
				   const struct growth_answer answers[MIRROR_MEMBERS_MAX],
				   uint64_t now_ms, uint8_t *slot)
{
	enum growth_step step = GROWTH_SWAP;

	*slot = 0;
	for (uint8_t i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		enum growth_step of_member =
			growth_judge(order, rec->config.members[i].id, &answers[i], now_ms);

		if (!(rec->view.insync & MIRROR_BIT(i)) || of_member == GROWTH_SWAP)
			continue;
		if (step == GROWTH_SWAP || of_member != GROWTH_WAITS)
			*slot = i;
		step = of_member;
		if (step != GROWTH_WAITS)
			return step;
	}
	if (step == GROWTH_SWAP)
		killpoint(KILLPOINT_grow_all_have_room);
	return step;
}
