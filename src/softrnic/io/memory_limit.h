/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_limit.h -- the limits of this process for memory that it need not take. Beyond a cgroup's
 * limit the kernel kills a process, so it is looked at before.
 */
#ifndef IO_MEMORY_LIMIT_H
#define IO_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Would an eighth of each limit be left if this process took so many bytes? Bytes of files that the
 * kernel can drop count as free. A limit that cannot be read is none. The paths are those of
 * proc(5) and of the cgroups' file systems.
 */
bool memory_limit_permits(uint64_t len, const char *proc_cgroup, const char *sys_cgroup);
/* RLIMIT_FSIZE, which is a limit of memory files as well. Beyond it the kernel sends a signal. */
bool memory_limit_permits_file(uint64_t len);

#endif
