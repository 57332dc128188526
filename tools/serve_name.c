/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the file of a region is still what its name leads to. What is written to one that is not
 * would be lost, so that no client must believe that it is kept. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli.h"
#include "serve.h"

/* A client that comes waits so long for a look at its file; the one at its end is not bounded. */
#define LOOK_MS  200
#define EVERY_MS 1000

static const enum hello_status statuses[] = {
	[LOOKUP_FOUND] = HELLO_OK,
	[LOOKUP_REMOVED] = HELLO_FILE_REMOVED,
	[LOOKUP_REPLACED] = HELLO_FILE_REPLACED,
	[LOOKUP_TRUNCATED] = HELLO_FILE_TRUNCATED,
	[LOOKUP_FAILED] = HELLO_FILE_UNKNOWN,
};

int serve_names_open(struct serve *s)
{
	s->name_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned i = 0; i < s->region_count && s->name_fd >= 0; i++) {
		struct serve_region *r = &s->regions[i];

		r->lookup = lookup_new(r->path, r->data.fd, r->data.size, s->name_fd);
		if (!r->lookup)
			return cli_fail(CLI_FILE, "cannot watch %s: %s", r->path, strerror(errno));
	}
	return s->name_fd < 0 ? cli_fail(CLI_FILE, "eventfd: %s", strerror(errno)) : CLI_OK;
}

void serve_names_close(struct serve *s)
{
	for (unsigned i = 0; i < s->region_count; i++)
		lookup_delete(s->regions[i].lookup);
	if (s->name_fd >= 0)
		close(s->name_fd);
}

static void log_lost(const struct serve_region *r, const char *what)
{
	cli_note("region '%s': %s %s; what is written to it from now on would be lost, so writers "
		 "are refused until this server is started anew; 'rpma get' saves what it holds",
		 r->name, lookup_path(r->lookup), what);
}

static void log_change(const struct serve_region *r, enum hello_status status, int error)
{
	switch (status) {
	case HELLO_FILE_REMOVED:
		log_lost(r, "was removed or renamed");
		break;
	case HELLO_FILE_REPLACED:
		log_lost(r, "was replaced by another file");
		break;
	case HELLO_FILE_TRUNCATED:
		log_lost(r, "was truncated");
		break;
	case HELLO_OK:
		cli_note("region '%s': %s is seen again, writers are served", r->name,
			 lookup_path(r->lookup));
		break;
	default:
		cli_note("region '%s': cannot look at %s: %s; writers are refused until this is "
			 "over",
			 r->name, lookup_path(r->lookup), strerror(error));
	}
}

static void take(struct serve_region *r, const struct lookup_answer *answer)
{
	enum hello_status status = statuses[answer->result];

	if (status != r->name_status)
		log_change(r, status, answer->error);
	r->name_status = status;
}

enum hello_status serve_name_judge(struct serve_region *r)
{
	struct lookup_answer answer;

	lookup_wait(r->lookup, LOOK_MS, &answer);
	take(r, &answer);
	return r->name_status;
}

void serve_name_confirm(struct serve_client *client)
{
	client->confirm = lookup_ask(client->region->lookup, true);
}

/* What is lost for good is said at once, so that nobody goes on to write for hours. */
static bool is_due(const struct serve_client *client, uint64_t answered)
{
	enum hello_status status = client->region->name_status;

	if (!client->is_up || client->is_told)
		return false;
	if (client->confirm)
		return client->confirm <= answered;
	return status != HELLO_OK && status != HELLO_FILE_UNKNOWN;
}

void serve_name_tell(struct serve *s, struct serve_client *client, uint64_t answered)
{
	if (client->state != SERVE_SERVED || client->request.access != HELLO_WRITE ||
	    !is_due(client, answered))
		return;
	if (serve_mail_tell(client, client->region->name_status))
		serve_forget(s, client);
}

static void tell_clients(struct serve *s, const struct serve_region *r, uint64_t answered)
{
	struct serve_client *next;

	for (struct serve_client *client = s->first; client; client = next) {
		next = client->next;
		if (client->region == r)
			serve_name_tell(s, client, answered);
	}
}

void serve_names_on_answer(struct serve *s)
{
	struct lookup_answer answer;
	eventfd_t count;

	eventfd_read(s->name_fd, &count);
	for (unsigned i = 0; i < s->region_count; i++) {
		struct serve_region *r = &s->regions[i];

		lookup_get(r->lookup, &answer);
		if (!answer.ticket)
			continue;
		take(r, &answer);
		tell_clients(s, r, answer.ticket);
	}
}

int serve_names_tick(struct serve *s)
{
	uint64_t now = serve_now_ms();

	if (s->clients == 0)
		return -1;
	if (now - s->looked_ms >= EVERY_MS) {
		s->looked_ms = now;
		for (unsigned i = 0; i < s->region_count; i++)
			lookup_ask(s->regions[i].lookup, false);
	}
	return (int)(s->looked_ms + EVERY_MS - now);
}
