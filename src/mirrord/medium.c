/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.c -- finds out whether bytes that were written to a copy's data file were lost.
 *
 * The kernel reports a failed write-back once to each open file description. A description that is
 * opened later gets the report only if no other description has got it. After the report the pages
 * count as clean. So the daemon keeps a description only for this purpose, from before the file is
 * used until the copy is closed. This description gets every failure: of a flush of this daemon,
 * of an application that maps the set and is killed before it can report the failure, or of the
 * kernel's own write-back. The daemon records the failure before it answers any question about the
 * copy. The copy counts as failed until the daemon is restarted; the restart drops cached pages,
 * and then the whole copy is compared.
 *
 * A daemon may start while a process maps the copy. The kernel may have reported an earlier failure
 * to that process already, or to the former daemon, which could no longer record the failure. Then
 * the new daemon gets no report. So the process has a description of its own, which the daemon
 * passed with the copy. When the process resumes, it reports whether bytes were lost (LOST). If it
 * ends before that, all cached pages are written again, so that the copy then returns the bytes
 * that its medium has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pagecache.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

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
	const char *what = error == ESTALE ? "the process that maps the set uses another file than"
					   : "a write-back has failed of";

	member_lose(&s->member, &v);
	if (v.answer != MEMBER_YES)
		LOG_ERROR("set %s: cannot record that the copy is in doubt: %s", s->conf->name,
			  v.text);
	if (!is_new)
		return;
	snprintf(
		text, sizeof(text),
		"%s %s (errno %d, %s): the copy has failed; when its medium is good again, restart "
		"rpmirrord",
		what, s->conf->data, error, strerror(error));
	snprintf(s->failed_why, sizeof(s->failed_why), "%.500s", text);
	event_emit(s, s->conf->member, "medium", NULL, NULL, text);
}

static int medium_ask(const struct set *s)
{
	return s->sentinel < 0 ? 0 : pagecache_lost(s->sentinel);
}

void medium_begin(struct set *s, bool was_left, bool is_mapped)
{
	int error = medium_ask(s);
	struct member_verdict v;

	s->may_have_missed = is_mapped;
	if (error && (was_left || is_mapped))
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

void medium_on_word(struct set *s, int error)
{
	s->may_have_missed = false;
	if (error)
		medium_fail(s, error);
}

void medium_on_release(struct set *s)
{
	int rc;

	/* For a failed copy the next daemon does this: it must write the copy again before it
	 * trusts the copy. */
	if (s->may_have_missed && !s->member.has_failed) {
		LOG_NOTICE(
			"set %s: a process that had mapped %s before this daemon started has ended "
			"without a report about failed write-backs: the cached pages are written "
			"again",
			s->conf->name, s->conf->data);
		rc = pagecache_drop(s->conf->data);
		if (rc)
			medium_fail(s, -rc);
	}
	s->may_have_missed = false;
	medium_look(s);
}
