/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "die.h"

/* Time limit for all other work: to connect, to warm up, to sort. The measurement's time is
 * added. */
#define ENDS_LIMIT_S 30

static void ends_enter_netns(const char *name)
{
	char path[128];
	int fd;

	if (!name)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die_errno(path);
	close(fd);
}

static void ends_enter_cpu(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die_errno("stay on one CPU");
}

void ends_enter(const struct bench_case *c, bool target)
{
	ends_enter_netns(target ? c->tgt_ns : c->ini_ns);
	ends_enter_cpu(target ? c->tgt_cpu : c->ini_cpu);
	alarm(c->ms / 1000 + ENDS_LIMIT_S);
}

void ends_start(struct ends *e, const struct bench_case *c,
		void (*target)(const struct bench_case *c, int fd, void *arg), void *arg)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die_errno("socketpair");
	e->target = child_fork();
	if (!e->target) {
		close(fds[0]);
		ends_enter(c, true);
		target(c, fds[1], arg);
		_exit(EXIT_SUCCESS);
	}
	close(fds[1]);
	e->fd = fds[0];
	ends_enter(c, false);
}

/* Exit with the target's status, because the channel to it is closed. */
static void ends_exit_like(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFEXITED(status))
		exit(WEXITSTATUS(status)); /* the target has printed the reason */
	die("the target was ended by signal %d", WTERMSIG(status));
}

void ends_finish(struct ends *e)
{
	int status;

	close(e->fd);
	if (waitpid(e->target, &status, 0) != e->target)
		die_errno("wait for the target");
	ends_exit_like(status);
}

void ends_put(int fd, const void *data, size_t len)
{
	if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		die_errno("send to the other end");
}

void ends_get(int fd, void *data, size_t len)
{
	ssize_t got = recv(fd, data, len, MSG_WAITALL);
	int status;

	if (got == (ssize_t)len)
		return;
	if (waitpid(-1, &status, 0) > 0)
		ends_exit_like(status);
	die("the other end is gone");
}

void ends_wait_for_end(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
}
