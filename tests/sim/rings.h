/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h -- two ends on one host move from TCP to rings in shared memory (doc/wire.md s6, "Link").
 * The steps are the engine's, with random choices instead of the Unix socket and its memory. A ring
 * is the other end's memory: it changes as soon as it was read.
 */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "node.h"

#define RINGS_VERSION 1

/* The responder may begin at any time in full operation. */
void rings_begin(struct node *n, struct stream_update *u);
void rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
/* Through the Unix socket the responder gets a caller, and the initiator gets the memory. */
void rings_on_packet(struct node *n);
/* From now on these bytes are parsed in place; NULL: none. */
void rings_show(struct node *n, uint8_t *bytes, size_t len);

#endif
