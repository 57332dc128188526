/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * candidate.h -- decides when a member may be promoted: after the primary's alive key has not
 * changed for the duration of a lease.
 *
 * Clocks differ in speed by less than 5 %. The primary stops 0.9 leases after it *sent* a renewal
 * (lease.h). A candidate waits one lease after it has *read* that renewal. The promotion's swap
 * compares the alive key as well, so that the swap fails after a later renewal. Time is
 * CLOCK_BOOTTIME.
 */
#ifndef MIRROR_CORE_CANDIDATE_H
#define MIRROR_CORE_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "mirror/core/types.h"

struct candidate {
	uint32_t lease_ms;
	bool has_seen;
	struct mirror_epoch epoch;
	uint64_t counter, revision;
	uint64_t since_ms; /* time at which this counter was certainly in the register */
};

void candidate_init(struct candidate *c, uint32_t lease_ms);
/* The times at which a read was sent and its answer was received. */
struct candidate_read {
	uint64_t sent_ms, done_ms;
};
/* Handle a linearizable read that has returned this key. Returns true if the member may be promoted
 * now; the promotion's swap must compare the key. A slow read never shortens the wait: a new key
 * counts from the time of the read's answer. An unchanged key counts as unchanged only up to the
 * time at which the read was sent. */
bool candidate_on_alive(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, struct candidate_read read);
/*
 * Handle a read that was not linearizable, and has returned this key; its answer may be out of
 * date. This read is sufficient to begin the lease, because the register had the key when it
 * answered the read. candidate_on_alive() finds later renewals, and only candidate_on_alive()
 * decides that the lease is over.
 */
void candidate_on_sight(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, uint64_t done_ms);
/* Handle a read that found no alive key: the primary has ended, or there was no primary. Returns
 * true. */
bool candidate_on_cleared(struct candidate *c);
/* Returns the earliest time at which candidate_on_alive() can return true; UINT64_MAX if no key
 * was read. */
uint64_t candidate_due(const struct candidate *c);

#endif
