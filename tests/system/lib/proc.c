/* SPDX-License-Identifier: BSD-3-Clause */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

#define ANSWER_MS 20000
#define END_MS    20000

static char **proc_env_with(const char *const envs[])
{
	size_t n = 0, extra = 0;
	char **all;

	while (environ[n])
		n++;
	while (envs && envs[extra])
		extra++;
	all = calloc(n + extra + 1, sizeof(*all));
	if (!all)
		return NULL;
	/* Put the caller's settings first, because getenv() returns the first setting of a name. */
	if (extra)
		memcpy(all, envs, extra * sizeof(*all));
	memcpy(all + extra, environ, n * sizeof(*all));
	return all;
}

static int proc_spawn(struct proc *p, const char *const argv[], char **env, int child_in,
		      int child_out)
{
	posix_spawn_file_actions_t files;
	int ret;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, child_in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, child_out, STDOUT_FILENO);
	ret = posix_spawn(&p->pid, argv[0], &files, NULL, (char *const *)argv, env);
	posix_spawn_file_actions_destroy(&files);
	return -ret;
}

int proc_start(struct proc *p, const char *const argv[], const char *const envs[])
{
	int to[2], from[2], ret;
	char **env = proc_env_with(envs);

	memset(p, 0, sizeof(*p));
	signal(SIGPIPE, SIG_IGN);
	if (!env || pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return -ENOMEM;
	ret = proc_spawn(p, argv, env, to[0], from[1]);
	free(env);
	close(to[0]);
	close(from[1]);
	p->in = to[1];
	p->out = from[0];
	if (ret) {
		p->pid = 0;
		close(p->in);
		close(p->out);
	}
	return ret;
}

static int proc_ms_left(uint64_t end)
{
	uint64_t now = clock_now_ns();

	return now >= end ? 0 : (int)((end - now) / NSEC_PER_MS) + 1;
}

/* Take the first line from the bytes that have arrived. */
static const char *proc_line_cut(struct proc *p)
{
	char *nl = memchr(p->more, '\n', p->have);
	size_t len;

	if (!nl)
		return NULL;
	len = (size_t)(nl - p->more);
	memcpy(p->line, p->more, len);
	p->line[len] = '\0';
	p->have -= len + 1;
	memmove(p->more, nl + 1, p->have);
	return p->line;
}

const char *proc_line(struct proc *p, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;
	struct pollfd pfd = {.fd = p->out, .events = POLLIN};
	const char *line;

	while (!(line = proc_line_cut(p))) {
		ssize_t n;

		if (p->have == sizeof(p->more) || poll(&pfd, 1, proc_ms_left(end)) <= 0)
			return NULL;
		n = read(p->out, p->more + p->have, sizeof(p->more) - p->have);
		if (n <= 0)
			return NULL;
		p->have += (size_t)n;
	}
	return line;
}

const char *proc_ask(struct proc *p, const char *format, ...)
{
	char command[256];
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(command, sizeof(command) - 1, format, ap);
	va_end(ap);
	command[len++] = '\n';
	if (write(p->in, command, (size_t)len) != len)
		return NULL;
	return proc_line(p, ANSWER_MS);
}

void proc_signal_child(pid_t child, int sig)
{
	siginfo_t info;

	if (child <= 0 || kill(child, sig) || sig != SIGSTOP)
		return;
	/* Some threads of the child can still run for a short time, so wait. */
	while (waitid(P_PID, (id_t)child, &info, WSTOPPED | WEXITED | WNOWAIT) && errno == EINTR)
		;
}

void proc_signal(struct proc *p, int sig)
{
	proc_signal_child(p->pid, sig);
}

int proc_wait(struct proc *p, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;
	int status = 0;

	if (p->pid <= 0)
		return -ECHILD;
	while (waitpid(p->pid, &status, WNOHANG) != p->pid) {
		if (clock_now_ns() >= end)
			return -ETIMEDOUT;
		usleep(1000);
	}
	p->pid = 0;
	if (p->in >= 0)
		close(p->in);
	close(p->out);
	return status;
}

void proc_kill(struct proc *p)
{
	proc_signal(p, SIGKILL);
	proc_wait(p, END_MS);
}

int proc_finish(struct proc *p)
{
	int status;

	if (p->pid <= 0)
		return -ECHILD;
	close(p->in);
	p->in = -1;
	status = proc_wait(p, END_MS);
	if (status == -ETIMEDOUT)
		proc_kill(p);
	return status;
}

void proc_die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1)
		_exit(1);
}
