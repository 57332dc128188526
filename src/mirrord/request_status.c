/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the status of a set for the tool, from the register, this host and the other members'
 * daemons. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "mirror/core/words.h"
#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/health.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"
#include "mirrord/status_words.h"

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

static void status_put_flow(json_t *out, const struct message_member *member)
{
	json_object_set_new(out, "link", json_string(mirror_link_2str(member->link)));
	json_object_set_new(out, "flow", json_string(mirror_flow_2str(member->flow)));
	json_object_set_new(out, "behind", json_integer((json_int_t)member->remaining));
	if (member->rate)
		json_object_set_new(out, "rate", json_integer((json_int_t)member->rate << 10));
	if (member->p99_us)
		json_object_set_new(out, "flush_p99_us", json_real(member->p99_us));
}

static void status_put_own(const struct set *s, const struct primary_words *words, json_t *out)
{
	uint8_t slot = set_own_slot(s);

	json_object_set_new(out, "copy", json_string(mirror_copy_2str(copy_state(s))));
	if (s->is_open)
		json_object_set_new(out, "size", json_integer((json_int_t)s->meta.super.size));
	if (words->status && slot != s->entry.record.view.primary)
		status_put_flow(out, &words->status->members[slot]);
	else
		json_object_set_new(out, "flow", json_string("none"));
	json_object_set_new(out, "link", json_string("local"));
	if (!s->is_open)
		json_object_set_new(out, "reason", json_string(s->why_not.text));
	else if (copy_state(s) == MIRROR_COPY_FAILED && s->failed_why[0])
		json_object_set_new(out, "reason", json_string(s->failed_why));
}

static void status_put_other(const struct set *s, uint8_t slot, const struct primary_words *words,
			     json_t *out)
{
	enum mirror_copy copy = MIRROR_COPY_UNKNOWN;
	struct neighbour_answer answer;

	neighbours_get(s->neighbours, slot, &answer);
	if (answer.answers)
		copy = (enum mirror_copy)answer.status.copy;
	else if (words->status && words->status->members[slot].link == MIRROR_LINK_CONNECTED)
		copy = (enum mirror_copy)words->status->members[slot].copy;
	json_object_set_new(out, "copy", json_string(mirror_copy_2str(copy)));
	if (answer.answers && answer.status.size)
		json_object_set_new(out, "size", json_integer((json_int_t)answer.status.size));
	if (words->status && slot != s->entry.record.view.primary) {
		status_put_flow(out, &words->status->members[slot]);
	} else {
		json_object_set_new(out, "link",
				    json_string(answer.answers ? "connected" : "down"));
		json_object_set_new(out, "flow", json_string("none"));
	}
	if (words->report && words->report->reasons[slot][0])
		json_object_set_new(out, "reason", json_string(words->report->reasons[slot]));
	else if (!answer.answers && answer.why_not[0])
		json_object_set_new(out, "reason", json_string(answer.why_not));
	if (answer.refusal)
		json_object_set_new(out, "refusal", json_string(answer.refusal));
}

/* Returns the role of a member. A former primary whose process still maps the copy has a role of
 * its own. */
static const char *status_role(const struct set *s, uint8_t slot)
{
	const struct packet_report *report = set_report(s);
	struct neighbour_answer answer = {0};
	enum mirror_role role = MIRROR_ROLE_SECONDARY;

	if (slot == s->entry.record.view.primary)
		return mirror_role_2str(MIRROR_ROLE_PRIMARY);
	if (slot == set_own_slot(s))
		role = report ? (enum mirror_role)report->status.role : role;
	else
		neighbours_get(s->neighbours, slot, &answer);
	if (answer.answers)
		role = (enum mirror_role)answer.status.role;
	return mirror_role_2str(role == MIRROR_ROLE_FENCED ? role : MIRROR_ROLE_SECONDARY);
}

static json_t *status_member(const struct set *s, uint8_t slot, const struct primary_words *words)
{
	const struct mirror_record *rec = &s->entry.record;
	const struct mirror_member *member = &rec->config.members[slot];
	bool is_local = slot == set_own_slot(s);
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
	json_object_set_new(out, "role", json_string(status_role(s, slot)));
	if (is_local)
		status_put_own(s, words, out);
	else
		status_put_other(s, slot, words, out);
	if (is_primary && words->status) {
		json_object_set_new(out, "flushes",
				    json_integer((json_int_t)words->status->flushes));
		json_object_set_new(out, "acked", json_integer((json_int_t)words->status->acked));
	}
	if (is_primary && words->status && words->status->p50_us) {
		json_object_set_new(out, "flush_p50_us", json_real(words->status->p50_us));
		json_object_set_new(out, "flush_p99_us", json_real(words->status->p99_us));
	}
	return out;
}

/*
 * Returns HOST:PORT of each member of the register, from the configuration; an empty list if the
 * register is a file.
 */
static json_t *status_endpoints(const char *uri)
{
	const char *at = uri, *address;
	json_t *out = json_array();
	size_t len;

	while ((address = register_next_address(uri, &at, &len)))
		json_array_append_new(out, json_stringn(address, len));
	return out;
}

static json_t *status_register(const struct set *s)
{
	const char *uri = s->conf->register_uri;
	size_t len = strcspn(uri, ":");
	json_t *out = json_object();

	json_object_set_new(out, "kind", json_stringn(uri, len));
	json_object_set_new(out, "endpoints", status_endpoints(uri));
	json_object_set_new(out, "answers", json_boolean(s->register_answers));
	if (s->register_health.members) {
		json_object_set_new(out, "members", json_integer(s->register_health.members));
		json_object_set_new(out, "healthy", json_integer(s->register_health.healthy));
	}
	if (reg_refusal(s))
		json_object_set_new(out, "error", json_string(reg_refusal(s)));
	else if (s->register_health.is_full)
		json_object_set_new(
			out, "error",
			json_string("etcd's database has no space left (alarm NOSPACE): "
				    "it refuses all writes"));
	else if (!s->register_answers)
		json_object_set_new(out, "error",
				    json_string(s->read_why.kind != ERROR_NONE
							? s->read_why.text
							: "it does not answer"));
	return out;
}

static void status_put_record(const struct set *s, const struct primary_words *words, json_t *out)
{
	const struct mirror_record *rec = &s->entry.record;
	const struct mirror_view *view = &rec->view;
	json_t *members = json_array();

	json_object_set_new(out, "uuid", status_uuid(&rec->config.uuid));
	json_object_set_new(out, "size", json_integer((json_int_t)rec->config.size));
	json_object_set_new(out, "epoch", json_integer((json_int_t)view->epoch.number));
	json_object_set_new(out, "nonce", status_hex(view->epoch.nonce));
	json_object_set_new(out, "seq", json_integer((json_int_t)view->seq));
	json_object_set_new(out, "phase", json_string(words_phase[view->phase]));
	json_object_set_new(out, "clean", json_boolean(view->clean));
	json_object_set_new(out, "forced", json_boolean(view->forced));
	json_object_set_new(out, "primary",
			    view->primary == MIRROR_NO_SLOT
				    ? json_null()
				    : json_string(rec->config.members[view->primary].name));
	json_object_set_new(out, "min_copies", json_integer(rec->config.min_copies));
	json_object_set_new(out, "lonely", json_string(words_lonely[rec->config.lonely]));
	json_object_set_new(out, "lease_ms", json_integer(rec->config.lease_ms));
	json_object_set_new(out, "replica_timeout_ms",
			    json_integer(rec->config.replica_timeout_ms));
	json_object_set_new(out, "slow_ms", json_integer(rec->config.slow_ms));
	json_object_set_new(out, "holdoff_ms", json_integer(rec->config.holdoff_ms));
	json_object_set_new(out, "blocked_ms", json_integer(rec->config.blocked_ms));
	json_object_set_new(out, "local_error",
			    json_string(rec->config.local_error_continues ? "continue" : "stop"));
	json_object_set_new(out, "address", status_hex(rec->config.address));
	json_object_set_new(out, "format", json_integer(rec->config.format));
	json_object_set_new(out, "config", json_integer((json_int_t)rec->config.number));
	json_object_set_new(out, "revision", json_integer((json_int_t)s->entry.revision));
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (rec->config.members[slot].id)
			json_array_append_new(members, status_member(s, slot, words));
	json_object_set_new(out, "members", members);
}

static void status_put_fence(const struct set *s, json_t *waiting)
{
	struct fence_words fence;
	json_t *out;

	if (!fence_agent_obstacle(s, &fence))
		return;
	out = json_pack("{s:s, s:s}", "what", fence.what, "why", fence.why);
	if (fence.deadline_ms >= 0)
		json_object_set_new(out, "deadline_ms", json_integer(fence.deadline_ms));
	if (fence.retry_ms >= 0)
		json_object_set_new(out, "retry_ms", json_integer(fence.retry_ms));
	json_array_append_new(waiting, out);
}

static void status_put_promotion(const struct set *s, json_t *waiting)
{
	uint64_t now = clock_boot_ms();
	json_t *out;

	if (!s->promotion.why[0] || !s->conf->on_promote[0] || s->holder.pid || !s->may_promote ||
	    s->entry.record.view.primary == MIRROR_NO_SLOT)
		return;
	out = json_pack("{s:s, s:s+}", "what", "on-promote is to start the application", "why",
			"the last time it failed: ", s->promotion.why);
	if (s->promotion.next_ms > now)
		json_object_set_new(out, "retry_ms",
				    json_integer((json_int_t)(s->promotion.next_ms - now)));
	json_array_append_new(waiting, out);
}

/* On the primary's host: put the times after which an absent member is tried again, or counts as
 * lost. */
static void status_put_member_waits(const struct set *s, json_t *waiting)
{
	const struct packet_report *report = set_report(s);
	const struct mirror_member *members = s->entry.record.config.members;
	uint64_t now = clock_boot_ms();

	for (uint8_t slot = 0; report && slot < MIRROR_MEMBERS_MAX; slot++) {
		char what[MIRROR_NAME_MAX + 64];
		json_t *out;

		if (!members[slot].id || (!report->retry_ms[slot] && !report->deadline_ms[slot]))
			continue;
		snprintf(what, sizeof(what), "the daemon of member %s is being contacted",
			 members[slot].name);
		out = json_pack("{s:s, s:s}", "what", what, "why",
				report->reasons[slot][0] ? report->reasons[slot]
							 : "it has not answered yet");
		if (report->deadline_ms[slot] > now)
			json_object_set_new(
				out, "deadline_ms",
				json_integer((json_int_t)(report->deadline_ms[slot] - now)));
		if (report->retry_ms[slot] > now)
			json_object_set_new(
				out, "retry_ms",
				json_integer((json_int_t)(report->retry_ms[slot] - now)));
		json_array_append_new(waiting, out);
	}
}

static json_t *status_waiting(const struct set *s)
{
	json_t *out = json_array();

	request_put_promotions(s, out);
	status_put_fence(s, out);
	status_put_promotion(s, out);
	status_put_member_waits(s, out);
	for (const struct client *c = s->daemon->clients; c; c = c->next) {
		char what[64];

		if (c->set != s || !c->is_waiting)
			continue;
		snprintf(what, sizeof(what), "process %d waits to be primary", (int)c->pid);
		json_array_append_new(
			out,
			json_pack("{s:s, s:s}", "what", what, "why",
				  map_why_waits(s, c, request_order_for(s, &s->entry.record.view))
					  .text));
	}
	return out;
}

/* Returns the last comparison that a primary of this host made. */
static json_t *status_scrub(const struct set *s)
{
	const struct meta_scrub *scrub = &s->meta.super.scrub;

	return json_pack("{s:I, s:I, s:I}", "time", (json_int_t)scrub->time_s, "compared",
			 (json_int_t)scrub->compared, "different", (json_int_t)scrub->different);
}

static json_t *status_verify(const struct packet_report *report)
{
	return json_pack("{s:I, s:I, s:I}", "total", (json_int_t)report->verify_total, "compared",
			 (json_int_t)report->verify_compared, "different",
			 (json_int_t)report->verify_different);
}

json_t *request_status(const struct set *s)
{
	struct status_words text;
	struct primary_words words;
	json_t *out = json_object();

	health_ask_primary(s, &words);
	status_get_words(s, &words, &text);
	json_object_set_new(out, "set", json_string(s->conf->name));
	json_object_set_new(out, "health", json_string(mirror_health_2str(text.health)));
	if (text.reason[0])
		json_object_set_new(out, "reason", json_string(text.reason));
	if (text.next[0])
		json_object_set_new(out, "next", json_string(text.next));
	json_object_set_new(out, "progressing", json_boolean(text.progresses));
	json_object_set_new(out, "blocked_s", json_real(event_blocked_s(s)));
	json_object_set_new(out, "events", event_counts(s));
	if (health_is_removed(s))
		json_object_set_new(out, "removed", json_true());
	if (s->holder.pid)
		json_object_set_new(out, "pid", json_integer(s->holder.pid));
	json_object_set_new(out, "register", status_register(s));
	if (s->has_entry)
		status_put_record(s, &words, out);
	json_object_set_new(out, "waiting", status_waiting(s));
	if (s->is_open && s->meta.super.scrub.compared)
		json_object_set_new(out, "scrub", status_scrub(s));
	if (findings_has_own(s))
		json_object_set_new(out, "findings", findings_json(s));
	if (words.report && words.report->verify_total)
		json_object_set_new(out, "verify", status_verify(words.report));
	return out;
}
