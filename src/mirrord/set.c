/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and frees sets, and does their periodic work. */
#include <errno.h>
#include <string.h>

#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/health.h"
#include "mirrord/holder.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"

#define SET_OPEN_RETRY_MS 500
#define SET_TICK_MS       100
#define SET_END_MS        1000 /* added to the time limit of a call that is still running */

int set_new_agent(struct set *s, struct agent **agent, struct error *err)
{
	return agent_new(s->conf->register_uri, s->conf->name, s->daemon->conf->register_timeout_ms,
			 s->daemon->answers, agent, err);
}

static int set_open_register(struct set *s, struct error *err)
{
	struct agent **const agents[] = {&s->asks, &s->alive, &s->watcher};
	int rc = 0;

	for (unsigned i = 0; i < sizeof(agents) / sizeof(agents[0]) && !rc; i++)
		rc = set_new_agent(s, agents[i], err);
	if (rc)
		return rc;
	s->neighbours = neighbours_new();
	return s->neighbours ? 0 : error_set(err, ERROR_LOCAL, errno, "no thread");
}

int set_init(struct set *s, struct daemon *d, const struct conf_set *conf, struct error *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->daemon = d;
	s->conf = conf;
	s->holder.on_end.fd = -1;
	s->data.fd = s->meta_file.fd = s->sentinel = -1;
	rc = set_open_register(s, err);
	if (rc) {
		struct error why = err ? *err : (struct error){.text = ""};

		return error_set(err, (enum error_kind)rc, why.cause, "set %s: %s", conf->name,
				 why.text);
	}
	fence_agent_on_conf(s);
	return 0;
}

void set_fini(struct set *s)
{
	struct agent **const agents[] = {&s->asks, &s->alive, &s->watcher};
	unsigned limit_ms = s->daemon->conf->register_timeout_ms + SET_END_MS;

	fence_agent_end(s);
	/* do not kill the program, because the application that it started has to continue */
	program_forget(&s->promotion.program);
	/* A register in a file may never answer, so wait only for a limited time. */
	for (unsigned i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
		if (!agent_delete_within(agents[i], limit_ms))
			/* the time limit of the first agent has passed for the other agents, too */
			limit_ms = SET_END_MS / 10;
	place_end(s);
	agent_delete(&s->worker);
	neighbours_delete(s->neighbours);
	loop_unwatch(s->daemon, &s->holder.on_end);
	copy_close(s);
}

struct set *set_find(struct daemon *d, const char *name)
{
	for (unsigned i = 0; i < d->conf->set_count; i++)
		if (!strcmp(d->sets[i].conf->name, name))
			return &d->sets[i];
	return NULL;
}

struct set *set_find_uuid(struct daemon *d, const struct mirror_uuid *uuid)
{
	for (unsigned i = 0; i < d->conf->set_count; i++) {
		struct set *s = &d->sets[i];

		if (s->is_open && !memcmp(&s->meta.super.uuid, uuid, sizeof(*uuid)))
			return s;
	}
	return NULL;
}

/* Open the files of the set, which may not exist yet, or whose medium may not be mounted. */
void set_try_open(struct set *s, uint64_t now_ms)
{
	if (s->is_open)
		return;
	s->open_retry_ms = now_ms + SET_OPEN_RETRY_MS;
	if (copy_open(s)) {
		LOG_WARNING_LIMITED("set %s: %s", s->conf->name, s->why_not.text);
		return;
	}
	holder_find(s);
	s->has_entry = false; /* so that the copy's rules get the next record */
	reg_ask(s);
}

int set_tick(struct set *s, uint64_t now_ms)
{
	if (now_ms >= s->open_retry_ms)
		set_try_open(s, now_ms);
	if (s->is_open) {
		medium_look(s);
		place_look(s, now_ms);
	}
	if (s->is_open && s->holder.pid && s->holder.on_end.fd < 0)
		holder_find(s);
	if (s->is_open)
		holder_look_at_program(s);
	reg_tick(s, now_ms);
	findings_look(s);
	event_look(s);
	grow_tick(s, now_ms);
	fence_agent_tick(s, now_ms);
	promote_tick(s, now_ms);
	scrub_tick(s, now_ms);
	return SET_TICK_MS;
}

uint8_t set_own_slot(const struct set *s)
{
	const struct mirror_member *members = s->entry.record.config.members;

	if (s->is_open)
		return s->meta.super.slot;
	for (uint8_t slot = 0; s->has_entry && slot < MIRROR_MEMBERS_MAX; slot++)
		if (members[slot].id && !strcmp(members[slot].name, s->conf->member))
			return slot;
	return MIRROR_NO_SLOT;
}

void set_plan_neighbours(struct set *s)
{
	static struct neighbour_plan plan; /* static, because it is large */

	plan.config = s->entry.record.config;
	plan.self = s->meta.super.slot;
	plan.has_secret = s->has_secret;
	memcpy(plan.key, s->secret.key, sizeof(plan.key));
	neighbours_set_plan(s->neighbours, &plan);
	explicit_bzero(plan.key, sizeof(plan.key));
}

bool set_has_waiting(const struct set *s)
{
	for (const struct client *c = s->daemon->clients; c; c = c->next)
		if (c->set == s && c->is_waiting)
			return true;
	return false;
}

const struct packet_report *set_report(const struct set *s)
{
	return s->holder.report_ms && !set_is_silent(s) ? &s->holder.report : NULL;
}

bool set_is_silent(const struct set *s)
{
	uint64_t since = s->holder.report_ms ? s->holder.report_ms : s->holder.known_ms;

	return s->holder.pid && clock_boot_ms() - since > DAEMON_SILENT_MS;
}

void set_fill_status(struct set *s, struct message_status *status)
{
	const struct packet_report *report = set_report(s);

	if (report) {
		*status = report->status;
	} else {
		memset(status, 0, sizeof(*status));
		status->role = MIRROR_ROLE_SECONDARY;
		status->health = (uint8_t)health_by_register(s);
	}
	if (status->health == MIRROR_HEALTH_HEALTHY && findings_spoil(s))
		status->health = MIRROR_HEALTH_DEGRADED;
	status->copy = (uint8_t)copy_state(s);
	status->pid = (uint32_t)s->holder.pid;
	status->size = s->is_open ? s->meta.super.size : 0;
	status->format = (uint8_t)(s->holder.pid ? s->holder.version : version_newest());
	status->flags &= MESSAGE_STATUS_STUCK;
	status->flags = (uint8_t)(status->flags | findings_flags(s) |
				  (s->holder.pid ? MESSAGE_STATUS_HELD : 0) |
				  (set_is_silent(s) ? MESSAGE_STATUS_SILENT : 0) |
				  (s->register_answers ? MESSAGE_STATUS_REGISTER : 0) |
				  (set_has_waiting(s) ? MESSAGE_STATUS_WAITING : 0));
}
