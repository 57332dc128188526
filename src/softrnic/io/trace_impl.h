/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_impl.h -- what the trace*.c files share and no other file uses. */
#ifndef IO_TRACE_IMPL_H
#define IO_TRACE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/trace/flow.h"

/* trace_ends.c: which connection it is. */
/* Addresses and ports, as they are on the wire. */
void trace_ends(struct flow *f, const struct link_addr *us, const struct link_addr *peer);
/* The same at both ends of a connection. */
uint64_t trace_key(const struct flow *f, enum flow_side initiator);

/*
 * trace_file.c: the capture file of this process, which it may share with others. Each block is
 * appended by one write(2), and locks on the file show which connections are in it. All with the
 * lock of trace.c.
 */
/* Open it, if that was not tried before. False: there is none (any more), which has been logged. */
bool trace_file_open(const char *name);
bool trace_file_is_open(void);
/* All of the block or nothing; then the file is closed for good. */
void trace_file_append(const void *block, size_t len, uint64_t limit);
/* One process at a time owns a key; false: another one
 * does. Gone with the process at the latest. */
bool trace_file_claim(uint64_t key);
void trace_file_unclaim(uint64_t key);
void trace_file_forked(void); /* in the child: the next opening is its own */

#endif
