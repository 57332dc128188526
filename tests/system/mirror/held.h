/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held.h -- a relay to a TCP port that can keep bytes, like a network. Held connections deliver no
 * bytes, and stay open after their initiator has closed them. New connections work. The relay runs
 * in its own thread. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_HELD_H
#define SYSTEM_MIRROR_HELD_H

#include <stddef.h>
#include <stdint.h>

struct held;

struct held *held_new(void);
void held_delete(struct held *h);
/* Returns the port on which the relay listens. held_lead_to() sets the port of this host to which
 * it relays. */
uint16_t held_port(const struct held *h);
void held_lead_to(struct held *h, uint16_t port);

/* Let the present connections deliver no bytes from now on. */
void held_hold(struct held *h);
/* Let each connection deliver this many bytes, and then no more. */
void held_hold_after(struct held *h, uint64_t bytes);
/* Returns how many bytes are kept on held connections. */
uint64_t held_bytes(struct held *h);
/* Returns how many held connections the server has closed. */
unsigned held_cut(struct held *h);
/* Deliver the kept bytes to servers that still read. */
void held_release(struct held *h);

#endif
