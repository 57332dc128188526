/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_impl.h -- declarations that only the trace*.c files use. */
#ifndef IO_TRACE_IMPL_H
#define IO_TRACE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/trace/flow.h"

/* trace_ends.c: the two ends of a connection. */
/* Fill in addresses and ports as they are on the wire. */
void trace_ends(struct flow *f, const struct link_addr *us, const struct link_addr *peer);
/* Returns the key of a connection. Both ends compute the same key. */
uint64_t trace_key(const struct flow *f, enum flow_side initiator);

/*
 * trace_file.c: the capture file of this process, which it may share with others. Each block is
 * appended by one write(2). Locks on the file show which connections are written. All functions are
 * called with the lock of trace.c.
 */
/* Open the file at the first call. Returns false if the file cannot be opened or was closed after
 * an error; the error has been logged. */
bool trace_file_open(const char *name);
bool trace_file_is_open(void);
/* Append a whole block or nothing. If this fails, the file is closed and not opened again. */
void trace_file_append(const void *block, size_t len, uint64_t limit);
/* Claim the key. Only one process can own a key; returns false if another process owns it. A key is
 * released when the process exits, or earlier. */
bool trace_file_claim(uint64_t key);
void trace_file_unclaim(uint64_t key);
void trace_file_forked(void); /* called in a forked child, which then opens the file itself */

#endif
