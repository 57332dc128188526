/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c -- are a copy's files still those under their names, and whole? After a rename over one,
 * or an unlink, what is flushed goes to a file that nobody finds again; and metadata that were cut
 * off hold no records. Such a copy has failed, as by its medium, until the daemon is restarted and
 * compares what is there.
 *
 * The process that maps the set is told when it resumes: it gets the data file under the name, and
 * sees that its own is another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

#define PLACE_LOOK_MS 1000 /* four calls of stat() */

/* Of data that were cut off a comparison finds what cannot be read, as of a bad medium. */
static bool place_is_cut(const struct mapfile *file)
{
	struct stat st;

	return !fstat(file->fd, &st) && (uint64_t)st.st_size < file->size;
}

/* A folder that does not answer, or is not to be read, says nothing. */
static const char *place_judge(const char *path, const struct mapfile *file)
{
	struct stat found, used;

	if (fstat(file->fd, &used))
		return NULL;
	if (stat(path, &found))
		return errno == ENOENT || errno == ENOTDIR ? "was removed" : NULL;
	return found.st_ino != used.st_ino || found.st_dev != used.st_dev ? "was replaced" : NULL;
}

/* Primaries find out when they connect again; the process here when it resumes. */
static void place_lose(struct set *s, const char *path, const char *what)
{
	struct member_verdict v;

	member_lose(&s->member, &v);
	snprintf(s->failed_why, sizeof(s->failed_why),
		 "%.400s %s while it was in use: put the right file there, and restart rpmirrord",
		 path, what);
	event_emit(s, s->conf->member, "medium", NULL, NULL, s->failed_why);
	links_end_all(s->daemon, s);
	if (s->holder.client)
		local_drop(s->holder.client);
}

void place_look(struct set *s, uint64_t now_ms)
{
	bool has_fault = __atomic_load_n(&s->has_meta_fault, __ATOMIC_ACQUIRE);
	char meta[CONF_PATH_SIZE];
	const char *what;

	if (s->member.has_failed || (now_ms < s->place_ms && !has_fault))
		return;
	s->place_ms = now_ms + PLACE_LOOK_MS;
	conf_meta_path(s->conf, meta, sizeof(meta));
	what = place_is_cut(&s->meta_file) ? "was cut off" : place_judge(meta, &s->meta_file);
	if (!what && has_fault)
		what = "could not be read";
	if (what) {
		place_lose(s, meta, what);
		return;
	}
	what = place_judge(s->conf->data, &s->data);
	if (what)
		place_lose(s, s->conf->data, what);
}

int place_open(const struct set *s)
{
	int fd = open(s->conf->data, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	/* No file is another one, too. */
	return fd >= 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
}
