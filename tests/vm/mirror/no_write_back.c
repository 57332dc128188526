/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_write_back.c -- if this is preloaded into a daemon or program, it treats the page cache as
 * durable and writes nothing back.
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
