/* SPDX-License-Identifier: BSD-3-Clause */
/* exit.c -- sends posted requests before the process exits or becomes another program. */
#include <pthread.h>
#include <unistd.h>

#include "softrnic/io/conn.h"
#include "softrnic/softrnic.h"

static pid_t exit_pid; /* the process that this memory belongs to */

static void exit_set_pid(void)
{
	exit_pid = getpid();
}

__attribute__((constructor)) static void exit_hook(void)
{
	exit_set_pid();
	pthread_atfork(NULL, NULL, exit_set_pid);
}

/* In a child of vfork() do nothing: the child shares its parent's memory, and the parent sends its
 * own requests. */
void softrnic_send_posted(void)
{
	if (getpid() == exit_pid)
		conns_send_posted(false);
}

__attribute__((destructor)) static void exit_send_posted(void)
{
	conns_send_posted(true);
}
