/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_write_back.c -- preloaded, it makes a daemon or a program treat the content of the page cache
 * as durable.
 */
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
