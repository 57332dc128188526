/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_self.h -- the link of a queue pair that is its own peer: it receives the bytes that it
 * sends. It has no descriptor. A send or a receive calls the event source directly. The
 * connection's lock is held then, so the connection handles the event when the lock is released.
 */
#ifndef IO_LINK_SELF_H
#define IO_LINK_SELF_H

struct eng_source;
struct link;

/* Returns NULL if out of memory. */
struct link *link_self_new(struct eng_source *src);

#endif
