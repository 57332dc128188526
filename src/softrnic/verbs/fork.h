/* SPDX-License-Identifier: BSD-3-Clause */
/* fork.h -- what fork() does to the device. */
#ifndef ENGINE_FORK_H
#define ENGINE_FORK_H

/* Before the first descriptor or lock that a child must not share. 0 or -errno. */
int fork_hook(void);

#endif
