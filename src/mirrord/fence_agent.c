/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence_agent.c -- runs the program fence-agent, which proves that the former primary's host is
 * off.
 *
 * A lease that has run out proves only that the primary's daemon has not renewed its key. A paused
 * machine may continue later, and then serves stale reads until it notices the new primary. So if
 * an agent is configured, an expired lease permits no takeover; only the agent's exit with 0
 * permits it, and only for that epoch. No proof is needed if the key was cleared, because the
 * primary's own daemon clears the key after the primary's process has exited. The rules are in
 * doc/mirror.md.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "mirrord/copies.h"
#include "mirrord/health.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"

#define FENCE_RETRY_MS     1000 /* pause after the first failure; each further failure doubles it */
#define FENCE_RETRY_MAX_MS 60000
#define FENCE_PROBE_MS     5000

static bool fence_agent_is_configured(const struct set *s)
{
	return s->conf->fence_agent[0] != '\0';
}

static void fence_agent_on_probed(struct program *p, const char *failure)
{
	const struct set *s = p->owner;

	if (failure)
		LOG_WARNING("set %s: fence-agent %s: %s", s->conf->name, s->conf->fence_agent,
			    failure);
}

/* Report a missing program now, not only when the program is needed. */
void fence_agent_on_conf(struct set *s)
{
	struct program *probe = &s->fence.probe;
	struct program_vars vars;

	s->fence.retry_ms = 0;
	if (!fence_agent_is_configured(s) || probe->pid)
		return;
	probe->is_probe = true;
	probe->limit_ms = FENCE_PROBE_MS;
	probe->on_done = fence_agent_on_probed;
	program_prepare(probe, s, &vars);
	program_start(probe, s->conf->fence_agent, NULL, &vars);
}

bool fence_agent_permits(const struct set *s, struct mirror_epoch epoch)
{
	if (fence_agent_is_configured(s) && mirror_epoch_is_equal(s->fence.proof, epoch))
		return true;
	/* An expired lease is a proof only if all hosts use one register. */
	return !fence_agent_is_configured(s) && s->entry.record.config.lonely == MIRROR_LONELY_NONE;
}

/* Returns true if this copy could be promoted, were it not for a primary that may be alive. */
static bool fence_agent_is_needed(const struct set *s)
{
	const struct mirror_view *view = &s->entry.record.view;
	uint8_t slot = s->meta.super.slot;

	return fence_agent_is_configured(s) && s->lease_is_over && !s->may_promote && s->is_open &&
	       s->has_entry && s->register_answers && !s->is_split && !s->holder.pid &&
	       view->primary != MIRROR_NO_SLOT && view->primary != slot &&
	       view->insync & MIRROR_BIT(slot) &&
	       mirror_epoch_is_equal(s->seen.epoch, view->epoch) &&
	       !mirror_epoch_is_equal(s->fence.proof, view->epoch) &&
	       copy_state(s) == MIRROR_COPY_INSYNC;
}

/* Returns true if a process here waits to take over, or if on-promote can start one. Otherwise no
 * host is fenced. */
static bool fence_agent_is_wanted(const struct set *s)
{
	bool has_waiting = false;

	for (const struct client *c = s->daemon->clients; c; c = c->next) {
		/* A request without WAIT is refused as soon as the register has answered, so it
		 * does not count. */
		if (c->set != s || !c->is_waiting || !(c->map_flags & PACKET_MAP_WAIT))
			continue;
		has_waiting = true;
	}
	if (has_waiting && request_order_for(s, &s->entry.record.view))
		return true;
	return s->conf->automatic && (has_waiting || s->conf->on_promote[0]);
}

static const char *fence_agent_member(const struct set *s)
{
	const struct mirror_record *rec = &s->entry.record;

	return rec->config.members[rec->view.primary].name;
}

/* Report each attempt and its result. */
static void fence_agent_report(struct set *s, const char *to, const char *text)
{
	char sentence[700];

	snprintf(sentence, sizeof(sentence), "fence agent %.200s: %s", s->fence.path, text);
	event_emit(s, s->fence.member, "fence", NULL, to, sentence);
}

static void fence_agent_fail(struct set *s, const char *why)
{
	struct fence_agent *fence = &s->fence;
	unsigned shift = fence->failures < 6 ? fence->failures : 6;
	uint64_t pause = FENCE_RETRY_MS << shift;
	char text[400];

	fence->failures++;
	fence->retry_ms =
		clock_boot_ms() + (pause < FENCE_RETRY_MAX_MS ? pause : FENCE_RETRY_MAX_MS);
	snprintf(fence->why, sizeof(fence->why), "%s", why);
	snprintf(text, sizeof(text),
		 "it is not proved that member %s is off: %s; if it is off for certain: 'rpmirror "
		 "fence %s %s'",
		 fence->member, why, s->conf->name, fence->member);
	fence_agent_report(s, "failed", text);
}

static void fence_agent_on_done(struct program *p, const char *failure)
{
	struct set *s = p->owner;
	struct fence_agent *fence = &s->fence;
	char text[128];

	if (!failure) {
		fence->proof = fence->epoch;
		snprintf(text, sizeof(text), "member %s is off", fence->member);
		fence_agent_report(s, "off", text);
		s->alive_ms = 0; /* read the alive key immediately */
		reg_ask_alive(s);
	} else if (fence->is_cancelled) {
		LOG_NOTICE("set %s: %s was stopped, because its proof is no longer needed",
			   s->conf->name, fence->path);
	} else {
		fence_agent_fail(s, failure);
	}
}

static void fence_agent_start(struct set *s)
{
	const struct mirror_record *rec = &s->entry.record;
	const struct mirror_member *primary = &rec->config.members[rec->view.primary];
	struct fence_agent *fence = &s->fence;
	struct program_vars vars;
	char text[128];
	int rc;

	if (!mirror_epoch_is_equal(fence->epoch, rec->view.epoch))
		fence->failures = 0;
	fence->epoch = rec->view.epoch;
	fence->is_cancelled = false;
	snprintf(fence->path, sizeof(fence->path), "%s", s->conf->fence_agent);
	snprintf(fence->member, sizeof(fence->member), "%s", primary->name);
	fence->program.limit_ms = s->conf->fence_timeout_ms;
	fence->program.on_done = fence_agent_on_done;
	program_prepare(&fence->program, s, &vars);
	program_set_var(&vars, "RPMIRROR_PRIMARY=%s", primary->name);
	program_set_var(&vars, "RPMIRROR_ADDRESS=%s", primary->host);
	program_set_var(&vars, "RPMIRROR_EPOCH=%llu", (unsigned long long)rec->view.epoch.number);
	rc = program_start(&fence->program, fence->path, fence->member, &vars);
	if (rc) {
		snprintf(text, sizeof(text), "it cannot be run: %s", strerror(-rc));
		fence_agent_fail(s, text);
		return;
	}
	snprintf(text, sizeof(text), "process %d is to prove that member %s is off",
		 (int)fence->program.pid, fence->member);
	fence_agent_report(s, "running", text);
}

void fence_agent_on_alive(struct set *s)
{
	struct fence_agent *fence = &s->fence;
	bool is_its_epoch = s->seen.is_set && mirror_epoch_is_equal(s->seen.epoch, fence->epoch);

	/* The primary is alive, whatever the agent reported, and may be paused again: the proof is
	 * void. */
	if (is_its_epoch && !s->lease_is_over &&
	    mirror_epoch_is_equal(fence->proof, fence->epoch)) {
		LOG_WARNING(
			"set %s: member %s, which %s has proved to be off, renews its lease: the "
			"proof is no longer valid",
			s->conf->name, fence->member, fence->path);
		fence->proof = (struct mirror_epoch){0};
	}
	if (fence->program.pid && !fence->is_cancelled &&
	    (!is_its_epoch || !s->lease_is_over || s->may_promote)) {
		fence->is_cancelled = true;
		program_kill(&fence->program);
	}
}

void fence_agent_tick(struct set *s, uint64_t now_ms)
{
	struct fence_agent *fence = &s->fence;
	bool is_new = !mirror_epoch_is_equal(fence->epoch, s->entry.record.view.epoch);

	program_tick(&fence->program, now_ms);
	program_tick(&fence->probe, now_ms);
	if (program_may_start(&fence->program, fence->path, s->conf->fence_agent) &&
	    fence_agent_is_needed(s) && fence_agent_is_wanted(s) &&
	    (is_new || now_ms >= fence->retry_ms))
		fence_agent_start(s);
}

void fence_agent_end(struct set *s)
{
	program_kill(&s->fence.program);
	program_forget(&s->fence.program);
	program_kill(&s->fence.probe);
	program_forget(&s->fence.probe);
}

bool fence_agent_obstacle(const struct set *s, struct fence_words *words)
{
	const struct fence_agent *fence = &s->fence;
	bool is_new = !mirror_epoch_is_equal(fence->epoch, s->entry.record.view.epoch);
	uint64_t now = clock_boot_ms();

	*words = (struct fence_words){.deadline_ms = -1, .retry_ms = -1};
	if (!fence_agent_is_needed(s))
		return false;
	snprintf(words->what, sizeof(words->what),
		 "the fence agent is to prove that member %s is off", fence_agent_member(s));
	if (fence->program.pid) {
		snprintf(words->why, sizeof(words->why), "process %d runs%s%s",
			 (int)fence->program.pid, fence->failures ? "; the last time " : "",
			 fence->failures ? fence->why : "");
		words->deadline_ms = (int64_t)fence->program.deadline_ms - (int64_t)now;
	} else if (!fence_agent_is_wanted(s)) {
		snprintf(words->why, sizeof(words->why), "%s",
			 s->conf->automatic ? "no process on this host waits to be primary"
					    : "it is run when 'rpmirror promote' asks for it");
	} else if (is_new || !fence->failures) {
		snprintf(words->why, sizeof(words->why), "it is about to be run");
	} else {
		snprintf(words->why, sizeof(words->why), "%s", fence->why);
		words->retry_ms = (int64_t)fence->retry_ms - (int64_t)now;
	}
	snprintf(words->next, sizeof(words->next),
		 "if that host is off for certain: 'rpmirror fence %s %s'; at any risk: 'rpmirror "
		 "promote %s %s --force'",
		 s->conf->name, fence_agent_member(s), s->conf->name, s->conf->member);
	return true;
}
