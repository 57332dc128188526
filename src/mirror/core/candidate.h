/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * candidate.h -- when a member may be promoted: the primary's alive key has not changed for a
 * lease.
 *
 * Clocks differ in speed by less than 5 %: the primary stops 0.9 leases after a renewal was *sent*
 * (lease.h), a candidate waits one lease from when it has *seen* the renewal. The promotion's swap
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
	uint64_t since_ms; /* when it was known that this counter is there */
};

void candidate_init(struct candidate *c, uint32_t lease_ms);
/* When a read was sent, and when its answer was there. */
struct candidate_read {
	uint64_t sent_ms, done_ms;
};
/* A linearizable read has returned this key. True: it may be promoted now, if the promotion
 * compares the key. A slow read says that the key is there when it is done, and that it still is
 * when it is sent: the lease is what lies between. */
bool candidate_on_alive(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, struct candidate_read read);
/*
 * Another read has returned this key, perhaps as it was some time ago: it was there when that read
 * was done, which is all that the beginning of the lease needs. What was renewed since is found by
 * candidate_on_alive(), which alone says that the lease is over.
 */
void candidate_on_sight(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, uint64_t done_ms);
/* There is no key: the primary has ended, or there was none. Always true. */
bool candidate_on_cleared(struct candidate *c);
/* When candidate_on_alive() can be true at the earliest; UINT64_MAX: nothing was seen. */
uint64_t candidate_due(const struct candidate *c);

#endif
