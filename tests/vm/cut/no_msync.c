/* SPDX-License-Identifier: BSD-3-Clause */
/* no_msync.c -- if this library is preloaded into a target, the target acknowledges flushes without
 * any write-back. */
#include <stdio.h>
#include <sys/mman.h>

__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	return 0;
}

__attribute__((constructor)) static void announce(void)
{
	fprintf(stderr, "without write-back\n");
}
