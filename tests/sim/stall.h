/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.h -- threads of the simulated target that are stuck in the middle of the product's code. A
 * store to memory waits for a page of a file system, while the rest of the simulation continues.
 *
 * The product's code of a node runs on a stack of its own ("a visit"). The simulation can interrupt
 * a visit in the middle of a store, and continue the visit later in virtual time. Meanwhile the
 * node does nothing else, as if a thread held the connection's lock.
 */
#ifndef SIM_STALL_H
#define SIM_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct node;

typedef void stall_fn(struct node *n, const struct event *e);

/* Call fn on the node's stack. Returns false if the visit gets stuck. */
bool stall_visit(struct node *n, stall_fn *fn, const struct event *e);
/* Continue the stuck visit. Returns false if the visit gets stuck again. */
bool stall_go_on(struct node *n);
/* Interrupt the visit at this place. Call this from inside a visit. */
void stall_here(struct node *n);
/* Returns the node whose visit is in progress, or NULL. */
struct node *stall_visitor(void);
bool stall_is_stuck(const struct node *n);
void stall_fini(void);

#endif
