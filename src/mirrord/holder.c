/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches the process that maps a set: checks that it is the recorded process, and whether it has
 * ended. */
#include "mirrord/holder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

/*
 * Returns field 22 of /proc/PID/stat, or 0 if the file cannot be read. The name of the process, in
 * an earlier field, may contain any character.
 */
uint64_t holder_start_time(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	FILE *file;
	char *at;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')');
	for (unsigned field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

/* Report that the process has exited. If the process was the primary, no process serves the set
 * from now on. */
static void holder_report_end(struct set *s, pid_t pid)
{
	bool was_primary = s->has_entry && s->entry.record.view.primary == s->meta.super.slot;
	char text[128];

	snprintf(text, sizeof(text), "process %d, %s, has ended without unmapping the set",
		 (int)pid, was_primary ? "the primary" : "which mapped it");
	event_emit(s, s->conf->member, "ended", NULL, NULL, text);
}

static void holder_on_end(struct watch *w)
{
	struct set *s = w->owner;

	holder_report_end(s, s->holder.pid);
	holder_release(s, false);
	map_retry(s);
}

/* ---- execve(2) ---- */

/* Read the addresses of the program, which identify it, because each program gets new addresses.
 * The kernel may forbid reading them. */
static void holder_read_program(pid_t pid, struct holder_program *program)
{
	char path[64];
	FILE *file;

	memset(program, 0, sizeof(*program));
	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	program->len = fread(program->auxv, 1, sizeof(program->auxv), file);
	fclose(file);
}

void holder_note_program(struct set *s, const struct client *client)
{
	holder_read_program(client->pid, &s->holder.program);
}

static void holder_end_program(struct set *s)
{
	LOG_NOTICE("set %s: process %d has executed another program", s->conf->name,
		   (int)s->holder.pid);
	holder_report_end(s, s->holder.pid);
	holder_release(s, false);
}

void holder_end_former_program(struct set *s, const struct client *client)
{
	const struct meta_holder *holder = &s->meta.super.holder;

	if (s->is_open && s->holder.pid == client->pid && holder->pid == (uint64_t)client->pid &&
	    holder->start_time == holder_start_time(client->pid) && holder->image &&
	    client->image && holder->image != client->image)
		holder_end_program(s);
}

void holder_look_at_program(struct set *s)
{
	struct holder_program now;

	if (!s->holder.pid || s->holder.client || !s->holder.program.len)
		return;
	holder_read_program(s->holder.pid, &now);
	if (!now.len || (now.len == s->holder.program.len &&
			 !memcmp(now.auxv, s->holder.program.auxv, now.len)))
		return;
	holder_end_program(s);
	map_retry(s);
}

int holder_watch(struct set *s, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = loop_watch(s->daemon, &s->holder.on_end, fd, holder_on_end, s);
	if (rc) {
		close(fd);
		return rc;
	}
	s->holder.pid = pid;
	s->holder.known_ms = clock_boot_ms();
	return 0;
}

static void holder_unwatch(struct set *s)
{
	int fd = s->holder.on_end.fd;

	loop_unwatch(s->daemon, &s->holder.on_end);
	if (fd >= 0)
		close(fd);
	if (s->holder.client)
		s->holder.client->set = NULL;
	memset(&s->holder, 0, sizeof(s->holder));
	s->holder.on_end.fd = -1;
}

void holder_release(struct set *s, bool clean)
{
	struct mirror_epoch epoch = s->holder.epoch;
	struct member_verdict v;

	holder_unwatch(s);
	medium_on_release(s);
	member_release(&s->member, clean, &v);
	if (v.answer != MEMBER_YES)
		LOG_ERROR("set %s: the end of the process could not be recorded: %s", s->conf->name,
			  v.text);
	memset(&s->renewed, 0, sizeof(s->renewed));
	if (epoch.number)
		reg_clear_alive(s, epoch);
	grow_look(s);
	reg_ask(s);
}

/*
 * Returns true only if it is proved that the recorded process has exited, because a living process
 * may write to the copy, and serve.
 */
static bool holder_is_gone(const struct set *s, const struct meta_holder *holder, int watch_rc)
{
	uint64_t start = holder_start_time((pid_t)holder->pid);

	return watch_rc == -ESRCH || (start && holder->start_time && start != holder->start_time) ||
	       memcmp(&holder->boot, &s->daemon->boot, sizeof(holder->boot)) != 0;
}

bool holder_may_live(const struct set *s)
{
	const struct meta_holder *holder = &s->meta.super.holder;
	int fd = holder->pid ? (int)syscall(SYS_pidfd_open, (pid_t)holder->pid, 0) : -1;
	int rc = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return holder->pid && !holder_is_gone(s, holder, rc);
}

void holder_find(struct set *s)
{
	const struct meta_holder holder = s->meta.super.holder;
	bool is_known = s->holder.pid != 0;
	int rc;

	if (!holder.pid || s->holder.on_end.fd >= 0)
		return;
	rc = holder_watch(s, (pid_t)holder.pid);
	if (holder_is_gone(s, &holder, rc)) {
		holder_report_end(s, (pid_t)holder.pid);
		holder_release(s, false);
		return;
	}
	s->holder.pid = (pid_t)holder.pid;
	if (!is_known)
		s->holder.known_ms = clock_boot_ms();
	if (!rc)
		LOG_NOTICE("set %s: process %d still maps it", s->conf->name, (int)holder.pid);
	else if (!is_known)
		LOG_ERROR("set %s: it is not known whether process %d, which mapped it, lives: %s; "
			  "it counts as alive, and the check is tried again",
			  s->conf->name, (int)holder.pid, strerror(-rc));
}

bool holder_is(const struct set *s, const struct client *client)
{
	uint64_t start_time = s->meta.super.holder.start_time;
	uint64_t image = s->meta.super.holder.image;

	return s->holder.pid == client->pid &&
	       (!start_time || holder_start_time(client->pid) == start_time) &&
	       (!image || !client->image || client->image == image);
}
