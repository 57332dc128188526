/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grow.c -- a set gets larger, in three steps (core/member.h): the files of the in-sync copies get
 * longer, the register says the new size, and each copy takes it when nobody uses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mirror/core/view.h"
#include "mirror/file/metafile.h"
#include "mirrord/impl.h"

#define GROW_RETRY_MS  5000 /* after the disk was too small, for instance */
#define GROW_SILENT_MS 3000 /* so long another daemon may not answer */

/* ---- the files ---- */

struct grow_job {
	struct metafile_room room;
	char data[MIRROR_PATH_MAX + 1], meta[MIRROR_PATH_MAX + 16];
};

static int grow_run(struct agent_job *job)
{
	struct grow_job *g = job->arg;

	return metafile_make_room(&g->room, &job->err);
}

static void grow_free(struct grow_job *g)
{
	if (g->room.data_fd >= 0)
		close(g->room.data_fd);
	if (g->room.meta_fd >= 0)
		close(g->room.meta_fd);
	free(g);
}

static void grow_failed(struct set *s, uint64_t size, int error, const char *why)
{
	s->growth.failed = size;
	s->growth.error = error;
	s->growth.retry_ms = clock_boot_ms() + GROW_RETRY_MS;
	snprintf(s->growth.why, sizeof(s->growth.why), "%.*s", (int)sizeof(s->growth.why) - 1, why);
	LOG_ERROR_LIMITED("set %s: the copy cannot grow to %llu bytes: %s", s->conf->name,
			  (unsigned long long)size, why);
}

static void grow_on_files(struct agent_job *job)
{
	struct set *s = job->owner;
	struct grow_job *g = job->arg;
	struct member_verdict v = {.answer = MEMBER_YES};
	uint64_t size = g->room.size;

	s->growth.is_running = false;
	if (!job->rc && s->is_open)
		member_reserve(&s->member, size, &v);
	if (job->rc)
		grow_failed(s, size, job->err.cause, job->err.text);
	else if (v.answer != MEMBER_YES)
		grow_failed(s, size, EIO, v.text);
	else
		s->growth.failed = 0;
	grow_free(g);
	free(job);
	grow_tick(s, clock_boot_ms());
}

/* What else is behind the set's end, somebody's own, is not the set's. */
static uint64_t grow_keep(const struct set *s)
{
	const struct meta_super *super = &s->meta.super;

	return super->room > super->size ? super->room : super->size;
}

static bool grow_begin(struct set *s, uint64_t size, struct error *err)
{
	struct agent_job *job = agent_job_new(AGENT_CALL, grow_on_files, s);
	struct grow_job *g = calloc(1, sizeof(*g));

	error_set(err, ERROR_LOCAL, ENOMEM, "out of memory");
	if (!job || !g || (!s->worker && set_new_agent(s, &s->worker, err))) {
		free(job);
		free(g);
		return false;
	}
	snprintf(g->data, sizeof(g->data), "%s", s->conf->data);
	conf_meta_path(s->conf, g->meta, sizeof(g->meta));
	/* The copy may be closed meanwhile. */
	g->room = (struct metafile_room){.data_fd = fcntl(s->data.fd, F_DUPFD_CLOEXEC, 0),
					 .meta_fd = fcntl(s->meta_file.fd, F_DUPFD_CLOEXEC, 0),
					 .data = g->data,
					 .meta = g->meta,
					 .keep = grow_keep(s),
					 .size = size};
	job->call = grow_run;
	job->arg = g;
	s->growth.is_running = true;
	agent_post(s->worker, job);
	return true;
}

static bool grow_is_as_long(int fd, uint64_t size)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size >= size;
}

static bool grow_has_room(const struct set *s, uint64_t size)
{
	return size <= s->meta.super.size ||
	       (size <= s->meta.super.room && grow_is_as_long(s->data.fd, size) &&
		grow_is_as_long(s->meta_file.fd, meta_size_for(size)));
}

/* Where this host's copy is with that; what is to be begun is begun. */
static enum message_reserve_state grow_reserve(struct set *s, uint64_t size)
{
	struct error err;

	if (copy_state(s) != MIRROR_COPY_FAILED && grow_has_room(s, size))
		return MESSAGE_RESERVE_DONE;
	if (s->growth.is_running)
		return MESSAGE_RESERVE_UNDER_WAY;
	if (copy_state(s) == MIRROR_COPY_FAILED) {
		grow_failed(s, size, EIO, "the copy has failed");
		return MESSAGE_RESERVE_FAILED;
	}
	if (s->growth.failed == size && clock_boot_ms() < s->growth.retry_ms)
		return MESSAGE_RESERVE_FAILED;
	if (grow_begin(s, size, &err))
		return MESSAGE_RESERVE_UNDER_WAY;
	grow_failed(s, size, err.cause, err.text);
	return MESSAGE_RESERVE_FAILED;
}

void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer)
{
	enum message_reserve_state state = grow_reserve(s, asked->size);

	*answer = (struct message_reserve){
		.size = asked->size,
		.state = (uint8_t)state,
		.error = state == MESSAGE_RESERVE_FAILED ? (uint16_t)s->growth.error : 0};
}

/* ---- the copy takes the register's size ---- */

const char *grow_obstacle(const struct set *s)
{
	if (!s->is_open || !s->has_entry || s->entry.record.config.size <= s->meta.super.size)
		return NULL;
	if (s->growth.failed == s->entry.record.config.size)
		return s->growth.why;
	return "the copy of this host grows to the set's new size first";
}

/* Its files are mapped anew. */
static void grow_take(struct set *s, uint64_t size)
{
	struct member_verdict v;

	copy_close(s);
	if (copy_open(s)) {
		LOG_ERROR("set %s: %s", s->conf->name, s->why_not.text);
		return;
	}
	member_grow(&s->member, size, &v);
	if (v.answer == MEMBER_YES)
		LOG_NOTICE("set %s: the copy has %llu bytes now", s->conf->name,
			   (unsigned long long)size);
	else
		LOG_ERROR("set %s: the copy cannot grow: %s", s->conf->name, v.text);
}

void grow_look(struct set *s)
{
	uint64_t size = s->entry.record.config.size;

	if (!s->is_open || !s->has_entry || s->is_split || size <= s->meta.super.size ||
	    copy_state(s) == MIRROR_COPY_FAILED)
		return;
	if (grow_reserve(s, size) == MESSAGE_RESERVE_DONE && !s->growth.is_running &&
	    member_may_grow(&s->member, size))
		grow_take(s, size);
}

/* ---- an operator's order ---- */

static void grow_end(struct set *s)
{
	s->growth.wanted = 0;
	neighbours_reserve(s->neighbours, 0);
}

void grow_request(struct client *client, struct set *s, uint64_t size)
{
	static struct mirror_record next; /* large */
	const char *why = "";

	next = s->entry.record;
	next.config.size = size;
	if (size == s->entry.record.config.size)
		request_done(client);
	else if (view_set_config(&next, &next.config, request_random(), &why))
		request_refuse(client, REQUEST_USAGE, NULL, "%s", why);
	else if (size < s->entry.record.config.size)
		request_refuse(client, REQUEST_USAGE, NULL, "a set cannot be made smaller");
	else if (s->growth.wanted)
		request_refuse(client, REQUEST_BUSY, NULL, "another order to grow is carried out");
	else {
		client->wait = CLIENT_WAITS_GROWTH;
		client->wait_set = s;
		s->growth.wanted = size;
		s->growth.client = client->serial;
		s->growth.begun_ms = clock_boot_ms();
		if (s->growth.failed == size)
			s->growth.retry_ms = 0; /* there may be room now */
		neighbours_reserve(s->neighbours, size);
		grow_tick(s, s->growth.begun_ms);
	}
}

static void grow_refuse(struct client *client, struct set *s, enum request_code code, uint8_t slot,
			const char *why)
{
	request_refuse(client, code, "nothing has changed; the set has its former size",
		       "member %s: %s", s->entry.record.config.members[slot].name, why);
}

/* One member of the in-sync set. True: it has room; a refusal ends the order. */
static bool grow_ask_member(struct client *client, struct set *s, uint8_t slot, uint64_t now_ms)
{
	struct neighbour_answer answer;
	enum message_reserve_state state;

	if (slot == s->meta.super.slot) {
		state = grow_reserve(s, s->growth.wanted);
		if (state == MESSAGE_RESERVE_FAILED)
			grow_refuse(client, s, REQUEST_IO, slot, s->growth.why);
		return state == MESSAGE_RESERVE_DONE;
	}
	neighbours_get(s->neighbours, slot, &answer);
	if (!answer.answers && now_ms - s->growth.begun_ms >= GROW_SILENT_MS)
		grow_refuse(client, s, REQUEST_UNREACHABLE, slot,
			    answer.why_not[0] ? answer.why_not : "it does not answer");
	if (!answer.answers || answer.reserved.size != s->growth.wanted)
		return false;
	if (answer.reserved.state == MESSAGE_RESERVE_FAILED)
		grow_refuse(client, s, REQUEST_IO, slot, strerror(answer.reserved.error));
	return answer.reserved.state == MESSAGE_RESERVE_DONE;
}

/* The record that is swapped is the one whose in-sync members were asked. */
static void grow_order_step(struct set *s, uint64_t now_ms)
{
	struct client *client = local_find(s->daemon, s->growth.client);
	mirror_mask insync = s->entry.record.view.insync;
	static struct mirror_config config; /* large */

	for (uint8_t slot = 0; client && slot < MIRROR_MEMBERS_MAX; slot++)
		if (client->wait == CLIENT_WAITS_GROWTH && insync & MIRROR_BIT(slot) &&
		    !grow_ask_member(client, s, slot, now_ms) &&
		    client->wait == CLIENT_WAITS_GROWTH)
			return; /* not yet */
	if (client && client->wait == CLIENT_WAITS_GROWTH) {
		config = s->entry.record.config;
		config.size = s->growth.wanted;
		request_change(client, s, &config);
	}
	grow_end(s);
}

void grow_tick(struct set *s, uint64_t now_ms)
{
	if (s->growth.wanted && s->is_open)
		grow_order_step(s, now_ms);
	grow_look(s);
}
