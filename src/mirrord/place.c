/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c -- is a copy's data file still the one under its name? After a rename over it, or an
 * unlink, what is flushed goes to a file that nobody finds again. Such a copy has failed, as by its
 * medium, until the daemon is restarted and compares what is there.
 *
 * The process that maps the set is told when it resumes: it gets the file under the name, and sees
 * that its own is another one.
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

#define PLACE_LOOK_MS 1000 /* one stat() */

/* A folder that does not answer, or is not to be read, says nothing. */
static const char *place_judge(const struct set *s)
{
	struct stat found, used;

	if (fstat(s->data.fd, &used))
		return NULL;
	if (stat(s->conf->data, &found))
		return errno == ENOENT || errno == ENOTDIR ? "was removed" : NULL;
	return found.st_ino != used.st_ino || found.st_dev != used.st_dev ? "was replaced" : NULL;
}

/* Primaries find out when they connect again; the process here when it resumes. */
static void place_lose(struct set *s, const char *what)
{
	char text[CONF_PATH_SIZE + 240];
	struct member_verdict v;

	member_lose(&s->member, &v);
	snprintf(text, sizeof(text),
		 "%s %s while it was in use: the copy has failed; put the right file there, and "
		 "restart rpmirrord",
		 s->conf->data, what);
	event_emit(s, s->conf->member, "medium", NULL, NULL, text);
	links_end_all(s->daemon, s);
	if (s->holder.client)
		local_drop(s->holder.client);
}

void place_look(struct set *s, uint64_t now_ms)
{
	const char *what;

	if (now_ms < s->place_ms)
		return;
	s->place_ms = now_ms + PLACE_LOOK_MS;
	what = s->member.has_failed ? NULL : place_judge(s);
	if (what)
		place_lose(s, what);
}

int place_open(const struct set *s)
{
	int fd = open(s->conf->data, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	/* No file is another one, too. */
	return fd >= 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
}
