/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c -- sends posted requests before a preloaded program becomes another program, or terminates
 * without exit().
 *
 * execve() removes the library's memory and threads, and closes its descriptors. Every call of libc
 * that replaces the process is intercepted here, because calls inside libc bypass the interposer.
 * posix_spawn() needs no treatment, because the parent continues. After fork(), or in a signal
 * handler, a program may only call few functions before execve(). So the functions here allocate no
 * memory, and look up symbols only while the library is loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interposer/paths.h"
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

/*
 * End the connections before the call. If the call fails, they cannot be restored. So keep them if
 * the call will certainly fail, because the program does not exist.
 */
static void exec_leave(bool is_there)
{
	/* a constructor of another library may call this before the symbols are looked up */
	if (!next.execve)
		exec_find();
	if (!is_there)
		return;
	softrnic_send_posted();
	paths_leave();
}

static bool exec_has(const char *path)
{
	return !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

/* Is the file in this folder of PATH? The folder's name has `len` characters. */
static bool exec_has_in(const char *folder, size_t len, const char *file)
{
	char path[PATH_MAX];
	size_t rest = strlen(file) + 1;

	if (len + 1 + rest > sizeof(path))
		return false;
	memcpy(path, folder, len);
	path[len] = '/';
	memcpy(path + len + 1, file, rest);
	return exec_has(len ? path : file);
}

static bool exec_finds(const char *file)
{
	const char *at = getenv("PATH");
	size_t len;

	if (strchr(file, '/'))
		return exec_has(file);
	for (; at; at = at[len] ? at + len + 1 : NULL) {
		len = strcspn(at, ":");
		if (exec_has_in(at, len, file))
			return true;
	}
	/* without PATH libc searches a default path, so assume that the file exists */
	return !getenv("PATH");
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	exec_leave(exec_has(path));
	return next.execve(path, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	exec_leave(exec_finds(file));
	return next.execvpe(file, argv, envp);
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	exec_leave(true);
	return next.fexecve(fd, argv, envp);
}

int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	exec_leave(true);
	if (!next.execveat) { /* the libc is older than 2.34 */
		errno = ENOSYS;
		return -1;
	}
	return next.execveat(dir, path, argv, envp, flags);
}

static size_t exec_count(va_list ap)
{
	size_t n = 1;

	while (va_arg(ap, char *))
		n++;
	return n;
}

/* Collect `n` arguments after the first one, and end the array with NULL. */
static void exec_list(char **argv, const char *first, size_t n, va_list ap)
{
	argv[0] = (char *)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(ap, char *);
}

/* Put the arguments in an array on the caller's stack, because no memory may be allocated. */
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
	softrnic_send_posted();
	paths_leave();
	for (;;)
		syscall(SYS_exit_group, status);
}

void _Exit(int status)
{
	_exit(status);
}
