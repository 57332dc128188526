/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lingering.h -- TCP sockets whose last close waits: they linger, something of them is unsent, and
 * their peers read nothing. They are passed to other processes, which close them.
 */
#ifndef TESTLIB_LINGERING_H
#define TESTLIB_LINGERING_H

#include <stddef.h>

/* So many at most; their closes wait for so long. 0 or -errno. */
int lingering_begin(unsigned max, int seconds);
/* Send the bytes on a Unix socket, with a new one of these: the message's copy is the only one. The
 * length, or -errno. */
int lingering_pass(int to, const void *bytes, size_t len);
/* All closes that wait end. */
void lingering_end(void);

#endif
