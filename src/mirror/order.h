/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h -- an operator's order to the primary: the daemon's ORDER, answered by ORDERED when it is
 * done, is refused, or has run out of time. In the last case the answer gives the reason, and the
 * work continues.
 *
 * One order at a time. An order that was answered while its work continues gives way to the next
 * one. All under the set's lock.
 */
#ifndef MIRROR_ORDER_H
#define MIRROR_ORDER_H

#include "mirror/wire/packet.h"

struct rpmirror;

struct order {
	bool is_open, is_answered;
	uint32_t id; /* of the packet */
	struct packet_order_request what;
	uint64_t deadline_ms;
};

/* The time for an answer to an order given now; UINT64_MAX: no limit. */
uint64_t order_deadline(const struct packet_order_request *what);
void order_begin(struct rpmirror *m, const struct packet *p);
/* Send the answer to an order; verified: the findings of VERIFY, or NULL. */
void order_answer(struct rpmirror *m, uint32_t id, enum packet_status status, const char *text,
		  const struct packet_verified *verified);
/* In each turn of the thread. */
void order_step(struct rpmirror *m, uint64_t now_ms);

#endif
