/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "die.h"

pid_t child_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent has exited already */
		_exit(EXIT_FAILURE);
	return 0;
}
