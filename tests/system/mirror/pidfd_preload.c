/* SPDX-License-Identifier: BSD-3-Clause */
/* pidfd_preload.c -- LD_PRELOAD: pidfd_open(2) fails with EMFILE while the file PIDFD_FAIL is
 * there; each failure adds a byte to it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list args;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(args, number);
	for (unsigned i = 0; i < sizeof(a) / sizeof(a[0]); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number != SYS_pidfd_open || !pidfd_fails())
		return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	errno = EMFILE;
	return -1;
}
