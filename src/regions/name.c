/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that the name of a region's file still leads to the file. If it does not, data written to
 * the file would be lost, and a client must not count them as durable.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "regions/server_impl.h"

/* Time that a new client waits for the check of its file, and the interval of checks. The check
 * when a client disconnects has no time limit. */
#define NAME_LOOK_MS  200
#define NAME_EVERY_MS 1000

static const enum hello_status name_statuses[] = {
	[LOOKUP_FOUND] = HELLO_OK,
	[LOOKUP_REMOVED] = HELLO_FILE_REMOVED,
	[LOOKUP_REPLACED] = HELLO_FILE_REPLACED,
	[LOOKUP_TRUNCATED] = HELLO_FILE_TRUNCATED,
	[LOOKUP_FAILED] = HELLO_FILE_UNKNOWN,
};

int names_open(struct server *s, struct error *err)
{
	s->name_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->name_fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "eventfd: %s", strerror(errno));
	for (unsigned i = 0; i < s->region_count; i++) {
		struct region *r = &s->regions[i];

		r->lookup = lookup_new(r->path, r->data.fd, r->data.size, &r->place, s->name_fd);
		if (!r->lookup)
			return error_set(err, ERROR_LOCAL, errno, "cannot watch %s: %s", r->path,
					 strerror(errno));
	}
	return 0;
}

void names_close(struct server *s)
{
	for (unsigned i = 0; i < s->region_count; i++)
		lookup_delete(s->regions[i].lookup);
	if (s->name_fd >= 0)
		close(s->name_fd);
}

static void name_note_lost(const struct server *s, const struct region *r, const char *what)
{
	server_note(
		s, LOG_LVL_ERROR,
		"region '%s': %s %s; bytes written to it from now on would be lost, so writers are "
		"refused until this server is restarted; copy the region to save its content",
		r->name, lookup_path(r->lookup), what);
}

static void name_note_change(const struct server *s, const struct region *r,
			     enum hello_status status, int error)
{
	switch (status) {
	case HELLO_FILE_REMOVED:
		name_note_lost(s, r, "was removed or renamed");
		break;
	case HELLO_FILE_REPLACED:
		name_note_lost(s, r, "was replaced by another file");
		break;
	case HELLO_FILE_TRUNCATED:
		name_note_lost(s, r, "was truncated");
		break;
	case HELLO_OK:
		server_note(s, LOG_LVL_NOTICE, "region '%s': %s is seen again, writers are served",
			    r->name, lookup_path(r->lookup));
		break;
	default:
		server_note(s, LOG_LVL_ERROR,
			    "region '%s': cannot check %s: %s; writers are refused until the check "
			    "succeeds",
			    r->name, lookup_path(r->lookup), strerror(error));
	}
}

static void name_take(const struct server *s, struct region *r, const struct lookup_answer *answer)
{
	enum hello_status status = name_statuses[answer->result];

	if (status != r->name_status)
		name_note_change(s, r, status, answer->error);
	r->name_status = status;
}

enum hello_status name_check(struct server *s, struct region *r)
{
	struct lookup_answer answer;

	lookup_wait(r->lookup, NAME_LOOK_MS, &answer);
	name_take(s, r, &answer);
	return r->name_status;
}

void name_confirm(struct client *client)
{
	client->confirm = lookup_ask(client->region->lookup, true);
}

/* Returns true if the client's verdict is due. The loss of a file is reported immediately, so that
 * clients stop writing. */
static bool name_is_due(const struct client *client, uint64_t answered)
{
	enum hello_status status = client->region->name_status;

	if (!client->is_up || client->has_verdict)
		return false;
	if (client->confirm)
		return client->confirm <= answered;
	return status != HELLO_OK && status != HELLO_FILE_UNKNOWN;
}

void name_send_verdict(struct server *s, struct client *client, uint64_t answered)
{
	enum hello_status status;

	if (client->state != CLIENT_SERVED || client->request.access != HELLO_WRITE ||
	    !name_is_due(client, answered))
		return;
	status = client->region->name_status;
	if (status == HELLO_OK && client->is_unrecorded)
		status = HELLO_FILE_UNRECORDED;
	if (message_send_verdict(client, status))
		client_forget(s, client);
}

static void name_send_verdicts(struct server *s, const struct region *r, uint64_t answered)
{
	struct client *next;

	for (struct client *client = s->first; client; client = next) {
		next = client->next;
		if (client->region == r)
			name_send_verdict(s, client, answered);
	}
}

void names_on_answer(struct server *s)
{
	struct lookup_answer answer;
	eventfd_t count;

	eventfd_read(s->name_fd, &count);
	for (unsigned i = 0; i < s->region_count; i++) {
		struct region *r = &s->regions[i];

		lookup_get(r->lookup, &answer);
		if (!answer.ticket)
			continue;
		name_take(s, r, &answer);
		content_on_answer(s, r, &answer);
		name_send_verdicts(s, r, answer.ticket);
	}
}

int names_tick(struct server *s)
{
	uint64_t now = clients_now_ms();

	if (s->arrivals.count[ARRIVAL_ADMITTED] == 0)
		return -1;
	if (now - s->looked_ms >= NAME_EVERY_MS) {
		s->looked_ms = now;
		for (unsigned i = 0; i < s->region_count; i++)
			lookup_ask(s->regions[i].lookup, false);
	}
	return (int)(s->looked_ms + NAME_EVERY_MS - now);
}
