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
/* Addresses and ports, as they are on the wire. */
void trace_ends(struct flow *f, const struct link_addr *us, const struct link_addr *peer);
/* A key that both ends of a connection compute alike. */
uint64_t trace_key(const struct flow *f, enum flow_side initiator);

/*
 * trace_file.c: the capture file of this process, which it may share with others. One write(2)
 * appends each block, and locks on the file show its connections. All functions are called with the
 * lock of trace.c.
 */
/* Open the file at the first call. Returns false if there is none (any more), which has been
 * logged. */
bool trace_file_open(const char *name);
bool trace_file_is_open(void);
/* Append the whole block or nothing; after a failure the file is closed for good. */
void trace_file_append(const void *block, size_t len, uint64_t limit);
/* Own the key, which one process at a time can. Returns false if another process owns it. The key
 * is released at the process's end at the latest. */
bool trace_file_claim(uint64_t key);
void trace_file_unclaim(uint64_t key);
void trace_file_forked(void); /* in a forked child, which opens the file itself */

#endif
