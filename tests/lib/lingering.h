/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lingering.h -- TCP sockets whose last close waits: they linger and have unsent bytes, and their
 * peers read nothing. Tests pass them to other processes, which close them.
 */
#ifndef TESTLIB_LINGERING_H
#define TESTLIB_LINGERING_H

#include <stddef.h>

/* Make at most `max` sockets, whose closes wait for that many seconds. Returns 0 or -errno. */
int lingering_begin(unsigned max, int seconds);
/*
 * Send the bytes on a Unix socket, with a new lingering socket, of which the message has the only
 * copy. Returns the length, or -errno.
 */
int lingering_pass(int to, const void *bytes, size_t len);
/* End all waiting closes. */
void lingering_end(void);

#endif
