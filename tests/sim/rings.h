/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h -- two ends of one host go over from TCP to rings in shared memory (doc/wire.md s6,
 * "Link"): the same steps as the engine's, with chance in the place of the Unix socket and its
 * memory. What is in a ring is the other end's memory: it changes as soon as it was read.
 */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "node.h"

#define RINGS_VERSION 1

/* The responder may begin at any time in full operation. */
void rings_begin(struct node *n, struct stream_update *u);
void rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
/* By the Unix socket: to the responder whoever connects to it, to the initiator the memory. */
void rings_on_packet(struct node *n);
/* What is parsed in place from now on; NULL: nothing. */
void rings_show(struct node *n, uint8_t *bytes, size_t len);

#endif
