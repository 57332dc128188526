/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps the content of the regions, as writing clients announce it. BEGIN records on the disk,
 * before the client's first byte, that the region holds a file that is being written (or bytes, if
 * a client overwrites a file). END records, after the last byte, that the file is whole. An
 * announcement can do no more harm than the client's Writes.
 *
 * The same record has the last claim of each range. A new writer's claim is on the disk before the
 * answer, so that a former writer of the range is refused whenever it returns (claims.h). A claim
 * whose record cannot be stored counts as well; an older writer may then be refused without need.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rand.h"
#include "regions/server_impl.h"

/* Time for which a new writer waits until the server notices the end of an interrupted writer. The
 * shortest time that a client waits for an answer is longer (1 s). */
#define CONTENT_WAIT_MS 500

static void content_load(const struct server *s, struct region *r)
{
	struct file_record record = {.claims = {.newest = 0}};
	int rc = file_record_place_init(&r->place, r->path, r->data.fd);

	if (!rc)
		rc = file_record_load(&r->place, r->data.size, &record);
	if (rc)
		server_note(s, LOG_LVL_WARNING,
			    "region '%s': the record of its content cannot be read: %s: %s",
			    r->name, r->place.path,
			    rc == -EILSEQ ? "it is damaged" : strerror(-rc));
	/* Forget a record of another file: on a file system that does not report when a file was
	 * made, the new file may have the same inode number as a former file. */
	if (s->opts->create &&
	    (record.content.state != HELLO_CONTENT_RAW || record.claims.newest)) {
		memset(&record, 0, sizeof(record));
		file_record_store(&r->place, &record);
	}
	r->content = record.content;
	r->claims = record.claims;
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
 * A range belongs to one writer, of a file or of bytes, until the server forgets that client,
 * which ends all Writes that are still running (client_free()). Without this rule, Writes of an
 * interrupted writer could overwrite bytes of the next writer that are already acknowledged.
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

/* Returns the content of the region from the moment at which the writer may write. */
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

/* Returns true if the record on the disk stays true. Bytes outside the file of the region, or in a
 * region of unknown content, do not change the record. */
static bool content_stays(const struct region *r, const struct hello_begin *begin)
{
	if (begin->is_file)
		return false;
	if (r->content.state == HELLO_CONTENT_RAW)
		return !r->store_ticket;
	return !content_overlap(content_range_of(r, begin->offset, begin->length),
				content_range_of(r, 0, r->content.length));
}

/* Start to store the content and the claims on the disk. Before they are stored, no client gets
 * the answer that the region holds a whole file. */
static uint64_t content_store(struct region *r, const struct hello_content *content, bool durable)
{
	struct file_record record = {.content = *content, .claims = r->claims};

	r->to_store = *content;
	if (content->state != HELLO_CONTENT_WHOLE)
		r->content = *content;
	r->store_ticket = lookup_store(r->lookup, &record, durable);
	return r->store_ticket;
}

static int content_answer(struct client *client, enum hello_status status)
{
	struct hello_begun begun = {.status = status};

	client->begin_ticket = 0;
	if (status == HELLO_OK)
		begun.claim = client->claim;
	else
		client->has_begun = false;
	return message_send_begun(client, &begun);
}

/* Returns true if this writer has returned, and its claim was lost to another writer meanwhile. */
static bool content_is_taken(const struct client *client)
{
	struct content_range range = content_range_begun(client);
	struct claim_id former = client->begin.former;

	return former.generation &&
	       !claims_hold(&client->region->claims, range.from, range.to, former);
}

static int content_answer_taken(struct server *s, struct client *client)
{
	struct content_range range = content_range_begun(client);
	const struct claim *last = claims_last(&client->region->claims, range.from, range.to);
	struct hello_begun begun = {.status = HELLO_TAKEN};

	if (last && last->id.generation > client->begin.former.generation) {
		begun.claim.generation = last->id.generation;
		begun.made_ns = last->made_ns;
	}
	server_note_limited(s, LOG_LVL_WARNING, &s->refusals[HELLO_TAKEN],
			    "refused client %" PRIu64 " from %s: its claim %" PRIu64
			    " of region '%s' is no longer valid",
			    client->id, client->addr, client->begin.former.generation,
			    client->region->name);
	client->has_begun = false;
	return message_send_begun(client, &begun);
}

static struct claim_id content_claim(struct region *r, struct content_range range)
{
	uint64_t key;

	rand_bytes(&key, sizeof(key));
	return claims_add(&r->claims, range.from, range.to, key, clock_read_ns(CLOCK_REALTIME));
}

/* Returns the content to store with a claim that does not change the content: the content that is
 * being stored, or else the current content. */
static struct hello_content content_beside(const struct region *r)
{
	return r->store_ticket ? r->to_store : r->content;
}

static int content_start(struct server *s, struct client *client)
{
	const struct hello_begin *begin = &client->begin;
	struct content_range range = content_range_begun(client);
	struct region *r = client->region;
	bool stays = content_stays(r, begin), is_new = begin->former.generation == 0;
	struct hello_content content = stays ? content_beside(r) : content_when_begun(begin);

	if (content_is_taken(client))
		return content_answer_taken(s, client);
	client->has_begun = true;
	client->claim = is_new ? content_claim(r, range) : begin->former;
	if (stays && !(is_new && !r->is_memory))
		return content_answer(client, HELLO_OK);
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
	if (!content_is_being_written(s, client) || content_is_taken(client))
		return content_start(s, client);
	client->waits_ms = clients_now_ms() + CONTENT_WAIT_MS;
	s->waiting++;
	return 0;
}

/* Returns the longest-waiting client whose range is free or whose waiting time is over. */
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
						 : content_start(s, client);
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

/* The client gets its verdict after the content is stored and the file's name is checked. */
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

	if (client->has_begun)
		return false;
	/* The client wrote without an announcement, so its bytes may be anywhere in the region. */
	content_claim(r, (struct content_range){0, r->data.size});
	if (r->content.state == HELLO_CONTENT_RAW && r->is_memory)
		return false;
	client->confirm = content_store(r, &raw, true);
	return true;
}

static void content_answer_begun(struct server *s, struct client *client, int error)
{
	/* The writer was refused and does not write, so the former content stays. */
	if (error)
		client->region->content = client->before;
	if (content_answer(client, error ? HELLO_FILE_UNRECORDED : HELLO_OK))
		client_forget(s, client);
}

static void content_take_answer(struct server *s, struct region *r,
				const struct lookup_answer *answer)
{
	if (answer->store_error)
		server_note_limited(
			s, LOG_LVL_ERROR, &s->not_recorded,
			"region '%s': the record of its content cannot be written to %s: %s",
			r->name, r->place.path, strerror(answer->store_error));
	if (answer->ticket < r->store_ticket)
		return; /* a later record is being stored */
	r->store_ticket = 0;
	if (!answer->store_error)
		r->content = r->to_store;
}

void content_on_answer(struct server *s, struct region *r, const struct lookup_answer *answer)
{
	struct client *next;

	if (!r->store_ticket)
		return;
	content_take_answer(s, r, answer);
	for (struct client *client = s->first; client; client = next) {
		next = client->next;
		if (client->region != r)
			continue;
		client->is_unrecorded |= client->has_ended && client->confirm <= answer->ticket &&
					 answer->store_error;
		if (client->begin_ticket && client->begin_ticket <= answer->ticket)
			content_answer_begun(s, client, answer->store_error);
	}
}
