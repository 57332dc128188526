/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the program on-promote if this host's member has to take over and no process waits to map
 * the set. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"

#define PROMOTE_PAUSE_MS 30000 /* time between two runs; the application starts in this time */

static void promote_fail(struct set *s, const char *why)
{
	struct set_promotion *promotion = &s->promotion;
	char text[512];

	snprintf(promotion->why, sizeof(promotion->why), "%s", why);
	snprintf(text, sizeof(text), "on-promote %.200s has failed: %s", promotion->path, why);
	event_emit(s, s->conf->member, "on-promote", NULL, "failed", text);
	request_on_promote_failed(s, text);
}

static void promote_on_done(struct program *p, const char *failure)
{
	struct set *s = p->owner;

	s->promotion.why[0] = '\0';
	if (failure)
		promote_fail(s, failure);
	else
		LOG_NOTICE("set %s: %s has ended with 0", s->conf->name, s->promotion.path);
}

void promote_run(struct set *s)
{
	struct set_promotion *promotion = &s->promotion;
	struct program_vars vars;
	char text[96];
	int rc;

	if (!program_may_start(&promotion->program, promotion->path, s->conf->on_promote))
		return;
	promotion->next_ms = clock_boot_ms() + PROMOTE_PAUSE_MS;
	snprintf(promotion->path, sizeof(promotion->path), "%s", s->conf->on_promote);
	promotion->program.limit_ms = s->conf->promote_timeout_ms;
	promotion->program.on_done = promote_on_done;
	program_prepare(&promotion->program, s, &vars);
	rc = program_start(&promotion->program, promotion->path, NULL, &vars);
	if (rc) {
		snprintf(text, sizeof(text), "it cannot be run: %s", strerror(-rc));
		promote_fail(s, text);
		return;
	}
	LOG_NOTICE("set %s: %s runs as process %d", s->conf->name, promotion->path,
		   (int)promotion->program.pid);
}

/* Returns true if the primary of another host is gone, this copy may serve, and no process on this
 * host waits to map the set. */
static bool promote_is_due(const struct set *s, uint64_t now_ms)
{
	const struct mirror_view *view = &s->entry.record.view;

	return s->conf->automatic && s->conf->on_promote[0] && s->is_open && s->has_entry &&
	       copy_state(s) == MIRROR_COPY_INSYNC && s->register_answers && s->may_promote &&
	       !s->is_split && !findings_forbid_promotion(s) && !s->holder.pid &&
	       view->primary != MIRROR_NO_SLOT && view->primary != s->meta.super.slot &&
	       view->insync & MIRROR_BIT(s->meta.super.slot) && now_ms >= s->promotion.next_ms &&
	       !set_has_waiting(s);
}

void promote_tick(struct set *s, uint64_t now_ms)
{
	struct program *program = &s->promotion.program;

	/*
	 * The program has started the process that will serve. The program may be the application
	 * itself, so do not end it at its time limit.
	 */
	if (program->pid && (s->holder.pid || set_has_waiting(s)))
		program->deadline_ms = now_ms + program->limit_ms;
	program_tick(program, now_ms);
	if (promote_is_due(s, now_ms))
		promote_run(s);
}
