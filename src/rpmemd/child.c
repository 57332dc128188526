/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "rpmemd/connection.h"

/* works even after an upgrade has replaced the program's file */
#define CHILD_PROGRAM "/proc/self/exe"

/* Make the command line of the new process: its task, and the settings of the listener's command
 * line. */
static char **child_argv(const struct options *opts)
{
	char **argv = calloc(opts->set_count + 5, sizeof(*argv));
	unsigned n = 0;
	bool ok = argv != NULL;

	if (!ok)
		return NULL;
	ok = (argv[n++] = strdup("rpmemd")) && (argv[n++] = strdup("--" OPTIONS_WORKER_WORD));
	if (ok && opts->config)
		ok = (argv[n++] = strdup("-c")) && (argv[n++] = strdup(opts->config));
	for (unsigned i = 0; i < opts->set_count && ok; i++)
		if (strcmp(opts->set[i].key, "listen") != 0)
			ok = asprintf(&argv[n++], "--%s=%s", opts->set[i].key,
				      opts->set[i].value) >= 0;
	return ok ? argv : NULL; /* NULL: out of memory; the fork that follows then fails as well */
}

static void child_free_argv(char **argv)
{
	for (unsigned i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/*
 * Runs in the new process. The two descriptors have higher numbers than their targets, so that
 * dup2(2) overwrites neither before it is copied.
 */
static void child_exec(char **argv, int connection, int start)
{
	sigset_t none;

	sigemptyset(&none);
	connection = fcntl(connection, F_DUPFD_CLOEXEC, CONNECTION_START_FD + 1);
	start = fcntl(start, F_DUPFD_CLOEXEC, CONNECTION_START_FD + 1);
	if (connection >= 0 && start >= 0 && dup2(connection, CONNECTION_FD) >= 0 &&
	    dup2(start, CONNECTION_START_FD) >= 0 && !sigprocmask(SIG_SETMASK, &none, NULL))
		execv(CHILD_PROGRAM, argv);
	_exit(127);
}

/*
 * Send the keys through a socket: other processes could read keys in the arguments or in the
 * environment.
 */
static int child_fork(struct child *child, char **argv, int connection,
		      const struct direct_start *start)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (send(pair[0], start, sizeof(*start), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*start))
		child->pid = fork();
	else
		child->pid = -1;
	if (!child->pid)
		child_exec(argv, connection, pair[1]);
	close(pair[0]);
	close(pair[1]);
	return child->pid > 0 ? 0 : -EAGAIN;
}

int children_start(struct children *c, const struct options *opts, int connection, const char *addr,
		   const struct direct_start *start)
{
	struct child *child = calloc(1, sizeof(*child));
	char **argv = child_argv(opts);
	int rc = child && argv ? child_fork(child, argv, connection, start) : -ENOMEM;

	child_free_argv(argv);
	if (rc) {
		free(child);
		return rc;
	}
	snprintf(child->addr, sizeof(child->addr), "%s", addr);
	child->next = c->first;
	c->first = child;
	return 0;
}

unsigned children_count(const struct children *c, const char *addr)
{
	unsigned n = 0;

	for (const struct child *child = c->first; child; child = child->next)
		n += !child->is_killed && (!addr || !strcmp(addr, child->addr));
	return n;
}

/* The signal cannot hit another process, because a process keeps its number until it is reaped. */
void child_kill(struct child *child, int sig)
{
	kill(child->pid, sig);
	child->is_killed |= sig == SIGKILL;
}

void children_reap(struct children *c)
{
	struct child **at = &c->first;

	while (*at) {
		struct child *child = *at;
		int status;

		if (waitpid(child->pid, &status, WNOHANG) != child->pid) {
			at = &child->next;
			continue;
		}
		if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			LOG_ERROR("process %d, which served %s, was ended by signal %d",
				  (int)child->pid, child->addr, WTERMSIG(status));
		else
			LOG_DEBUG("process %d, which served %s, has ended", (int)child->pid,
				  child->addr);
		*at = child->next;
		free(child);
	}
}
