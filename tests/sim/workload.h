/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h -- the applications: what they plan, post, poll and check. */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim.h"

#define RECV_ID (1u << 20) /* wr_id of the first receive buffer; operations have smaller ones */

/* Plan all operations of both ends, and lay out their memory for it. */
void workload_plan(struct sim *sim);
/* The application of this end gets the CPU. */
void workload_tick(struct node *n);
bool workload_is_done(const struct node *n); /* all posted and complete, all received */
void workload_poll(struct node *n, int max);
void workload_post_ops(struct node *n);
void workload_post_recvs(struct node *n);
/* The user disconnects. */
void workload_leave(struct node *n);
struct cm_params workload_params(const struct node *n);
/* At the end: nothing but sinks and receives changed in our own areas. */
void workload_check_areas(struct node *n);
/* An event of the stream. */
void workload_on_event(struct node *n, enum cm_stream_event event, int status);

#endif
