/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c -- checks that a copy's files still have their names and are whole. After a rename over a
 * file, or an unlink, flushed bytes are in a file that cannot be found again, and truncated
 * metadata hold no records. Then the copy counts as failed, as after a failure of its medium, until
 * the daemon is restarted and compares the present files.
 *
 * The set's worker thread looks up the names. So a file system that does not answer, such as a
 * network file system, stops neither the loop nor the other sets of this host.
 *
 * When the process that maps the set resumes, it gets the data file that has the name now, and
 * compares it with the file that it has mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

#define PLACE_LOOK_MS 1000 /* period of checks; a check costs two calls of stat() */
#define PLACE_LATE_MS 2000 /* without an answer for this time, an event informs the operator */
#define PLACE_END_MS  1000 /* longest time that the daemon waits for a check before it exits */

enum { PLACE_META, PLACE_DATA, PLACE_FILES };

/* A check by the worker, with the files that it found under the names. */
struct place_job {
	/*
	 * true after the worker has begun the check; earlier jobs of the worker, such as those of
	 * clear.c, may take long
	 */
	bool has_begun;
	char paths[PLACE_FILES][CONF_PATH_SIZE];
	struct stat found[PLACE_FILES];
	int error[PLACE_FILES];
};

static int place_run(struct agent_job *job)
{
	struct place_job *p = job->arg;

	__atomic_store_n(&p->has_begun, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < PLACE_FILES; i++)
		p->error[i] = stat(p->paths[i], &p->found[i]) ? errno : 0;
	return 0;
}

static void place_drop(struct agent_job *job)
{
	free(job->arg);
}

/*
 * Returns NULL if the file has its name and is whole. A folder that does not answer, or cannot be
 * read, is no evidence of a loss. If the data file was truncated, a comparison finds the unreadable
 * pages, as on a bad medium.
 */
static const char *place_judge(const struct set *s, const struct place_job *p, unsigned i)
{
	const struct stat *found = &p->found[i];
	const struct place_file *used = &s->placing.files[i];

	if (p->error[i])
		return p->error[i] == ENOENT || p->error[i] == ENOTDIR ? "was removed" : NULL;
	if (found->st_ino != used->ino || found->st_dev != used->dev)
		return "was replaced";
	return i == PLACE_META && (uint64_t)found->st_size < s->meta_file.size ? "was cut off"
									       : NULL;
}

/*
 * Mark the copy as failed. Primaries are informed when they connect again, and the process on this
 * host when it resumes.
 */
static void place_lose(struct set *s, const char *path, const char *what)
{
	struct member_verdict v;

	member_lose(&s->member, &v);
	snprintf(s->failed_why, sizeof(s->failed_why),
		 "%.400s %s while it was in use: put the right file there, and restart rpmirrord",
		 path, what);
	event_emit(s, s->conf->member, "medium", NULL, NULL, s->failed_why);
	inbounds_end_all(s->daemon, s);
	if (s->holder.client)
		local_drop(s->holder.client);
}

static void place_on_done(struct agent_job *job)
{
	struct set *s = job->owner;
	struct place_job *p = job->arg;
	/* The copy may have been opened again since the check began, for instance to grow. */
	bool counts = s->is_open && !s->member.has_failed && job->id == s->placing.opened;
	const char *what = NULL;

	if (s->placing.is_late)
		LOG_NOTICE("set %s: the file system of %s answers again", s->conf->name,
			   p->paths[PLACE_DATA]);
	s->placing.job = NULL;
	s->placing.is_late = false;
	for (unsigned i = 0; counts && !what && i < PLACE_FILES; i++) {
		what = place_judge(s, p, i);
		if (what)
			place_lose(s, p->paths[i], what);
	}
	free(p);
	free(job);
}

static void place_ask(struct set *s, uint64_t now_ms)
{
	struct agent_job *job = agent_job_new(AGENT_CALL, place_on_done, s);
	struct place_job *p = calloc(1, sizeof(*p));
	struct error err;

	s->placing.next_ms = now_ms + PLACE_LOOK_MS;
	if (!job || !p || (!s->worker && set_new_agent(s, &s->worker, &err))) {
		free(job);
		free(p);
		return;
	}
	conf_meta_path(s->conf, p->paths[PLACE_META], sizeof(p->paths[PLACE_META]));
	snprintf(p->paths[PLACE_DATA], sizeof(p->paths[PLACE_DATA]), "%s", s->conf->data);
	job->id = s->placing.opened;
	job->call = place_run;
	job->on_drop = place_drop;
	job->arg = p;
	s->placing.job = p;
	s->placing.asked_ms = now_ms;
	agent_post(s->worker, job);
}

/* Report that the file system does not answer. The copy has not failed, because the file system
 * may answer again at any time. */
static void place_note_late(struct set *s, uint64_t now_ms)
{
	char text[CONF_PATH_SIZE + 80];

	if (!__atomic_load_n(&s->placing.job->has_begun, __ATOMIC_ACQUIRE))
		s->placing.asked_ms = now_ms;
	if (s->placing.is_late || now_ms < s->placing.asked_ms + PLACE_LATE_MS)
		return;
	s->placing.is_late = true;
	snprintf(text, sizeof(text), "the file system of %s has not answered for %u s",
		 s->conf->data, PLACE_LATE_MS / 1000);
	event_emit(s, s->conf->member, "medium", NULL, NULL, text);
}

/* Handle a missing page of the metadata: the file is shorter, or its medium cannot read the
 * page. */
static void place_on_fault(struct set *s)
{
	char meta[CONF_PATH_SIZE];
	struct stat st;
	bool is_cut = !fstat(s->meta_file.fd, &st) && (uint64_t)st.st_size < s->meta_file.size;

	conf_meta_path(s->conf, meta, sizeof(meta));
	place_lose(s, meta, is_cut ? "was cut off" : "could not be read");
}

void place_look(struct set *s, uint64_t now_ms)
{
	if (s->member.has_failed)
		return;
	if (__atomic_load_n(&s->has_meta_fault, __ATOMIC_ACQUIRE))
		place_on_fault(s);
	else if (s->placing.job)
		place_note_late(s, now_ms);
	else if (now_ms >= s->placing.next_ms)
		place_ask(s, now_ms);
}

int place_begin(struct set *s, struct error *err)
{
	const int fds[PLACE_FILES] = {[PLACE_META] = s->meta_file.fd, [PLACE_DATA] = s->data.fd};
	struct stat st;

	s->placing.opened++;
	for (unsigned i = 0; i < PLACE_FILES; i++) {
		if (fstat(fds[i], &st))
			return error_set(err, ERROR_LOCAL, errno, "%s: %s", s->conf->data,
					 strerror(errno));
		s->placing.files[i] = (struct place_file){.dev = st.st_dev, .ino = st.st_ino};
	}
	return 0;
}

void place_end(struct set *s)
{
	if (s->placing.job && !agent_delete_within(&s->worker, PLACE_END_MS))
		s->placing.is_late = true;
}

int place_open(const struct set *s)
{
	int fd = open(s->conf->data, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	/* If no file has the name, open any other file: the process notices that it has mapped a
	 * different one. */
	return fd >= 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
}
