/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.c -- runs the programs that the configuration names. Each program runs in a separate
 * process group, with a clean environment, and with no descriptor of the daemon except its log. A
 * program that reaches its time limit is killed.
 *
 * The daemon waits neither for a program nor for the file system of the program's file: the daemon
 * forks, and the child looks up the file. posix_spawn() would stop the daemon's loop during the
 * look-up, and so the renewal of the alive key. If the child cannot execute the program, it writes
 * the reason to a pipe; otherwise the pipe closes without a message.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirrord/programs.h"

/* a killed program has exited after this time, unless its file system hangs */
#define PROGRAM_KILL_MS  1000
#define PROGRAM_CAUSE_FD 3
#define PROGRAM_SIGSET   8 /* size of the kernel's signal set in bytes */

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

/* In the child, restore the signals that the daemon blocks or ignores. */
static void program_child_signals(void)
{
	static const unsigned char none[PROGRAM_SIGSET], usual[64];

	for (int sig = 1; sig < NSIG; sig++)
		syscall(SYS_rt_sigaction, sig, usual, NULL, PROGRAM_SIGSET);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, PROGRAM_SIGSET);
}

/* The program's output is written to the daemon's log. */
static void program_child_files(int cause_fd)
{
	long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);

	syscall(SYS_dup3, null, STDIN_FILENO, 0);
	syscall(SYS_dup3, STDERR_FILENO, STDOUT_FILENO, 0);
	if (cause_fd == PROGRAM_CAUSE_FD)
		syscall(SYS_fcntl, cause_fd, F_SETFD, FD_CLOEXEC);
	else
		syscall(SYS_dup3, cause_fd, PROGRAM_CAUSE_FD, O_CLOEXEC);
	syscall(SYS_close_range, PROGRAM_CAUSE_FD + 1, ~0U, 0);
}

/*
 * Runs in the child and does not return. The parent has threads, and no handler of
 * pthread_atfork() was called, so only system calls are safe.
 */
static void program_child(const struct program *p, const char *path, char *const argv[],
			  char *const envp[], int cause_fd)
{
	int cause;

	syscall(SYS_setpgid, 0, 0);
	program_child_signals();
	program_child_files(cause_fd);
	if (!p->is_probe)
		syscall(SYS_execve, path, argv, envp);
	else if (!syscall(SYS_faccessat, AT_FDCWD, path, X_OK))
		syscall(SYS_exit_group, 0);
	cause = errno;
	syscall(SYS_write, PROGRAM_CAUSE_FD, &cause, sizeof(cause));
	syscall(SYS_exit_group, 127);
}

static int program_fork(struct program *p, const char *path, char *const argv[], char *const envp[])
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	p->pid = _Fork();
	if (!p->pid)
		program_child(p, path, argv, envp, fds[1]);
	close(fds[1]);
	if (p->pid < 0) {
		int rc = -errno;

		p->pid = 0;
		close(fds[0]);
		return rc;
	}
	/* The parent sets the process group, too, so that the group exists before a signal is sent
	 * to it. */
	setpgid(p->pid, p->pid);
	p->cause_fd = fds[0];
	return 0;
}

static void program_unwatch(struct program *p)
{
	int fd = p->on_end.fd;

	loop_unwatch(p->daemon, &p->on_end);
	if (fd >= 0)
		close(fd);
	close(p->cause_fd);
}

static void program_say(const struct program *p, int status, int cause, char *text, size_t size)
{
	if (cause)
		snprintf(text, size, "it cannot be run: %s", strerror(cause));
	else if (p->is_late)
		snprintf(text, size, "it did not end within %u ms, and was killed", p->limit_ms);
	else if (WIFEXITED(status))
		snprintf(text, size, "it ended with %d", WEXITSTATUS(status));
	else
		snprintf(text, size, "signal %d ended it", WTERMSIG(status));
}

/* Check whether the program has exited, and if so, handle its exit. */
static void program_look(struct program *p)
{
	char text[96] = "";
	int status, cause = 0;

	if (p->stuck && waitpid(p->stuck, NULL, WNOHANG) == p->stuck)
		p->stuck = 0;
	if (!p->pid || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	p->pid = 0;
	if (read(p->cause_fd, &cause, sizeof(cause)) != sizeof(cause))
		cause = 0;
	program_unwatch(p);
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		p->on_done(p, NULL);
		return;
	}
	program_say(p, status, cause, text, sizeof(text));
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
	rc = program_fork(p, path, argv, envp);
	if (rc)
		return rc;
	p->is_late = false;
	p->deadline_ms = clock_boot_ms() + p->limit_ms;
	/* If no pidfd is available, program_tick() notices the end a little later. */
	fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	p->on_end.fd = -1;
	if (fd >= 0 && loop_watch(p->daemon, &p->on_end, fd, program_on_end, p))
		close(fd);
	return 0;
}

void program_kill(struct program *p)
{
	/* Until waitpid() has returned the process, the numbers of the process and of its group are
	 * not reused. */
	if (p->pid)
		kill(-p->pid, SIGKILL);
}

/* Stop waiting for a process that hangs in the kernel, possibly for ever. */
static void program_give_up(struct program *p)
{
	char text[96];

	program_unwatch(p);
	p->stuck = p->pid;
	p->pid = 0;
	snprintf(text, sizeof(text), "it did not end within %u ms, and cannot be killed",
		 p->limit_ms);
	p->on_done(p, text);
}

void program_tick(struct program *p, uint64_t now_ms)
{
	program_look(p);
	if (!p->pid || now_ms < p->deadline_ms)
		return;
	if (p->is_late && now_ms - p->deadline_ms >= PROGRAM_KILL_MS) {
		program_give_up(p);
	} else if (!p->is_late) {
		p->is_late = true;
		program_kill(p);
	}
}

bool program_may_start(const struct program *p, const char *last, const char *path)
{
	return !p->pid && !(p->stuck && !strcmp(last, path));
}

void program_forget(struct program *p)
{
	if (p->pid)
		program_unwatch(p);
	p->pid = 0;
}
