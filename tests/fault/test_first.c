/* SPDX-License-Identifier: BSD-3-Clause */
/* test_first.c -- let each allocation and each descriptor of a process fail in turn. A life is one
 * complete use of librpma (life.h). Each child process runs two lives. In the first life the nth
 * request fails, or all requests from the nth on; the second life must succeed. Each n has its own
 * process, because a process makes some allocations only once. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/life.h"
#include "fault/memory_judge.h"

enum { ALLOCS_MAX = 1000, LIFE_LIMIT_S = 60, ALL_FINE = 0, NONE_FAILED = 3 };

/* Turn off TSan's wait of a second at each process's end: this test starts hundreds of
 * processes. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=0";
}

static _Noreturn void too_long(int sig)
{
	static const char text[] = "hung\n";

	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0);
}

static int live_twice(enum alloc_kind kind, unsigned int nth, bool for_good)
{
	bool complete, failed;

	signal(SIGALRM, too_long);
	alarm(LIFE_LIMIT_S);
	memory_judge_start(kind, nth, for_good);
	complete = life_run(&memory_judge);
	failed = allocs_failed();
	if (!failed)
		return complete ? NONE_FAILED : 1;
	memory_judge_start(kind, 0, false);
	if (life_run(&memory_judge))
		return ALL_FINE;
	fprintf(stderr, "the second life failed\n");
	return 1;
}

/* Run two lives in a child process. Returns the child's exit status. */
static int live_twice_elsewhere(enum alloc_kind kind, unsigned int nth, bool for_good)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(live_twice(kind, nth, for_good));
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("fork");
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool fail_each(enum alloc_kind kind, bool for_good)
{
	for (unsigned int nth = 1; nth < ALLOCS_MAX; nth++) {
		int status = live_twice_elsewhere(kind, nth, for_good);

		if (status == NONE_FAILED)
			return nth > 1;
		if (status != ALL_FINE) {
			fprintf(stderr, "status %d when %s %u%s failed\n", status,
				kind == ALLOC_MEMORY ? "allocation" : "descriptor", nth,
				for_good ? " and all that follow" : "");
			return false;
		}
	}
	return false;
}

int main(void)
{
	bool fine;

	setenv("RPMA_PROVIDER", "softrnic", 1);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	life_setup();
	fine = fail_each(ALLOC_MEMORY, false) && fail_each(ALLOC_MEMORY, true) &&
	       fail_each(ALLOC_DESCRIPTOR, false) && fail_each(ALLOC_DESCRIPTOR, true);
	life_teardown();
	return !fine;
}
