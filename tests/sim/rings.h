/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h -- two ends on one host move from TCP to rings in shared memory (doc/wire.md s6, "Link").
 * The steps are the engine's steps, but random choices replace the Unix socket and the memory that
 * the socket passes. A hostile peer can write to a ring at any time, so the simulation changes
 * bytes immediately after they were read.
 */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "node.h"

#define RINGS_VERSION 1

/* Begin the move in some of the calls, if this end is a responder that can move. Called at any time
 * in full operation. */
void rings_begin(struct node *n, struct stream_update *u);
void rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
/* Handle a packet of the Unix socket: the responder accepts the initiator's request, and the
 * initiator gets the memory. */
void rings_on_packet(struct node *n);
/* Note that from now on these bytes are parsed in place; NULL: no bytes are. */
void rings_show(struct node *n, uint8_t *bytes, size_t len);

#endif
