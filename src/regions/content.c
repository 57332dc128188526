/* SPDX-License-Identifier: BSD-3-Clause */
/* What the regions hold, as writing clients announce it: on the disk, BEGIN makes it a file that is
 * being written (or bytes, where one is overwritten) before the client's first byte, and END makes
 * it a whole file behind its last. No announcement does more harm than the client's writes could.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "regions/server_impl.h"

/* For the end of an interrupted writer to arrive, where the network is well: less than the shortest
 * time that a client waits for an answer (1 s). */
#define CONTENT_WAIT_MS 500

static void content_load(const struct server *s, struct region *r)
{
	int rc = file_record_place_init(&r->place, r->path, r->data.fd);

	if (!rc)
		rc = file_record_load(&r->place, r->data.size, &r->content);
	if (rc)
		server_note(s, "region '%s': nothing is known of what it holds: %s: %s", r->name,
			    r->place.path, rc == -EILSEQ ? "it is damaged" : strerror(-rc));
	/* A file system that does not say when a file was made may have used its number before. */
	if (!s->opts->create || r->content.state == HELLO_CONTENT_RAW)
		return;
	memset(&r->content, 0, sizeof(r->content));
	file_record_store(&r->place, &r->content);
}

void contents_load(struct server *s)
{
	for (unsigned i = 0; i < s->region_count; i++)
		if (!s->regions[i].is_memory)
			content_load(s, &s->regions[i]);
}

struct content_range {
	uint64_t from, to;
};

static struct content_range content_range_of(const struct region *r, uint64_t offset,
					     uint64_t length)
{
	bool fits = offset <= r->data.size && length <= r->data.size - offset;

	return (struct content_range){offset, fits ? offset + length : r->data.size};
}

static bool content_overlap(struct content_range a, struct content_range b)
{
	return a.from < b.to && b.from < a.to;
}

static struct content_range content_range_begun(const struct client *client)
{
	return content_range_of(client->region, client->begin.offset, client->begin.length);
}

/*
 * A range belongs to one writer, file or bytes, until its client is forgotten, which ends whatever
 * it may still have under way (client_free()). A writer that was interrupted may have much: its
 * bytes would land over those of the next one, which has its acknowledgement by then.
 */
static bool content_is_being_written(const struct server *s, const struct client *client)
{
	struct content_range ours = content_range_begun(client);

	for (const struct client *other = s->first; other; other = other->next)
		if (other != client && other->has_begun && other->region == client->region &&
		    (content_overlap(ours, content_range_begun(other)) ||
		     (other->begin.is_file && client->begin.is_file)))
			return true;
	return false;
}

static bool content_is_possible(const struct region *r, const struct hello_begin *begin)
{
	if (begin->offset > r->data.size || (begin->is_file && begin->offset > 0))
		return false;
	return begin->length == HELLO_LENGTH_UNKNOWN ||
	       begin->length <= r->data.size - begin->offset;
}

/* What the region holds as soon as the writer may write. */
static struct hello_content content_when_begun(const struct hello_begin *begin)
{
	struct hello_content content = {.state = HELLO_CONTENT_RAW};

	if (begin->is_file) {
		content.state = HELLO_CONTENT_PARTIAL;
		content.length = begin->length;
		content.time_ns = begin->time_ns;
	}
	return content;
}

/* Bytes beside the file that is there, or where nothing is known: the disk says so already. */
static bool content_stays(const struct region *r, const struct hello_begin *begin)
{
	if (begin->is_file)
		return false;
	if (r->content.state == HELLO_CONTENT_RAW)
		return !r->store_ticket;
	return !content_overlap(content_range_of(r, begin->offset, begin->length),
				content_range_of(r, 0, r->content.length));
}

/* On its way to the disk; until it is there, no client
 * learns that the region holds a whole file. */
static uint64_t content_store(struct region *r, const struct hello_content *content, bool durable)
{
	r->to_store = *content;
	if (content->state != HELLO_CONTENT_WHOLE)
		r->content = *content;
	r->store_ticket = lookup_store(r->lookup, content, durable);
	return r->store_ticket;
}

static int content_answer(struct client *client, enum hello_status status)
{
	client->begin_ticket = 0;
	if (status != HELLO_OK)
		client->has_begun = false;
	return message_send_begun(client, status);
}

static int content_start(struct client *client)
{
	struct region *r = client->region;
	struct hello_content content;

	client->has_begun = true;
	if (content_stays(r, &client->begin))
		return content_answer(client, HELLO_OK);
	content = content_when_begun(&client->begin);
	client->before = r->content;
	client->begin_ticket = content_store(r, &content, false);
	return 0;
}

int content_begin(struct server *s, struct client *client, const struct hello_begin *begin)
{
	struct region *r = client->region;
	int rc;

	if (client->has_announced || !content_is_possible(r, begin))
		return RPMA_E_INVAL;
	client->has_announced = true;
	client->begin = *begin;
	rc = message_expect(client);
	if (rc)
		return rc;
	if (!content_is_being_written(s, client))
		return content_start(client);
	client->waits_ms = clients_now_ms() + CONTENT_WAIT_MS;
	s->waiting++;
	return 0;
}

/* The one that waits longest and need not wait any more: its range is free, or its time is over. */
static struct client *content_next_due(const struct server *s, uint64_t now)
{
	struct client *due = NULL;

	for (struct client *client = s->first; client; client = client->next)
		if (client->waits_ms &&
		    (client->waits_ms <= now || !content_is_being_written(s, client)))
			due = client;
	return due;
}

static void content_end_wait(struct server *s, struct client *client)
{
	int rc;

	client->waits_ms = 0;
	s->waiting--;
	rc = content_is_being_written(s, client) ? content_answer(client, HELLO_BEING_WRITTEN)
						 : content_start(client);
	if (rc)
		client_forget(s, client);
}

int contents_tick(struct server *s)
{
	uint64_t now = clients_now_ms(), nearest = UINT64_MAX;
	struct client *due;

	if (!s->waiting)
		return -1;
	while ((due = content_next_due(s, now)))
		content_end_wait(s, due);
	for (const struct client *client = s->first; client; client = client->next)
		if (client->waits_ms && client->waits_ms < nearest)
			nearest = client->waits_ms;
	return nearest == UINT64_MAX ? -1 : (int)(nearest - now);
}

/* The verdict follows when it is stored and the name was looked at. */
int content_end(struct client *client, const struct hello_content *content)
{
	const struct hello_begin *begin = &client->begin;

	if (!client->has_begun || client->begin_ticket || client->confirm || !begin->is_file ||
	    content->length > client->region->data.size ||
	    (begin->length != HELLO_LENGTH_UNKNOWN && content->length != begin->length))
		return RPMA_E_INVAL;
	client->confirm = content_store(client->region, content, true);
	client->has_ended = true;
	return 0;
}

bool content_confirm(struct client *client)
{
	static const struct hello_content raw = {.state = HELLO_CONTENT_RAW};
	struct region *r = client->region;

	if (client->has_begun || r->content.state == HELLO_CONTENT_RAW)
		return false;
	/* It wrote unannounced, hence anywhere. */
	client->confirm = content_store(r, &raw, true);
	return true;
}

static void content_note_failure(struct server *s, const struct region *r, int error)
{
	server_note_limited(s, &s->not_recorded,
			    "region '%s': what it holds cannot be kept in %s: %s", r->name,
			    r->place.path, strerror(error));
}

static void content_answer_begun(struct server *s, struct client *client, int error)
{
	/* The writer writes nothing, so what was there is there. */
	if (error)
		client->region->content = client->before;
	if (content_answer(client, error ? HELLO_FILE_UNRECORDED : HELLO_OK))
		client_forget(s, client);
}

void content_on_answer(struct server *s, struct region *r, const struct lookup_answer *answer)
{
	struct client *next;

	if (!r->store_ticket || answer->ticket < r->store_ticket)
		return;
	r->store_ticket = 0;
	if (answer->store_error)
		content_note_failure(s, r, answer->store_error);
	else
		r->content = r->to_store;
	for (struct client *client = s->first; client; client = next) {
		next = client->next;
		if (client->region != r)
			continue;
		client->is_unrecorded |= client->has_ended && answer->store_error;
		if (client->begin_ticket)
			content_answer_begun(s, client, answer->store_error);
	}
}
