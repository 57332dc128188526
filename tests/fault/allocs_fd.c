/* SPDX-License-Identifier: BSD-3-Clause */
/* allocs_fd.c -- requests for descriptors and threads that fail on demand. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fault/allocs.h"

#pragma GCC visibility push(default)
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __real_eventfd(unsigned int value, int flags);
int __wrap_eventfd(unsigned int value, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
#pragma GCC visibility pop

#define CALLER __builtin_return_address(0)

static bool allocs_none_left(const void *caller)
{
	bool fails = alloc_must_fail(ALLOC_DESCRIPTOR, caller);

	if (fails)
		errno = EMFILE;
	return fails;
}

int __wrap_socket(int domain, int type, int protocol)
{
	return allocs_none_left(CALLER) ? -1 : __real_socket(domain, type, protocol);
}

/* Like the kernel, check for EAGAIN before the failure with EMFILE. */
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int got = __real_accept4(fd, addr, len, flags);

	if (got < 0 || !allocs_none_left(CALLER))
		return got;
	close(got);
	errno = EMFILE;
	return -1;
}

int __wrap_eventfd(unsigned int value, int flags)
{
	return allocs_none_left(CALLER) ? -1 : __real_eventfd(value, flags);
}

int __wrap_epoll_create1(int flags)
{
	return allocs_none_left(CALLER) ? -1 : __real_epoll_create1(flags);
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return allocs_none_left(CALLER) ? -1 : __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return allocs_none_left(CALLER) ? NULL : __real_fopen(path, mode);
}

int fault_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			 void *arg)
{
	return allocs_none_left(CALLER) ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}
