/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held.h -- a way to a TCP port that keeps what it was given, as a network may: held connections
 * deliver nothing, and go on to exist when their initiator has gone; new ones pass. In a thread of
 * its own. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_HELD_H
#define SYSTEM_MIRROR_HELD_H

#include <stddef.h>
#include <stdint.h>

struct held;

struct held *held_new(void);
void held_delete(struct held *h);
/* Where it listens, and to which port of this host it leads. */
uint16_t held_port(const struct held *h);
void held_lead_to(struct held *h, uint16_t port);

/* From now on the connections that there are deliver nothing. */
void held_hold(struct held *h);
/* Likewise, as soon as one of them has delivered so many bytes. */
void held_hold_after(struct held *h, uint64_t bytes);
/* Bytes that wait on held connections. */
uint64_t held_bytes(struct held *h);
/* Held connections that the server has closed. */
unsigned held_cut(struct held *h);
/* Deliver what was held, where the server still listens to it. */
void held_release(struct held *h);

#endif
