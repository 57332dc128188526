/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_self.h -- the link of a queue pair that is its own peer: what is sent is what is received.
 * It has no descriptor. The source is called from inside a send or a receive, and the connection,
 * whose lock is held then, comes back to it when it leaves.
 */
#ifndef IO_LINK_SELF_H
#define IO_LINK_SELF_H

struct eng_source;
struct link;

/* NULL: no memory. */
struct link *link_self_new(struct eng_source *src);

#endif
