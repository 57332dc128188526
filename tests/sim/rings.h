/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h -- two ends on one host move from TCP to rings in shared memory (doc/wire.md s6, "Link").
 * The steps are those of the engine, but random choices replace the Unix socket and the memory that
 * it passes. The other end may write to a ring at any time, so the simulation changes bytes as soon
 * as they were read.
 */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "node.h"

#define RINGS_VERSION 1

/* Called at any time in full operation: the responder may begin the move. */
void rings_begin(struct node *n, struct stream_update *u);
void rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
/* Handle a packet of the Unix socket: the responder accepts a caller, the initiator gets the
 * memory. */
void rings_on_packet(struct node *n);
/* Note that these bytes are parsed in place from now on; NULL: no bytes. */
void rings_show(struct node *n, uint8_t *bytes, size_t len);

#endif
