/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles the tool's requests, which are JSON, and answers them in JSON (REQUESTS.md). */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mirror/register/value.h"
#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

#define REQUEST_WAIT_MS  10000 /* time limit of a request that does not set one */
#define REQUEST_WAIT_MAX (24 * 3600 * 1000)

void request_send(struct client *client, json_t *answer)
{
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	if (text)
		local_send_text(client, text, strlen(text));
	free(text);
	json_decref(answer);
}

void request_done(struct client *client, const char *text)
{
	json_t *answer = json_pack("{s:b}", "ok", 1);

	client->wait = CLIENT_IDLE;
	if (text)
		json_object_set_new(answer, "text", json_string(text));
	request_send(client, answer);
}

void request_refuse(struct client *client, enum code code, const char *hint, const char *fmt, ...)
{
	char text[1024];
	json_t *error;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	client->wait = CLIENT_IDLE;
	error = json_pack("{s:i, s:s, s:s}", "code", (int)code, "name", code_2str(code), "message",
			  text);
	if (error && hint)
		json_object_set_new(error, "hint", json_string(hint));
	request_send(client, json_pack("{s:b, s:o}", "ok", 0, "error", error));
}

/* The fields of a request. Its texts belong to the JSON object. */
struct request {
	struct client *client;
	struct set *set; /* NULL: the request names no set */
	const char *op, *set_name, *member, *from, *discard;
	json_t *new_member, *settings;
	json_int_t timeout_ms, rate, size;
	int force, full, repair, now;
};

static void request_on_status(struct request *r)
{
	struct daemon *d = r->client->daemon;
	json_t *sets = json_array();

	for (unsigned i = 0; i < d->conf->set_count; i++)
		if (!r->set || r->set == &d->sets[i])
			json_array_append_new(sets, request_status(&d->sets[i]));
	request_send(r->client, json_pack("{s:b, s:i, s:o}", "ok", 1, "schema", 1, "sets", sets));
}

static void request_on_events(struct request *r)
{
	event_begin(r->client, r->set, r->now);
}

static void request_on_record(struct request *r)
{
	static char text[VALUE_MAX];
	struct error err;

	if (!r->set->has_entry) {
		request_refuse(r->client, CODE_UNREACHABLE, NULL,
			       "the register has not been read yet");
		return;
	}
	if (value_encode(&r->set->entry.record, text, &err)) {
		request_refuse(r->client, CODE_IO, NULL, "%s", err.text);
		return;
	}
	request_send(r->client, json_pack("{s:b, s:s, s:I}", "ok", 1, "record", text, "revision",
					  (json_int_t)r->set->entry.revision));
}

static void request_on_promote(struct request *r)
{
	request_promote(r->client, r->set, r->member, r->force);
}

static void request_give_order(const struct request *r, enum packet_order order, bool flag)
{
	struct packet_order_request what = {.order = (uint8_t)order,
					    .flag = flag,
					    .timeout_ms = (uint32_t)r->timeout_ms,
					    .rate = r->rate > 0 ? (uint64_t)r->rate : 0};

	request_order(r->client, r->set, r->member, &what);
}

static void request_on_demote(struct request *r)
{
	request_give_order(r, PACKET_ORDER_DEMOTE, false);
}

/* Start a resync. `from` may name only the primary, because the primary sends every resync. */
static void request_on_resync(struct request *r)
{
	const struct mirror_record *rec = &r->set->entry.record;

	if (r->from && (rec->view.primary == MIRROR_NO_SLOT ||
			mirror_config_find(&rec->config, r->from) != rec->view.primary))
		request_refuse(
			r->client, CODE_USAGE, "leave 'from' out, or promote that member first",
			"the primary is the source of every resync, and '%s' is not the primary",
			r->from);
	else
		request_give_order(r, PACKET_ORDER_RESYNC, r->full);
}

static void request_on_pause(struct request *r)
{
	request_give_order(r, PACKET_ORDER_PAUSE, false);
}

static void request_on_resume(struct request *r)
{
	request_give_order(r, PACKET_ORDER_RESUME, false);
}

static void request_on_verify(struct request *r)
{
	request_give_order(r, PACKET_ORDER_VERIFY, r->repair);
}

static void request_on_fence(struct request *r)
{
	request_fence(r->client, r->set, r->member, r->timeout_ms);
}

static void request_on_resolve(struct request *r)
{
	request_resolve(r->client, r->set, r->discard);
}

/* Returns false after a refusal. */
static bool request_read_member(const struct request *r, struct mirror_member *member)
{
	const char *name = NULL, *host = NULL, *path = NULL;
	json_int_t port = member->port;

	if (!r->new_member ||
	    json_unpack(r->new_member, "{s:s, s?s, s?I, s?s!}", "name", &name, "host", &host,
			"port", &port, "path", &path) ||
	    strlen(name) > MIRROR_NAME_MAX || (host && strlen(host) > MIRROR_HOST_MAX) ||
	    (path && strlen(path) > MIRROR_PATH_MAX) || port < 1 || port > UINT16_MAX) {
		request_refuse(r->client, CODE_USAGE, NULL,
			       "'member' is not {name, host, port, path}");
		return false;
	}
	snprintf(member->name, sizeof(member->name), "%s", name);
	if (host)
		snprintf(member->host, sizeof(member->host), "%s", host);
	if (path)
		snprintf(member->path, sizeof(member->path), "%s", path);
	member->port = (uint16_t)port;
	member->id = request_random();
	return true;
}

static void request_on_member_add(struct request *r)
{
	static struct mirror_config config;
	uint8_t slot = 0;

	config = r->set->entry.record.config;
	while (slot < MIRROR_MEMBERS_MAX && config.members[slot].id)
		slot++;
	if (slot == MIRROR_MEMBERS_MAX) {
		request_refuse(r->client, CODE_CONFIG, NULL, "a set has at most %d members",
			       MIRROR_MEMBERS_MAX);
		return;
	}
	if (request_read_member(r, &config.members[slot]))
		request_change(r->client, r->set, &config);
}

static void request_on_member_replace(struct request *r)
{
	static struct mirror_config config;
	const char *name = json_string_value(json_object_get(r->new_member, "name"));
	uint8_t slot =
		name ? mirror_config_find(&r->set->entry.record.config, name) : MIRROR_NO_SLOT;

	config = r->set->entry.record.config;
	if (slot == MIRROR_NO_SLOT)
		request_refuse(r->client, CODE_CONFIG, NULL, "there is no such member");
	else if (request_read_member(r, &config.members[slot]))
		request_change(r->client, r->set, &config);
}

static void request_on_member_remove(struct request *r)
{
	static struct mirror_config config;
	uint8_t slot = r->member ? mirror_config_find(&r->set->entry.record.config, r->member)
				 : MIRROR_NO_SLOT;

	config = r->set->entry.record.config;
	if (slot == MIRROR_NO_SLOT) {
		request_refuse(r->client, CODE_CONFIG, NULL, "there is no such member");
		return;
	}
	memset(&config.members[slot], 0, sizeof(config.members[slot]));
	request_change(r->client, r->set, &config);
}

static void request_on_settings(struct request *r)
{
	request_settings(r->client, r->set, r->settings);
}

static void request_on_grow(struct request *r)
{
	grow_request(r->client, r->set, r->size > 0 ? (uint64_t)r->size : 0);
}

enum { REQUEST_ANYBODY = 1 << 0, REQUEST_ALL_SETS = 1 << 1, REQUEST_RECORD = 1 << 2 };

static const struct request_row {
	const char *op;
	void (*run)(struct request *r);
	unsigned flags; /* REQUEST_RECORD: the register must have been read */
	/* members that the request may have besides op, set and timeout_ms: names with a space on
	 * each side */
	const char *members;
} request_rows[] = {
	{"status", request_on_status, REQUEST_ANYBODY | REQUEST_ALL_SETS, " "},
	{"events", request_on_events, REQUEST_ANYBODY | REQUEST_ALL_SETS, " now "},
	{"record", request_on_record, REQUEST_ANYBODY, " "},
	{"promote", request_on_promote, REQUEST_RECORD, " member force "},
	{"demote", request_on_demote, REQUEST_RECORD, " "},
	{"resync", request_on_resync, REQUEST_RECORD, " member full from "},
	{"pause", request_on_pause, REQUEST_RECORD, " member "},
	{"resume", request_on_resume, REQUEST_RECORD, " member "},
	{"verify", request_on_verify, REQUEST_RECORD, " member repair rate "},
	{"fence", request_on_fence, REQUEST_RECORD, " member "},
	{"resolve", request_on_resolve, REQUEST_RECORD, " discard "},
	{"member-add", request_on_member_add, REQUEST_RECORD, " member "},
	{"member-remove", request_on_member_remove, REQUEST_RECORD, " member "},
	{"member-replace", request_on_member_replace, REQUEST_RECORD, " member "},
	{"grow", request_on_grow, REQUEST_RECORD, " size "},
	{"settings", request_on_settings, REQUEST_RECORD, " settings "},
};

static const struct request_row *request_find(const char *op)
{
	for (size_t i = 0; op && i < sizeof(request_rows) / sizeof(request_rows[0]); i++)
		if (!strcmp(request_rows[i].op, op))
			return &request_rows[i];
	return NULL;
}

static bool request_knows(const struct request_row *row, const char *key)
{
	char word[64];

	if (!strcmp(key, "op") || !strcmp(key, "set") || !strcmp(key, "timeout_ms"))
		return true;
	return snprintf(word, sizeof(word), " %s ", key) < (int)sizeof(word) &&
	       strstr(row->members, word);
}

/* Get the members of the request. A member with a wrong type is refused like an unknown one. */
static bool request_unpack(struct request *r, json_t *in)
{
	json_t *member = json_object_get(in, "member");

	r->timeout_ms = REQUEST_WAIT_MS;
	r->settings = json_object_get(in, "settings");
	if (json_is_object(member))
		r->new_member = member;
	else if (member && !json_is_null(member) && !json_is_string(member))
		return false;
	r->member = json_string_value(member);
	return !json_unpack(in, "{s?s, s?I, s?s, s?s, s?b, s?b, s?b, s?b, s?I, s?I}", "set",
			    &r->set_name, "timeout_ms", &r->timeout_ms, "from", &r->from, "discard",
			    &r->discard, "force", &r->force, "full", &r->full, "repair", &r->repair,
			    "now", &r->now, "rate", &r->rate, "size", &r->size) &&
	       r->timeout_ms > 0 && r->timeout_ms <= REQUEST_WAIT_MAX;
}

static void request_run(struct request *r, const struct request_row *row)
{
	struct client *client = r->client;

	r->set = r->set_name ? set_find(client->daemon, r->set_name) : NULL;
	client->wait_until_ms = clock_boot_ms() + (uint64_t)r->timeout_ms;
	if (r->set_name && !r->set)
		request_refuse(client, CODE_CONFIG, "see rpmirrord.conf(5)",
			       "no copy of set '%s' is configured on this host", r->set_name);
	else if (!r->set && !(row->flags & REQUEST_ALL_SETS))
		request_refuse(client, CODE_USAGE, NULL, "'%s' needs a set", row->op);
	else if (!(row->flags & REQUEST_ANYBODY) && client->uid != 0 && client->uid != getuid())
		request_refuse(client, CODE_CONFIG,
			       "run the command as root, or as the daemon's user",
			       "user %u may only read the status", (unsigned)client->uid);
	else if (row->flags & REQUEST_RECORD && (!r->set->has_entry || !r->set->is_open))
		request_refuse(client, CODE_UNREACHABLE, NULL, "set %s: %s", r->set_name,
			       r->set->is_open ? "the register has not been read yet"
					       : r->set->why_not.text);
	else
		row->run(r);
}

void request_on_packet(struct client *client, const char *text, size_t len)
{
	json_error_t error;
	json_t *in = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error), *value;
	struct request r = {.client = client};
	const struct request_row *row = request_find(json_string_value(json_object_get(in, "op")));
	const char *key, *unknown = NULL;

	if (client->wait != CLIENT_IDLE || client->gets_events) {
		request_refuse(client, CODE_USAGE, NULL, "one request at a time");
	} else if (!row) {
		request_refuse(client, CODE_USAGE, "upgrade rpmirrord, if rpmirror is newer",
			       "this daemon does not support the request");
	} else {
		json_object_foreach(in, key, value) unknown =
			request_knows(row, key) ? unknown : key;
		if (unknown)
			request_refuse(client, CODE_USAGE, NULL, "'%s' has no '%.40s'", row->op,
				       unknown);
		else if (!request_unpack(&r, in))
			request_refuse(client, CODE_USAGE, NULL,
				       "a value is not of the type that '%s' takes", row->op);
		else
			request_run(&r, row);
	}
	json_decref(in);
}

/* For the error text after the time limit: the event that did not come in time. */
static const char *const request_awaited[] = {
	[CLIENT_WAITS_ORDER] = "the primary's process has not answered",
	[CLIENT_WAITS_SWAP] = "the register has not answered",
	[CLIENT_WAITS_GROWTH] = "the files of the in-sync copies are not long enough yet",
};

int requests_tick(struct daemon *d, uint64_t now_ms)
{
	uint64_t nearest = UINT64_MAX;

	for (struct client *c = d->clients; c; c = c->next) {
		if (c->wait == CLIENT_IDLE)
			continue;
		if (c->wait_until_ms <= now_ms && c->wait == CLIENT_WAITS_PRIMARY)
			request_give_promotion_up(c);
		else if (c->wait_until_ms <= now_ms)
			request_refuse(c, CODE_TIMEOUT, "--timeout waits longer", "%s",
				       request_awaited[c->wait]);
		else if (c->wait_until_ms < nearest)
			nearest = c->wait_until_ms;
	}
	return nearest == UINT64_MAX ? -1 : (int)(nearest - now_ms);
}
