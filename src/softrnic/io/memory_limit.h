/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_limit.h -- limits of this process for optional memory. Above a cgroup's limit the kernel
 * kills a process, so the limit is checked before. */
#ifndef IO_MEMORY_LIMIT_H
#define IO_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Would an eighth of each limit stay free if this process took `len` more bytes? Bytes of files
 * that the kernel can drop count as free. A limit that cannot be read is ignored. The paths are
 * those of proc(5) and of the cgroups' file systems.
 */
bool memory_limit_permits(uint64_t len, const char *proc_cgroup, const char *sys_cgroup);
/* Check RLIMIT_FSIZE, which also limits memory files. Above it the kernel sends a signal. */
bool memory_limit_permits_file(uint64_t len);

#endif
