/* SPDX-License-Identifier: BSD-3-Clause */
/* no_write_back.c -- if this library is preloaded into a daemon or program, the process treats the
 * page cache as durable and writes no page back. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	return 0;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return 0;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	return 0;
}

__attribute__((constructor)) static void announce(void)
{
	fprintf(stderr, "without write-back\n");
}
