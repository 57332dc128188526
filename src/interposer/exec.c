/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c -- a preloaded program becomes another one, or ends without exit(): what it posted is sent
 * before.
 *
 * execve() takes the library's memory and threads away, and closes its descriptors. libc's calls
 * that replace the process are taken here, as libc's own calls of each other do not come by. The
 * child of posix_spawn() is not concerned: its parent goes on. Between fork() or a signal and
 * execve() a program may call little, so these take no memory and look nothing up, once the library
 * is loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softrnic/softrnic.h"

static struct {
	int (*execve)(const char *path, char *const argv[], char *const envp[]);
	int (*execvpe)(const char *file, char *const argv[], char *const envp[]);
	int (*fexecve)(int fd, char *const argv[], char *const envp[]);
	int (*execveat)(int dir, const char *path, char *const argv[], char *const envp[],
			int flags);
} next;

__attribute__((constructor)) static void exec_find(void)
{
	*(void **)&next.execve = dlsym(RTLD_NEXT, "execve");
	*(void **)&next.execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&next.fexecve = dlsym(RTLD_NEXT, "fexecve");
	*(void **)&next.execveat = dlsym(RTLD_NEXT, "execveat");
}

static void exec_prepare(void)
{
	if (!next.execve) /* a constructor of another library comes first */
		exec_find();
	softrnic_send_posted();
}

/* It has failed, so the program goes on. */
static int exec_failed(int ret)
{
	int err = errno;

	softrnic_live_on();
	errno = err;
	return ret;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	exec_prepare();
	return exec_failed(next.execve(path, argv, envp));
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	exec_prepare();
	return exec_failed(next.execvpe(file, argv, envp));
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	exec_prepare();
	return exec_failed(next.fexecve(fd, argv, envp));
}

int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	exec_prepare();
	if (!next.execveat) { /* a libc before 2.34 */
		errno = ENOSYS;
		return -1;
	}
	return exec_failed(next.execveat(dir, path, argv, envp, flags));
}

static size_t exec_count(va_list ap)
{
	size_t n = 1;

	while (va_arg(ap, char *))
		n++;
	return n;
}

/* `n` arguments behind the first one, the last of which is NULL. */
static void exec_list(char **argv, const char *first, size_t n, va_list ap)
{
	argv[0] = (char *)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(ap, char *);
}

/* The list of the caller as an array on the stack: no memory may be taken. */
#define EXEC_LIST(argv, first)                                                                     \
	va_list ap;                                                                                \
	size_t n;                                                                                  \
	va_start(ap, first);                                                                       \
	n = exec_count(ap);                                                                        \
	va_end(ap);                                                                                \
	char *argv[n + 1];                                                                         \
	va_start(ap, first);                                                                       \
	exec_list(argv, first, n, ap)

int execl(const char *path, const char *arg, ...)
{
	EXEC_LIST(argv, arg);
	va_end(ap);
	return execve(path, argv, environ);
}

int execlp(const char *file, const char *arg, ...)
{
	EXEC_LIST(argv, arg);
	va_end(ap);
	return execvpe(file, argv, environ);
}

int execle(const char *path, const char *arg, ...)
{
	char *const *envp;

	EXEC_LIST(argv, arg);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, envp);
}

void _exit(int status)
{
	softrnic_before_exit();
	for (;;)
		syscall(SYS_exit_group, status);
}

void _Exit(int status)
{
	_exit(status);
}
