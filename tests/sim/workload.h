/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h -- the two applications: their plans, posts, polls and checks. */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim.h"

/* Plan all operations of all ends, and lay out the memory that they need. */
void workload_plan(struct world *w);
/* Run the application of this end once. */
void workload_tick(struct node *n);
/* returns true if all planned operations are posted and complete, and all messages are received */
bool workload_is_done(const struct node *n);
void workload_poll(struct node *n, int max);
void workload_post_ops(struct node *n);
void workload_post_recvs(struct node *n);
/* Note that a message with the right content was received. */
void workload_on_message(struct node *n, const struct ibv_wc *wc);
/* Disconnect, as the user of this end. */
void workload_disconnect(struct node *n);
struct stream_params workload_params(const struct node *n);
/* Check at the end that only sinks and receive buffers of this end's areas have changed. */
void workload_check_areas(struct node *n);
/* Handle an event of the stream. */
void workload_on_event(struct node *n, enum stream_event event, int status);

#endif
