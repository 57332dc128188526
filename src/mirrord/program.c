/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.c -- programs that the configuration names: each in a process group of its own, with a
 * clean environment and no descriptor of the daemon but its log, and ended when its time has
 * passed. Nothing here waits for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirrord/impl.h"

void program_set_var(struct program_vars *vars, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(vars->text[vars->count++], PROGRAM_VAR, fmt, ap);
	va_end(ap);
}

void program_prepare(struct program *p, struct set *s, struct program_vars *vars)
{
	p->daemon = s->daemon;
	p->owner = s;
	vars->count = 0;
	program_set_var(vars, "RPMIRROR_SET=%s", s->conf->name);
	program_set_var(vars, "RPMIRROR_MEMBER=%s", s->conf->member);
}

/* Its output goes where the daemon's log goes. */
static int program_set_files(posix_spawn_file_actions_t *actions)
{
	int rc = posix_spawn_file_actions_init(actions);

	if (rc)
		return rc;
	rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(actions, 2, 1);
	if (!rc)
		rc = posix_spawn_file_actions_addclosefrom_np(actions, 3);
	if (rc)
		posix_spawn_file_actions_destroy(actions);
	return rc;
}

/* Signals that the daemon blocks or ignores are as usual there. */
static int program_spawn(struct program *p, const char *path, char *const argv[],
			 char *const envp[])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc = program_set_files(&actions);

	if (rc)
		return rc;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(&p->pid, path, &actions, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static void program_unwatch(struct program *p)
{
	int fd = p->on_end.fd;

	loop_unwatch(p->daemon, &p->on_end);
	if (fd >= 0)
		close(fd);
}

static void program_say(const struct program *p, int status, char *text, size_t size)
{
	if (p->is_late)
		snprintf(text, size, "it did not end within %u ms, and was killed", p->limit_ms);
	else if (WIFEXITED(status))
		snprintf(text, size, "it ended with %d", WEXITSTATUS(status));
	else
		snprintf(text, size, "signal %d ended it", WTERMSIG(status));
}

/* Has it ended? */
static void program_look(struct program *p)
{
	char text[96] = "";
	int status;

	if (!p->pid || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	p->pid = 0;
	program_unwatch(p);
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		p->on_done(p, NULL);
		return;
	}
	program_say(p, status, text, sizeof(text));
	p->on_done(p, text);
}

static void program_on_end(struct watch *w)
{
	program_look(w->owner);
}

int program_start(struct program *p, const char *path, const char *argument,
		  struct program_vars *vars)
{
	char path_var[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *const argv[] = {(char *)path, (char *)argument, NULL};
	char *envp[PROGRAM_VARS + 2] = {path_var};
	int rc, fd;

	for (unsigned i = 0; i < vars->count; i++)
		envp[i + 1] = vars->text[i];
	rc = program_spawn(p, path, argv, envp);
	if (rc) {
		p->pid = 0;
		return -rc;
	}
	p->is_late = false;
	p->deadline_ms = clock_boot_ms() + p->limit_ms;
	/* Without it the end is seen a little later, by program_tick(). */
	fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	p->on_end.fd = -1;
	if (fd >= 0 && loop_watch(p->daemon, &p->on_end, fd, program_on_end, p))
		close(fd);
	return 0;
}

void program_kill(struct program *p)
{
	/* As long as it was not waited for, the group is its own. */
	if (p->pid)
		kill(-p->pid, SIGKILL);
}

void program_tick(struct program *p, uint64_t now_ms)
{
	program_look(p);
	if (!p->pid || p->is_late || now_ms < p->deadline_ms)
		return;
	p->is_late = true;
	program_kill(p);
}

void program_forget(struct program *p)
{
	if (p->pid)
		program_unwatch(p);
	p->pid = 0;
}
