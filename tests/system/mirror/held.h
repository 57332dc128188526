/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held.h -- a relay to a TCP port that keeps bytes, as a network may: held connections deliver
 * nothing, and stay after their initiator has gone; new connections pass. It has a thread of its
 * own. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_HELD_H
#define SYSTEM_MIRROR_HELD_H

#include <stddef.h>
#include <stdint.h>

struct held;

struct held *held_new(void);
void held_delete(struct held *h);
/* The port on which the relay listens; it relays to the port of this host given at its start. */
uint16_t held_port(const struct held *h);
void held_lead_to(struct held *h, uint16_t port);

/* From now on the present connections deliver nothing. */
void held_hold(struct held *h);
/* The same as soon as a connection has delivered that many bytes. */
void held_hold_after(struct held *h, uint64_t bytes);
/* Number of bytes that wait on held connections. */
uint64_t held_bytes(struct held *h);
/* Number of held connections that the server has closed. */
unsigned held_cut(struct held *h);
/* Deliver the held bytes, if the server still reads them. */
void held_release(struct held *h);

#endif
