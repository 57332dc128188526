/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.h -- decides how long the primary may answer its application from its own mapping.
 *
 * The lease only prevents stale reads; the safety of acknowledged data does not depend on it. Time
 * is CLOCK_BOOTTIME.
 */
#ifndef MIRROR_CORE_LEASE_H
#define MIRROR_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* Number of renewals that the primary's daemon sends during one lease: several, because some may
 * be lost. */
#define LEASE_RENEWALS 5

struct lease {
	uint32_t lease_ms;
	uint64_t valid_until; /* end of the lease; 0: no renewal was confirmed yet */
	bool ended;
};

void lease_init(struct lease *l, uint32_t lease_ms);
/* Handle the confirmation of the renewal that was sent at sent_ms. Confirmations may come in any
 * order. */
void lease_on_confirmed(struct lease *l, uint64_t sent_ms);
/* End the lease, because the primary is fenced or demoted: after this call the lease never holds
 * again. */
void lease_end(struct lease *l);
bool lease_holds(const struct lease *l, uint64_t now_ms);

#endif
