/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grow.c -- enlarges a set in three steps (core/member.h): the files of the in-sync copies are
 * extended, the register gets the new size, and each copy takes the new size when no process uses
 * the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirror/core/view.h"
#include "mirror/file/metafile.h"
#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

/* after this many register timeouts without a question for room, no order is under way any more */
#define GROW_QUIET 5

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

/* Frees the job. Also called for a job that never ran. */
static void grow_drop(struct agent_job *job)
{
	struct grow_job *g = job->arg;

	if (g->room.data_fd >= 0)
		close(g->room.data_fd);
	if (g->room.meta_fd >= 0)
		close(g->room.meta_fd);
	free(g);
}

static void grow_log_failure(const struct set *s)
{
	const struct growth *g = &s->growth.copy;

	LOG_ERROR_LIMITED("set %s: the copy cannot grow to %llu bytes: %s", s->conf->name,
			  (unsigned long long)g->failed, g->why);
}

static void grow_on_files(struct agent_job *job)
{
	struct set *s = job->owner;
	const struct grow_job *g = job->arg;

	growth_on_files(&s->growth.copy, s->is_open ? &s->member : NULL, g->room.size,
			job->rc ? job->err.cause : 0, job->err.text, clock_boot_ms());
	if (s->growth.copy.failed)
		grow_log_failure(s);
	grow_drop(job);
	free(job);
	grow_tick(s, clock_boot_ms());
}

/* Let the worker call `run` for the copy's files and this size, and then `on_done`. */
static bool grow_post(struct set *s, uint64_t size, int (*run)(struct agent_job *job),
		      void (*on_done)(struct agent_job *job), struct error *err)
{
	struct agent_job *job = agent_job_new(AGENT_CALL, on_done, s);
	struct grow_job *g = calloc(1, sizeof(*g));

	error_set(err, ERROR_LOCAL, ENOMEM, "out of memory");
	if (!job || !g || (!s->worker && set_new_agent(s, &s->worker, err))) {
		free(job);
		free(g);
		return false;
	}
	job->on_drop = grow_drop;
	snprintf(g->data, sizeof(g->data), "%s", s->conf->data);
	conf_meta_path(s->conf, g->meta, sizeof(g->meta));
	/* Use duplicates of the descriptors, because the copy may be closed meanwhile. */
	g->room = (struct metafile_room){.data_fd = fcntl(s->data.fd, F_DUPFD_CLOEXEC, 0),
					 .meta_fd = fcntl(s->meta_file.fd, F_DUPFD_CLOEXEC, 0),
					 .data = g->data,
					 .meta = g->meta,
					 .keep = growth_keep(&s->member),
					 .size = size};
	job->call = run;
	job->arg = g;
	agent_post(s->worker, job);
	return true;
}

static uint64_t grow_length(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* Returns the state of this host's copy in the growth, and begins the step that is due. */
static enum growth_room grow_reserve(struct set *s, uint64_t size)
{
	struct growth *g = &s->growth.copy;
	struct growth_files files = {.data = grow_length(s->data.fd),
				     .meta = grow_length(s->meta_file.fd)};
	enum growth_room room = growth_make_room(g, &s->member, &files, size, clock_boot_ms());
	struct error err;

	if (room != GROWTH_BEGIN)
		return room;
	if (grow_post(s, size, grow_run, grow_on_files, &err))
		return GROWTH_UNDER_WAY;
	growth_on_files(g, &s->member, size, err.cause, err.text, clock_boot_ms());
	grow_log_failure(s);
	return GROWTH_FAILED;
}

void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer)
{
	enum growth_room room = grow_reserve(s, asked->size);

	*answer = (struct message_reserve){
		.size = asked->size,
		.state = (uint8_t)(room == GROWTH_HAS_ROOM ? MESSAGE_RESERVE_DONE
				   : room == GROWTH_FAILED ? MESSAGE_RESERVE_FAILED
							   : MESSAGE_RESERVE_UNDER_WAY),
		.error = room == GROWTH_FAILED ? (uint16_t)s->growth.copy.error : 0};
}

/* ---- the copy takes the register's size ---- */

const char *grow_obstacle(const struct set *s)
{
	return s->is_open && s->has_entry
		       ? growth_obstacle(&s->growth.copy, &s->member, &s->entry.record)
		       : NULL;
}

/* Map the copy's files with the new size. */
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

	/*
	 * While blocks are being cleared, the copy must not be closed: the clearing holds a lock
	 * on the data file, and would continue after the close.
	 */
	if (!s->is_open || !s->has_entry || s->is_split || s->clearing.is_busy ||
	    !growth_is_due(&s->member, &s->entry.record))
		return;
	if (grow_reserve(s, size) == GROWTH_HAS_ROOM &&
	    growth_may_take(&s->growth.copy, &s->member, size))
		grow_take(s, size);
}

/* ---- room that a refused order has left ---- */

static int grow_run_cut(struct agent_job *job)
{
	const struct grow_job *g = job->arg;

	return ftruncate(g->room.data_fd, (off_t)g->room.size) || fsync(g->room.data_fd) ? -errno
											 : 0;
}

static void grow_on_cut(struct agent_job *job)
{
	struct set *s = job->owner;
	const struct grow_job *g = job->arg;

	growth_on_cut(&s->growth.copy, s->is_open ? &s->member : NULL, job->rc, clock_boot_ms());
	if (job->rc)
		LOG_WARNING_LIMITED("set %s: %s keeps the room of a refused growth: %s",
				    s->conf->name, s->conf->data, strerror(-job->rc));
	else
		LOG_NOTICE("set %s: the room of a refused growth is given back, %s has %llu bytes",
			   s->conf->name, s->conf->data, (unsigned long long)g->room.size);
	grow_drop(job);
	free(job);
}

/* The daemon's own mapping must not reach beyond the file's new end. */
static void grow_give_back(struct set *s, uint64_t now_ms)
{
	uint64_t quiet_ms = (uint64_t)GROW_QUIET * s->daemon->conf->register_timeout_ms;
	uint64_t size = s->meta.super.size;
	struct error err;

	if (s->growth.order.size || !s->register_answers || s->is_split || s->clearing.is_busy ||
	    s->data.size > size ||
	    !growth_begin_cut(&s->growth.copy, &s->member, &s->entry.record, now_ms, quiet_ms))
		return;
	if (!grow_post(s, size, grow_run_cut, grow_on_cut, &err))
		growth_on_cut(&s->growth.copy, &s->member, err.cause, now_ms);
}

/* ---- an operator's order ---- */

static void grow_end(struct set *s)
{
	s->growth.order = (struct growth_order){0};
	neighbours_reserve(s->neighbours, 0);
}

void grow_request(struct client *client, struct set *s, uint64_t size)
{
	static struct mirror_record next; /* static, because it is large */
	const char *why = "";

	next = s->entry.record;
	next.config.size = size;
	if (size == s->entry.record.config.size)
		request_done(client, NULL);
	else if (view_set_config(&next, &next.config, request_random(), &why))
		request_refuse(client, CODE_USAGE, NULL, "%s", why);
	else if (size < s->entry.record.config.size)
		request_refuse(client, CODE_USAGE, NULL, "a set cannot be made smaller");
	else if (s->growth.order.size)
		request_refuse(client, CODE_BUSY, NULL,
			       "another order to grow is being carried out");
	else {
		client->wait = CLIENT_WAITS_GROWTH;
		client->wait_set = s;
		s->growth.order = (struct growth_order){.size = size, .begun_ms = clock_boot_ms()};
		s->growth.client = client->serial;
		if (s->growth.copy.failed == size)
			/* try immediately: the disk may have free space now */
			s->growth.copy.retry_ms = 0;
		neighbours_reserve(s->neighbours, size);
		grow_tick(s, s->growth.order.begun_ms);
	}
}

static struct growth_answer grow_ask(struct set *s, uint8_t slot)
{
	uint64_t size = s->growth.order.size;
	struct growth_answer answer = {.answers = true, .size = size};
	struct neighbour_answer of_neighbour;

	if (slot == s->meta.super.slot) {
		answer.copy_id = s->meta.super.member_id;
		answer.room = grow_reserve(s, size);
		return answer;
	}
	neighbours_get(s->neighbours, slot, &of_neighbour);
	answer.answers = of_neighbour.answers;
	answer.copy_id = of_neighbour.copy_id;
	answer.size = of_neighbour.reserved.size;
	answer.error = of_neighbour.reserved.error;
	if (of_neighbour.reserved.state == MESSAGE_RESERVE_DONE)
		answer.room = GROWTH_HAS_ROOM;
	else if (of_neighbour.reserved.state == MESSAGE_RESERVE_FAILED)
		answer.room = GROWTH_FAILED;
	return answer;
}

static void grow_refuse(struct client *client, struct set *s, uint8_t slot,
			const struct growth_answer *answer)
{
	const char *member = s->entry.record.config.members[slot].name;
	bool is_own = slot == s->meta.super.slot;
	struct neighbour_answer of_neighbour;
	const char *why;

	neighbours_get(s->neighbours, slot, &of_neighbour);
	if (is_own)
		why = s->growth.copy.why;
	else if (answer->error)
		why = strerror(answer->error);
	else
		why = of_neighbour.why_not[0] ? of_neighbour.why_not : "it does not answer";
	request_refuse(client, is_own || answer->error ? CODE_IO : CODE_UNREACHABLE,
		       "nothing has changed; the set has its former size", "member %s: %s", member,
		       why);
}

static void grow_swap(struct client *client, struct set *s)
{
	static struct mirror_config config; /* static, because it is large */

	config = s->entry.record.config;
	config.size = s->growth.order.size;
	request_change(client, s, &config);
}

/* Swap in the new record only if the register still has the record whose in-sync members were
 * asked. */
static void grow_order_step(struct set *s, uint64_t now_ms)
{
	struct client *client = local_find(s->daemon, s->growth.client);
	const struct mirror_record *rec = &s->entry.record;
	struct growth_answer answers[MIRROR_MEMBERS_MAX] = {0};
	enum growth_step step;
	uint8_t slot;

	if (!client || client->wait != CLIENT_WAITS_GROWTH) {
		grow_end(s);
		return;
	}
	for (slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (rec->view.insync & MIRROR_BIT(slot))
			answers[slot] = grow_ask(s, slot);
	step = growth_order_next(&s->growth.order, rec, answers, now_ms, &slot);
	if (step == GROWTH_WAITS)
		return;
	if (step == GROWTH_SWAP)
		grow_swap(client, s);
	else
		grow_refuse(client, s, slot, &answers[slot]);
	grow_end(s);
}

void grow_tick(struct set *s, uint64_t now_ms)
{
	if (s->growth.order.size && s->is_open)
		grow_order_step(s, now_ms);
	grow_look(s);
	if (s->is_open && s->has_entry)
		grow_give_back(s, now_ms);
}
