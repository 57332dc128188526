/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that is run when this host's member is to take over and nobody waits for it. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "mirrord/impl.h"

#define PROMOTE_PAUSE_MS 30000 /* between two runs: the application needs time to start */

static void promote_reap(struct set *s)
{
	int status;

	if (s->promote_pid && waitpid(s->promote_pid, &status, WNOHANG) == s->promote_pid) {
		LOG_NOTICE("set %s: %s has ended with %d", s->conf->name, s->conf->on_promote,
			   WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		s->promote_pid = 0;
	}
}

/* With the signals that the daemon blocks open. */
static int promote_spawn(struct set *s)
{
	char set_var[MIRROR_SET_MAX + 32], member_var[MIRROR_NAME_MAX + 32];
	char path_var[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *const argv[] = {(char *)s->conf->on_promote, NULL};
	char *const envp[] = {set_var, member_var, path_var, NULL};
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	snprintf(set_var, sizeof(set_var), "RPMIRROR_SET=%s", s->conf->name);
	snprintf(member_var, sizeof(member_var), "RPMIRROR_MEMBER=%s", s->conf->member);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(&s->promote_pid, argv[0], NULL, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	if (rc)
		s->promote_pid = 0;
	return rc;
}

void promote_run(struct set *s)
{
	int rc;

	promote_reap(s);
	if (s->promote_pid)
		return;
	s->promote_ms = clock_boot_ms() + PROMOTE_PAUSE_MS;
	rc = promote_spawn(s);
	if (rc)
		LOG_ERROR("set %s: cannot run %s: %s", s->conf->name, s->conf->on_promote,
			  strerror(rc));
	else
		LOG_NOTICE("set %s: %s runs as process %d", s->conf->name, s->conf->on_promote,
			   (int)s->promote_pid);
}

/* The primary of another host is gone, this copy may serve, and nobody here waits to. */
static bool promote_is_due(const struct set *s, uint64_t now_ms)
{
	const struct mirror_view *view = &s->entry.record.view;

	return s->conf->automatic && s->conf->on_promote[0] && s->is_open && s->has_entry &&
	       copy_state(s) == MIRROR_COPY_INSYNC && s->register_answers && s->may_promote &&
	       !s->is_split && !s->holder.pid && view->primary != MIRROR_NOBODY &&
	       view->primary != s->meta.super.slot &&
	       view->insync & MIRROR_BIT(s->meta.super.slot) && now_ms >= s->promote_ms &&
	       !set_has_waiting(s);
}

void promote_tick(struct set *s, uint64_t now_ms)
{
	promote_reap(s);
	if (promote_is_due(s, now_ms))
		promote_run(s);
}
