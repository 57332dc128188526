/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forker_main.c -- a process that is target and initiator at the same time, and forks on request.
 * Its argument is the PORT of a target to write to. It prints "port N", to which other processes
 * write, and then answers
 *
 *   stat        writes and failures of its own
 *   fork        the result of a child, which then ends: 0 or a line of forker_child.c
 *   fork keep   the process id of a child that stays until the input ends
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forker.h"
#include "system/lib/proc.h"

#define CHILD_MS 20000

static struct forker forker;
static struct target_watch on_input;
static bool done;

static void go_on(void)
{
	traffic_step(&forker.traffic);
	target_step(&forker.target, 1);
}

/* Wait until the test closes its end of the pipe, without reading from it. */
static void linger(void)
{
	struct pollfd p = {.fd = STDIN_FILENO};

	while (poll(&p, 1, -1) < 0 || !(p.revents & (POLLHUP | POLLERR)))
		;
}

/* While the child makes its checks, the parent continues its traffic. */
static int wait_for_child(int from, pid_t pid)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	int line = -1;

	for (int ms = 0; ms < CHILD_MS && poll(&p, 1, 0) == 0; ms++)
		go_on();
	if (!p.revents) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -2; /* the child hangs */
	}
	if (read(from, &line, sizeof(line)) != sizeof(line))
		line = -1; /* the child has died */
	return line;
}

static void cmd_fork(bool keep)
{
	int result[2], line;
	pid_t pid;

	if (pipe(result))
		return;
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_MS / 1000 + 10); /* ends the child if it outlives its parent */
		line = forker_child(&forker);
		if (write(result[1], &line, sizeof(line)) != sizeof(line))
			_exit(1);
		if (keep)
			linger();
		_exit(0);
	}
	close(result[1]);
	line = wait_for_child(result[0], pid);
	close(result[0]);
	if (!keep && line != -2)
		waitpid(pid, NULL, 0);
	printf("%d\n", keep && !line ? (int)pid : line);
}

static void on_line(struct target_watch *w)
{
	char text[64];
	ssize_t n = read(STDIN_FILENO, text, sizeof(text) - 1);

	if (n <= 0) {
		done = true;
		return;
	}
	text[n] = '\0';
	if (!strncmp(text, "fork", 4))
		cmd_fork(strstr(text, "keep"));
	else
		printf("%lu %lu\n", forker.traffic.writes, forker.traffic.failures);
	fflush(stdout);
}

int main(int argc, char *argv[])
{
	proc_die_with_parent();
	if (argc != 2)
		return 2;
	on_input.ready = on_line;
	if (target_open(&forker.target) || target_add_anon(&forker.target, 1 << 20, 0xff, false) ||
	    target_watch(&forker.target, STDIN_FILENO, &on_input) ||
	    traffic_open(&forker.traffic, argv[1], 0, 1))
		return 1;
	printf("port %s\n", forker.target.port);
	fflush(stdout);
	while (!done)
		go_on();
	traffic_close(&forker.traffic);
	target_close(&forker.target);
	return 0;
}
