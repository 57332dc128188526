/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lingering.h -- TCP sockets whose last close() blocks: they linger and have unsent bytes, and
 * their peers read nothing. Tests pass these sockets to other processes, which then close them.
 */
#ifndef TESTLIB_LINGERING_H
#define TESTLIB_LINGERING_H

#include <stddef.h>

/* Create at most `max` sockets whose close() blocks for this many seconds. Returns 0 or -errno. */
int lingering_begin(unsigned max, int seconds);
/*
 * Send the bytes on a Unix socket, together with a new lingering socket. The message holds the only
 * copy of that socket. Returns the length, or -errno.
 */
int lingering_pass(int to, const void *bytes, size_t len);
/* Let every blocked close() return. */
void lingering_end(void);

#endif
