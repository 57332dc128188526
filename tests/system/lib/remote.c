/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define ARGS_MAX 16

int remote_start(struct remote *r, const char *program, const char *const regions[],
		 const char *const envs[])
{
	const char *argv[ARGS_MAX] = {program};
	const char *line;
	int ret;

	for (int i = 0; regions[i] && i < ARGS_MAX - 2; i++)
		argv[i + 1] = regions[i];
	ret = proc_start(&r->proc, argv, envs);
	if (ret)
		return ret;
	line = proc_line(&r->proc, 20000);
	if (line && sscanf(line, "port %7s", r->port) == 1)
		return 0;
	proc_kill(&r->proc);
	return -EPROTO;
}

int remote_conns(struct remote *r)
{
	const char *line = proc_ask(&r->proc, "count");
	int n;

	return line && sscanf(line, "%d", &n) == 1 ? n : -1;
}

int remote_wait_conns(struct remote *r, int n, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;

	while (remote_conns(r) != n) {
		if (clock_now_ns() >= end)
			return -ETIMEDOUT;
		usleep(5000);
	}
	return 0;
}

int writer_start(struct proc *p, const char *program, const char *port, const char *share,
		 const char *const envs[])
{
	return proc_start(p, (const char *[]){program, port, share, NULL}, envs);
}

int writer_ask(struct proc *p, struct writer_stat *stat)
{
	const char *line = proc_ask(p, "stat");

	if (!line || sscanf(line, "%lu %lu %lu %lu", &stat->writes, &stat->flushes, &stat->failures,
			    &stat->connects) != 4)
		return -EPROTO;
	return 0;
}
