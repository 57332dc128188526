/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the output of `rpmirror events`: the present state, then each change. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "mirrord/copies.h"
#include "mirrord/health.h"
#include "mirrord/requests.h"

static const char *const event_words[EVENT_WHAT_END] = {
	"copy",  "ended", "epoch",  "error",      "fence",   "fenced", "health", "insync",
	"lease", "lost",  "medium", "on-promote", "primary", "slow",   "stuck",  "verify",
};

json_t *event_counts(const struct set *s)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < EVENT_WHAT_END; i++)
		json_object_set_new(out, event_words[i],
				    json_integer((json_int_t)s->event_counts[i]));
	return out;
}

double event_blocked_s(const struct set *s)
{
	uint64_t since = s->blocked.since_ms;
	uint64_t now = since ? clock_boot_ms() - since : 0;

	return (double)(s->blocked.total_ms + now) / 1000;
}

static void event_time_blocked(struct set *s, enum mirror_health health)
{
	struct set_blocked *blocked = &s->blocked;
	uint64_t now = clock_boot_ms();

	if (health == MIRROR_HEALTH_BLOCKED && !blocked->since_ms) {
		blocked->since_ms = now;
	} else if (health != MIRROR_HEALTH_BLOCKED && blocked->since_ms) {
		blocked->total_ms += now - blocked->since_ms;
		blocked->since_ms = 0;
	}
}

static json_t *event_new(const char *kind, const struct set *s, const char *member)
{
	struct timespec ts;
	struct tm tm;
	char when[40];
	size_t n;
	json_t *event = json_object();

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(when + n, sizeof(when) - n, ".%03ldZ", ts.tv_nsec / 1000000);
	json_object_set_new(event, "time", json_string(when));
	json_object_set_new(event, "kind", json_string(kind));
	if (!s)
		return event;
	json_object_set_new(event, "object", json_string(member ? "member" : "set"));
	json_object_set_new(event, "set", json_string(s->conf->name));
	if (member)
		json_object_set_new(event, "member", json_string(member));
	return event;
}

static void event_send(struct client *client, json_t *event)
{
	request_send(client, json_pack("{s:O}", "event", event));
}

void event_emit(struct set *s, const char *member, const char *what, const char *from,
		const char *to, const char *text)
{
	json_t *event = event_new("change", s, member);

	for (unsigned i = 0; i < EVENT_WHAT_END; i++)
		s->event_counts[i] += !strcmp(event_words[i], what);
	LOG_NOTICE("set %s: %s", s->conf->name, text);
	json_object_set_new(event, "what", json_string(what));
	if (from)
		json_object_set_new(event, "from", json_string(from));
	if (to)
		json_object_set_new(event, "to", json_string(to));
	json_object_set_new(event, "text", json_string(text));
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->gets_events && (!c->wait_set || c->wait_set == s))
			event_send(c, event);
	json_decref(event);
}

static void event_send_existing(struct client *client, const struct set *s)
{
	json_t *status = request_status(s), *event = event_new("exists", s, NULL), *member;
	size_t i;

	json_object_set(event, "state", status);
	event_send(client, event);
	json_decref(event);
	json_array_foreach(json_object_get(status, "members"), i, member)
	{
		event = event_new("exists", s, json_string_value(json_object_get(member, "name")));
		json_object_set(event, "state", member);
		event_send(client, event);
		json_decref(event);
	}
	json_decref(status);
}

void event_begin(struct client *client, const struct set *only, bool now_only)
{
	struct daemon *d = client->daemon;
	json_t *event;

	for (unsigned i = 0; i < d->conf->set_count; i++)
		if (!only || only == &d->sets[i])
			event_send_existing(client, &d->sets[i]);
	event = event_new("dumped", NULL, NULL);
	event_send(client, event);
	json_decref(event);
	client->gets_events = !now_only;
	client->wait_set = (struct set *)only;
}

static void event_look_view(struct set *s, const struct mirror_view *was,
			    const struct mirror_view *is)
{
	const struct mirror_config *config = &s->entry.record.config;
	char text[200];

	if (!mirror_epoch_is_equal(was->epoch, is->epoch)) {
		snprintf(text, sizeof(text), "epoch %llu has begun, primary %s%s",
			 (unsigned long long)is->epoch.number,
			 is->primary == MIRROR_NO_SLOT ? "none" : config->members[is->primary].name,
			 is->forced ? ": FORCED, acknowledged data may be lost" : "");
		event_emit(s, NULL, "epoch", NULL, NULL, text);
	}
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		bool was_in = was->insync & MIRROR_BIT(slot), is_in = is->insync & MIRROR_BIT(slot);

		if (was_in == is_in || !config->members[slot].id)
			continue;
		snprintf(text, sizeof(text), "member %s %s the in-sync set",
			 config->members[slot].name, is_in ? "has entered" : "has left");
		event_emit(s, config->members[slot].name, "insync", was_in ? "yes" : "no",
			   is_in ? "yes" : "no", text);
	}
}

/* Report that the process that maps the set is silent: it was stopped, or is overloaded. */
static void event_look_silent(struct set *s)
{
	bool is_silent = set_is_silent(s);
	char text[128];

	if (is_silent == s->holder.is_silent)
		return;
	s->holder.is_silent = is_silent;
	snprintf(text, sizeof(text), "process %d, which maps the set, %s", (int)s->holder.pid,
		 is_silent ? "has not reported for some seconds" : "reports again");
	event_emit(s, s->conf->member, is_silent ? "stuck" : "primary", NULL, NULL, text);
}

void event_look(struct set *s)
{
	struct set_reported is = {
		.is_set = true, .view = s->entry.record.view, .copy = copy_state(s)};
	struct set_reported was = s->reported;
	struct primary_words words;
	char text[128];

	if (!s->has_entry)
		return;
	event_look_silent(s);
	health_ask_primary(s, &words);
	is.health = health_of(s, &words);
	event_time_blocked(s, is.health);
	s->reported = is;
	if (!was.is_set)
		return;
	event_look_view(s, &was.view, &is.view);
	if (was.health != is.health) {
		snprintf(text, sizeof(text), "the set is %s, was %s", mirror_health_2str(is.health),
			 mirror_health_2str(was.health));
		event_emit(s, NULL, "health", mirror_health_2str(was.health),
			   mirror_health_2str(is.health), text);
	}
	if (was.copy != is.copy && s->is_open) {
		snprintf(text, sizeof(text), "the copy of this host is %s, was %s",
			 mirror_copy_2str(is.copy), mirror_copy_2str(was.copy));
		event_emit(s, s->conf->member, "copy", mirror_copy_2str(was.copy),
			   mirror_copy_2str(is.copy), text);
	}
}
