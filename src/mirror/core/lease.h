/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.h -- until when the primary's application may be answered from its own mapping.
 *
 * Freedom from stale reads rests on it; acknowledged data never does. Time is CLOCK_BOOTTIME.
 */
#ifndef MIRROR_CORE_LEASE_H
#define MIRROR_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease {
	uint32_t lease_ms;
	uint64_t valid_until; /* 0: it never was confirmed */
	uint64_t sent;        /* of the last renewal; 0: none */
	bool ended;
};

void lease_init(struct lease *l, uint32_t lease_ms);
/* A renewal is sent at now; the next one is due a fifth of the lease later. */
void lease_on_sent(struct lease *l, uint64_t now_ms);
/* The renewal that was sent at sent_ms is confirmed. Answers may come in any order. */
void lease_on_confirmed(struct lease *l, uint64_t sent_ms);
/* Fenced, or demoted: it never holds again. */
void lease_end(struct lease *l);
bool lease_holds(const struct lease *l, uint64_t now_ms);
/* When to send the next renewal. */
uint64_t lease_due(const struct lease *l);

#endif
