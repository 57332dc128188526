/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pidfd_preload.c -- if this library is preloaded, it replaces pidfd_open(2):
 *
 *   PIDFD_FAIL=FILE  The call fails with EMFILE while FILE exists, and adds a byte to FILE.
 *   PIDFD_KILL=1     The call kills the first process that it opens, and returns after its end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool pidfd_fails(void)
{
	const char *path = getenv("PIDFD_FAIL");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	bool fails = fd >= 0 && write(fd, "", 1) == 1;

	if (fd >= 0)
		close(fd);
	return fails;
}

/* The process vanishes immediately, because its parent ignores SIGCHLD. */
static void pidfd_kill(pid_t pid)
{
	static bool has_killed;

	if (has_killed || !getenv("PIDFD_KILL"))
		return;
	has_killed = true;
	kill(pid, SIGKILL);
	while (!kill(pid, 0))
		usleep(1000);
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6], result;
	va_list args;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(args, number);
	for (unsigned i = 0; i < sizeof(a) / sizeof(a[0]); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_pidfd_open && pidfd_fails()) {
		errno = EMFILE;
		return -1;
	}
	result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == SYS_pidfd_open && result >= 0)
		pidfd_kill((pid_t)a[0]);
	return result;
}
