/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * origin.h -- the barrier between former connections and later ones, which io/conn_origin.c
 * implements in the product. The initiator's registry and the target's table are the product's
 * code. When a process dies, its registry is lost, and the next process begins with an empty
 * registry.
 */
#ifndef SIM_ORIGIN_H
#define SIM_ORIGIN_H

#include "node.h"
#include "scenario.h"
#include "softrnic/stream/fence.h"
#include "softrnic/stream/former.h"

/* Begin and end a run. All targets of a run are in one process. */
void origin_start(enum sim_mode mode);
void origin_stop(void);
/* Start the initiator's next process. Call this after its process has died. */
void origin_next_process(void);
/* Decide whether this end takes part in the barrier. Call this before its stream is made. */
void origin_prepare(struct node *n, struct stream_config *cfg);
/* Let the barrier count the connection as given up. Called when the user gets the report of the
 * connection's end, or releases the connection. */
void origin_give_up(struct node *n);
/* Handle a connection request at the target. */
void origin_arrive(struct node *n);
void origin_on_established(struct node *n);
/* Remove the connection from the registry or the table. Called after the node's link is closed,
 * when no byte of the link can be placed any more. */
void origin_on_closed(struct node *n);
/* Carry out requests of other connections to this connection, in the thread that holds this
 * connection's lock. */
void origin_do(struct node *n, struct stream_update *u);
/* These are functions of struct stream_host. */
bool origin_fill(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
void origin_fenced(void *owner, const struct ext_origin *origin);
enum stream_fence origin_identify(void *owner, const struct ext_origin *origin);

#endif
