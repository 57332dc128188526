/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.c -- whether anything that was written to a copy's data file was lost.
 *
 * The kernel reports a write-back that failed once to each open file description, and to one that
 * is opened later only if it has reported it to nobody; the pages count as clean then. So the
 * daemon keeps a description for this question alone, from before the file is used until the copy
 * is closed. Whoever met the failure, a flush of this daemon, the application that maps the set and
 * is killed before it can say so, or the kernel by itself: it is recorded before anybody is
 * answered. The copy has failed until the daemon is restarted, which drops what is cached; then all
 * of it is compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mirrord/copies.h"
#include "mirrord/requests.h"

#define MEDIUM_BEHIND ((off_t)1 << 62) /* where no file has pages that would be waited for */

int medium_open(struct set *s, struct error *err)
{
	s->sentinel = open(s->conf->data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return s->sentinel >= 0 ? 0
				: error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s",
					    s->conf->data, strerror(errno));
}

void medium_close(struct set *s)
{
	if (s->sentinel >= 0)
		close(s->sentinel);
	s->sentinel = -1;
}

void medium_fail(struct set *s, int error)
{
	bool is_new = !s->member.has_failed;
	struct member_verdict v;
	char text[CONF_PATH_SIZE + 240];

	member_lose(&s->member, &v);
	if (v.answer != MEMBER_YES)
		LOG_ERROR("set %s: that the copy is in doubt cannot be recorded: %s", s->conf->name,
			  v.text);
	if (!is_new)
		return;
	snprintf(
		text, sizeof(text),
		"a write-back of %s has failed (errno %d, %s): the copy has failed; when its medium is good again, restart rpmirrord",
		s->conf->data, error, strerror(error));
	event_emit(s, s->conf->member, "medium", NULL, NULL, text);
}

/* 0, or the errno of a write-back that failed since this was asked last. */
static int medium_ask(const struct set *s)
{
	if (s->sentinel < 0 ||
	    !sync_file_range(s->sentinel, MEDIUM_BEHIND, 1, SYNC_FILE_RANGE_WAIT_BEFORE))
		return 0;
	if (errno != ENOSYS && errno != EINVAL && errno != EPERM)
		return errno;
	/* A kernel, or a filter of system calls, without it. */
	return fdatasync(s->sentinel) ? errno : 0;
}

void medium_begin(struct set *s, bool is_cached)
{
	int error = medium_ask(s);
	struct member_verdict v;

	if (error && is_cached)
		medium_fail(s, error);
	else if (error)
		member_doubt(&s->member, &v);
}

void medium_look(struct set *s)
{
	int error = medium_ask(s);

	if (error)
		medium_fail(s, error);
}
