/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h -- carries out an operator's order to the primary: the daemon's ORDER is answered by
 * ORDERED when the order is carried out, is refused, or has reached its time limit. In the last
 * case the answer gives the reason, and the work continues.
 *
 * There is one order at a time. The next order replaces an order that was answered while its work
 * continues. All calls need the set's lock.
 */
#ifndef MIRROR_ORDER_H
#define MIRROR_ORDER_H

#include "mirror/wire/packet.h"

struct rpmirror;

struct order {
	bool is_open, is_answered;
	uint32_t id; /* id of the ORDER packet */
	struct packet_order_request what;
	uint64_t deadline_ms;
};

/* Returns the deadline for the answer to an order that is given now; UINT64_MAX: no limit. */
uint64_t order_deadline(const struct packet_order_request *what);
void order_begin(struct rpmirror *m, const struct packet *p);
/* Send the answer to an order. verified: the findings of VERIFY, or NULL. */
void order_answer(struct rpmirror *m, uint32_t id, enum packet_status status, const char *text,
		  const struct packet_verified *verified);
/* The set's thread calls this in each pass. */
void order_step(struct rpmirror *m, uint64_t now_ms);

#endif
