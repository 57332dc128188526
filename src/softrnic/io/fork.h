/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.h -- what fork() does to this room: its locks are taken before, and in the child its
 * descriptors are closed and its objects belong to another generation.
 */
#ifndef IO_FORK_H
#define IO_FORK_H

void io_atfork_prepare(void);
void io_atfork_parent(void);
void io_atfork_child(void);

#endif
