/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * candidate.h -- when a member may be promoted: the primary's alive key has not changed for a
 * lease.
 *
 * Clocks differ in speed by less than 5 %. The primary stops 0.9 leases after it *sent* a renewal
 * (lease.h). A candidate waits one lease after it has *read* that renewal. The promotion's swap
 * compares the alive key as well, so that a later renewal makes it fail. Time is CLOCK_BOOTTIME.
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
	uint64_t since_ms; /* time from which this counter is certainly in the register */
};

void candidate_init(struct candidate *c, uint32_t lease_ms);
/* Times at which a read was sent and its answer received. */
struct candidate_read {
	uint64_t sent_ms, done_ms;
};
/* A linearizable read has returned this key. Returns true if the member may be promoted now; the
 * promotion's swap has to compare the key. A slow read never shortens the wait: a new key counts
 * from the time of the read's answer, an unchanged key up to the time at which the read was
 * sent. */
bool candidate_on_alive(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, struct candidate_read read);
/*
 * Another read, whose answer may be out of date, has returned this key. That suffices for the
 * beginning of the lease: the register had the key when it answered the read. candidate_on_alive()
 * finds later renewals; it alone decides that the lease is over.
 */
void candidate_on_sight(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, uint64_t done_ms);
/* The register has no alive key: the primary has ended, or there was no primary. Returns true. */
bool candidate_on_cleared(struct candidate *c);
/* The earliest time at which candidate_on_alive() can be true; UINT64_MAX if no key was read. */
uint64_t candidate_due(const struct candidate *c);

#endif
