/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

int process_take_signals(const int *signals, unsigned count)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	for (unsigned i = 0; i < count; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void process_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
