/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clear.c -- overwrites blocks of a copy that cannot be read, before a resync sends them.
 *
 * A disk may take a long time for an unreadable block, so a separate thread clears the block. The
 * primary that sends the resync repeats its request until the thread is done. Until then the thread
 * may write zeros at any time, even after that primary is gone and another epoch is promised. So
 * meanwhile no connection for data is granted, no resync begins or ends, the copy does not grow,
 * and no process may map the copy. All other writes to the copy happen after the thread's writes.
 * The copy is `syncing`, and a copy in this state is never promoted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mirror/file/badblocks.h"
#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

struct clear_job {
	int fd; /* a duplicate of the descriptor, which shares the copy's lock */
	enum rpma_durability durability;
	struct mirror_range range;
	struct badblocks found;
};

static int clear_run(struct agent_job *job)
{
	struct clear_job *c = job->arg;

	return badblocks_clear(c->fd, c->durability, c->range, &c->found);
}

/* Frees the job. Also called for a job that never ran. */
static void clear_drop(struct agent_job *job)
{
	struct clear_job *c = job->arg;

	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static void clear_report(struct set *s, const struct clearing *c)
{
	const struct message_cleared *result = &c->result;
	char text[CONF_PATH_SIZE + 240];

	if (badblocks_is_of_medium(result->error))
		snprintf(text, sizeof(text),
			 "the block at %llu of %s can be neither read nor overwritten (errno %d, "
			 "%s): replace the medium, then the member by 'rpmirror member replace'",
			 (unsigned long long)result->offset, s->conf->data, result->error,
			 strerror(result->error));
	else if (result->error)
		snprintf(text, sizeof(text),
			 "the block at %llu of %s cannot be overwritten now (errno %d, %s); the "
			 "write is tried again",
			 (unsigned long long)result->offset, s->conf->data, result->error,
			 strerror(result->error));
	else
		snprintf(text, sizeof(text),
			 "%u of the blocks at %llu to %llu of %s could not be read; the primary's "
			 "bytes are copied over them",
			 result->blocks, (unsigned long long)c->range.offset,
			 (unsigned long long)(c->range.offset + c->range.len - 1), s->conf->data);
	event_emit(s, s->conf->member, "medium", NULL, NULL, text);
}

static void clear_end(struct set *s, int rc, const struct badblocks *found)
{
	struct clearing *c = &s->clearing;

	c->is_busy = false;
	c->is_done = true;
	c->result = (struct message_cleared){.blocks = (uint16_t)found->cleared,
					     .error = (uint16_t)-rc,
					     .offset = rc ? found->offset : 0};
	if (rc || found->cleared)
		clear_report(s, c);
}

static void clear_on_done(struct agent_job *job)
{
	struct set *s = job->owner;
	const struct clear_job *c = job->arg;

	clear_end(s, job->rc, &c->found);
	clear_drop(job);
	free(job);
	if (s->is_open)
		medium_look(s);
	map_retry(s);
}

static int clear_begin(struct set *s, struct mirror_range range)
{
	struct agent_job *job = agent_job_new(AGENT_CALL, clear_on_done, s);
	struct clear_job *c = calloc(1, sizeof(*c));
	struct error err;

	if (!job || !c || (!s->worker && set_new_agent(s, &s->worker, &err))) {
		free(job);
		free(c);
		return -ENOMEM;
	}
	*c = (struct clear_job){.fd = fcntl(s->data.fd, F_DUPFD_CLOEXEC, 0),
				.durability = s->data.durability,
				.range = range};
	job->call = clear_run;
	job->on_drop = clear_drop;
	job->arg = c;
	agent_post(s->worker, job);
	return 0;
}

void clear_on_request(struct set *s, struct mirror_epoch epoch, struct mirror_range range,
		      struct message_cleared *answer)
{
	struct clearing *c = &s->clearing;
	struct badblocks none = {.offset = range.offset};
	bool is_answered = c->is_done && mirror_epoch_is_equal(c->epoch, epoch) &&
			   c->range.offset == range.offset && c->range.len == range.len;
	int rc;

	if (!c->is_busy && !is_answered) {
		*c = (struct clearing){.is_busy = true, .epoch = epoch, .range = range};
		rc = clear_begin(s, range);
		if (rc)
			clear_end(s, rc, &none);
	}
	*answer = c->is_busy ? (struct message_cleared){.is_under_way = true} : c->result;
	if (!c->is_busy)
		c->is_done = false;
}

void clear_forget(struct set *s)
{
	s->clearing.is_done = false;
}
