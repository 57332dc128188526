/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.h -- until when the primary may answer its application from its own mapping.
 *
 * Only freedom from stale reads rests on the lease; the safety of acknowledged data does not. Time
 * is CLOCK_BOOTTIME.
 */
#ifndef MIRROR_CORE_LEASE_H
#define MIRROR_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* Renewals that the primary's daemon sends during one lease: several, because some may be lost. */
#define LEASE_RENEWALS 5

struct lease {
	uint32_t lease_ms;
	uint64_t valid_until; /* 0: no renewal was confirmed */
	bool ended;
};

void lease_init(struct lease *l, uint32_t lease_ms);
/* The renewal that was sent at sent_ms is confirmed. Answers may come in any order. */
void lease_on_confirmed(struct lease *l, uint64_t sent_ms);
/* The primary is fenced or demoted: the lease never holds again. */
void lease_end(struct lease *l);
bool lease_holds(const struct lease *l, uint64_t now_ms);

#endif
