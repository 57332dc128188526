/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h -- the applications: their plans, posts, polls and checks. */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim.h"

/* Plan all operations of all ends, and lay out the memory that they need. */
void workload_plan(struct world *w);
/* Give the application of this end the CPU. */
void workload_tick(struct node *n);
bool workload_is_done(const struct node *n); /* all posted and complete, all received */
void workload_poll(struct node *n, int max);
void workload_post_ops(struct node *n);
void workload_post_recvs(struct node *n);
/* A message was received with the right content. */
void workload_on_message(struct node *n, const struct ibv_wc *wc);
/* The user disconnects. */
void workload_disconnect(struct node *n);
struct stream_params workload_params(const struct node *n);
/* At the end: only sinks and receives changed in the areas of this end. */
void workload_check_areas(struct node *n);
/* Handle an event of the stream. */
void workload_on_event(struct node *n, enum stream_event event, int status);

#endif
