/* SPDX-License-Identifier: BSD-3-Clause */
/* The status of a set as the tool gets it, made of the register, this host and its neighbours. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "mirrord/impl.h"

static const char *status_phase(enum mirror_phase phase)
{
	static const char *const words[] = {"none", "recovering", "serving"};

	return words[phase];
}

static const char *status_lonely(enum mirror_lonely lonely)
{
	static const char *const words[] = {"none", "block", "manual"};

	return words[lonely];
}

static json_t *status_hex(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

static json_t *status_uuid(const struct mirror_uuid *uuid)
{
	char text[40];
	size_t n = 0;

	for (unsigned i = 0; i < sizeof(uuid->bytes); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
				      uuid->bytes[i]);
	return json_string(text);
}

/* What the primary says of all members: the process here, or the daemon of its host. */
static bool status_of_primary(const struct set *s, struct message_status *status)
{
	uint8_t primary = s->entry.record.view.primary;
	struct neighbour_answer answer;

	if (s->holder.has_status) {
		*status = s->holder.status;
		return true;
	}
	if (primary == MIRROR_NOBODY || primary == s->meta.super.slot)
		return false;
	neighbours_get(s->neighbours, primary, &answer);
	*status = answer.status;
	return answer.answers;
}

static void status_put_flow(json_t *out, const struct message_member *member)
{
	json_object_set_new(out, "link", json_string(mirror_link_2str(member->link)));
	json_object_set_new(out, "flow", json_string(mirror_flow_2str(member->flow)));
	json_object_set_new(out, "behind", json_integer((json_int_t)member->remaining));
	if (member->p99_us)
		json_object_set_new(out, "flush_p99_us", json_real(member->p99_us));
}

static void status_put_own(const struct set *s, json_t *out)
{
	json_object_set_new(out, "copy", json_string(mirror_copy_2str(copy_state(s))));
	json_object_set_new(out, "link", json_string("local"));
	json_object_set_new(out, "flow", json_string("none"));
	if (!s->is_open)
		json_object_set_new(out, "reason", json_string(s->why_not.text));
}

static void status_put_other(const struct set *s, uint8_t slot,
			     const struct message_status *primary, json_t *out)
{
	struct neighbour_answer answer;

	neighbours_get(s->neighbours, slot, &answer);
	json_object_set_new(
		out, "copy",
		json_string(answer.answers ? mirror_copy_2str(answer.status.copy) : "unknown"));
	if (primary && slot != s->entry.record.view.primary) {
		status_put_flow(out, &primary->members[slot]);
	} else {
		json_object_set_new(out, "link",
				    json_string(answer.answers ? "connected" : "down"));
		json_object_set_new(out, "flow", json_string("none"));
	}
	if (!answer.answers && answer.why_not[0])
		json_object_set_new(out, "reason", json_string(answer.why_not));
}

static json_t *status_member(const struct set *s, uint8_t slot,
			     const struct message_status *primary)
{
	const struct mirror_record *rec = &s->entry.record;
	const struct mirror_member *member = &rec->config.members[slot];
	bool is_local = s->is_open && slot == s->meta.super.slot;
	bool is_primary = slot == rec->view.primary;
	json_t *out = json_object();

	json_object_set_new(out, "name", json_string(member->name));
	json_object_set_new(out, "slot", json_integer(slot));
	json_object_set_new(out, "id", status_hex(member->id));
	json_object_set_new(out, "host", json_string(member->host));
	json_object_set_new(out, "port", json_integer(member->port));
	json_object_set_new(out, "path", json_string(member->path));
	json_object_set_new(out, "local", json_boolean(is_local));
	json_object_set_new(out, "insync", json_boolean(rec->view.insync & MIRROR_BIT(slot)));
	json_object_set_new(out, "role", json_string(is_primary ? "primary" : "secondary"));
	if (is_local)
		status_put_own(s, out);
	else
		status_put_other(s, slot, primary, out);
	if (is_primary && primary && primary->p50_us) {
		json_object_set_new(out, "flush_p50_us", json_real(primary->p50_us));
		json_object_set_new(out, "flush_p99_us", json_real(primary->p99_us));
	}
	return out;
}

static json_t *status_register(const struct set *s)
{
	const char *uri = s->conf->register_uri;
	size_t len = strcspn(uri, ":");
	json_t *out = json_object();

	json_object_set_new(out, "kind", json_stringn(uri, len));
	json_object_set_new(out, "answers", json_boolean(s->register_answers));
	if (s->register_health.members) {
		json_object_set_new(out, "members", json_integer(s->register_health.members));
		json_object_set_new(out, "healthy", json_integer(s->register_health.healthy));
	}
	if (!s->register_answers)
		json_object_set_new(out, "error", json_string("it does not answer"));
	return out;
}

static const char *status_reason(const struct set *s, enum mirror_health health)
{
	if (!s->is_open)
		return s->why_not.text;
	switch (health) {
	case MIRROR_HEALTH_SPLIT:
		return s->split_why;
	case MIRROR_HEALTH_DOWN:
		return s->entry.record.view.phase == MIRROR_PHASE_RECOVERING
			       ? "the primary makes the copies equal"
			       : "no process is primary";
	case MIRROR_HEALTH_DEGRADED:
		return "a member is not in-sync";
	case MIRROR_HEALTH_BLOCKED:
		return "flushes wait for copies or for the register";
	default:
		return NULL;
	}
}

static const char *status_next(const struct set *s, enum mirror_health health)
{
	switch (health) {
	case MIRROR_HEALTH_SPLIT:
		return "decide which history counts: rpmirror resolve --discard MEMBER";
	case MIRROR_HEALTH_DOWN:
		return "start the application on a host whose copy is in-sync";
	case MIRROR_HEALTH_DEGRADED:
		return "the primary resyncs it as soon as its daemon can be reached";
	default:
		return NULL;
	}
}

static void status_put_record(const struct set *s, const struct message_status *primary,
			      json_t *out)
{
	const struct mirror_record *rec = &s->entry.record;
	const struct mirror_view *view = &rec->view;
	json_t *members = json_array();

	json_object_set_new(out, "uuid", status_uuid(&rec->config.uuid));
	json_object_set_new(out, "size", json_integer((json_int_t)rec->config.size));
	json_object_set_new(out, "epoch", json_integer((json_int_t)view->epoch.number));
	json_object_set_new(out, "nonce", status_hex(view->epoch.nonce));
	json_object_set_new(out, "seq", json_integer((json_int_t)view->seq));
	json_object_set_new(out, "phase", json_string(status_phase(view->phase)));
	json_object_set_new(out, "clean", json_boolean(view->clean));
	json_object_set_new(out, "forced", json_boolean(view->forced));
	json_object_set_new(out, "primary",
			    view->primary == MIRROR_NOBODY
				    ? json_null()
				    : json_string(rec->config.members[view->primary].name));
	json_object_set_new(out, "min_copies", json_integer(rec->config.min_copies));
	json_object_set_new(out, "lonely", json_string(status_lonely(rec->config.lonely)));
	json_object_set_new(out, "lease_ms", json_integer(rec->config.lease_ms));
	json_object_set_new(out, "config", json_integer((json_int_t)rec->config.number));
	json_object_set_new(out, "revision", json_integer((json_int_t)s->entry.revision));
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (rec->config.members[slot].id)
			json_array_append_new(members, status_member(s, slot, primary));
	json_object_set_new(out, "members", members);
}

static json_t *status_waiting(const struct set *s)
{
	json_t *out = json_array();

	for (const struct client *c = s->daemon->clients; c; c = c->next) {
		char what[64];

		if (c->set != s || !c->is_waiting)
			continue;
		snprintf(what, sizeof(what), "process %d waits to be primary", (int)c->pid);
		json_array_append_new(out, json_pack("{s:s, s:s}", "what", what, "why",
						     map_why_waits(s, c).text));
	}
	return out;
}

json_t *request_status(const struct set *s)
{
	struct message_status primary = {0};
	bool has_primary = s->has_entry && s->is_open && status_of_primary(s, &primary);
	enum mirror_health health =
		has_primary ? (enum mirror_health)primary.health : set_health(s);
	const char *reason = status_reason(s, health), *next = status_next(s, health);
	json_t *out = json_object();

	json_object_set_new(out, "set", json_string(s->conf->name));
	json_object_set_new(out, "health", json_string(mirror_health_2str(health)));
	if (reason)
		json_object_set_new(out, "reason", json_string(reason));
	if (next)
		json_object_set_new(out, "next", json_string(next));
	json_object_set_new(out, "progressing",
			    json_boolean(health == MIRROR_HEALTH_DEGRADED && has_primary));
	if (s->holder.pid)
		json_object_set_new(out, "pid", json_integer(s->holder.pid));
	json_object_set_new(out, "register", status_register(s));
	if (s->has_entry)
		status_put_record(s, has_primary ? &primary : NULL, out);
	json_object_set_new(out, "waiting", status_waiting(s));
	return out;
}
