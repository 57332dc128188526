/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_file.h -- the capture file of this process, which it may share with others: each block is
 * appended by one write(2), and which connections are in it is told by locks on it.
 *
 * All with the lock of trace.c.
 */
#ifndef IO_TRACE_FILE_H
#define IO_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open it, if that was not tried before. False: there is none (any more), which has been logged. */
bool trace_file_open(const char *name);
bool trace_file_is_open(void);
/* All of the block or nothing; then the file is closed for good. */
void trace_file_append(const void *block, size_t len, uint64_t limit);

/* One process at a time owns a key; false: another one does. Gone with the process at the latest.
 */
bool trace_file_claim(uint64_t key);
void trace_file_unclaim(uint64_t key);

void trace_file_forked(void); /* in the child: the next opening is its own */

#endif
