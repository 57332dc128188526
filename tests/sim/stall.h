/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.h -- threads of the simulated target that are stuck in the middle of the product's code. A
 * store to memory waits for a page of a file system, while everything else goes on.
 *
 * A node's visits run on a stack of their own. A visit can be left inside a store, and continued
 * later in virtual time. Until then the node does nothing else, as a thread holds the lock of the
 * connection.
 */
#ifndef SIM_STALL_H
#define SIM_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct node;

typedef void stall_fn(struct node *n, const struct event *e);

/* Call fn on the stack of the node. Returns false if the visit is stuck. */
bool stall_visit(struct node *n, stall_fn *fn, const struct event *e);
/* Continue the stuck visit. Returns false if the visit is stuck again. */
bool stall_go_on(struct node *n);
/* Leave the visit at this point; called from the visit. */
void stall_here(struct node *n);
/* The node whose visit runs on a stack of its own; NULL: no node. */
struct node *stall_visitor(void);
bool stall_is_stuck(const struct node *n);
void stall_fini(void);

#endif
