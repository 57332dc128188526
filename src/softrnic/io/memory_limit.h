/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_limit.h -- checks whether the limits of this process permit more memory for an optional
 * purpose. The kernel kills a process that exceeds its cgroup's limit, so the limit is checked
 * before the memory is taken. */
#ifndef IO_MEMORY_LIMIT_H
#define IO_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * If this process took `len` more bytes, would an eighth of each limit stay free? Bytes of files
 * that the kernel can drop count as free. A limit that cannot be read is ignored. The paths are
 * those of proc(5) and of the cgroups' file systems.
 */
bool memory_limit_permits(uint64_t len, const char *proc_cgroup, const char *sys_cgroup);
/* Does RLIMIT_FSIZE permit this length? It also limits memory files, and the kernel sends a signal
 * if a file exceeds it. */
bool memory_limit_permits_file(uint64_t len);

#endif
