/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h -- which flushes are under way, what each member has of them, and when one is
 * acknowledged.
 *
 * Flushes have numbers from 1 on, in the order of their snapshots. A member gets all flushes from a
 * certain one on, in order, over one connection; so one number describes what it has. The local
 * write-backs may end in any order.
 *
 * Only numbers are kept here. resync.h has what a resync may copy while flushes are under way. The
 * caller's lock protects all of it.
 */
#ifndef MIRROR_CORE_FLUSH_H
#define MIRROR_CORE_FLUSH_H

#include "mirror/core/types.h"

#define FLUSH_MAX 256 /* under way at a time; a power of two */

struct flush_core {
	uint64_t begun;   /* the last number */
	uint64_t retired; /* acknowledged up to here, whatever happens later */
	uint64_t local;   /* all up to here are certainly durable in the local file, */
	uint64_t ended;   /* and up to here the local write-backs have ended */
	struct flush_member {
		uint64_t from; /* the first flush that is sent to it; 0: none */
		uint64_t done; /* durable there up to this one */
		bool owes;     /* it still lacks earlier flushes */
		/* placed there, and no flush operation covers it yet; to 0: nothing */
		uint64_t placed_from, placed_to;
	} members[MIRROR_MEMBERS_MAX];
	/* By number % FLUSH_MAX: the flush is certainly durable when all up to that number have
	 * ended; 0: its write-back has not ended. */
	uint64_t certain_at[FLUSH_MAX];
};

void flush_init(struct flush_core *f);

/*
 * From the next flush on all are sent to the member. owes: it is in the in-sync set, so the earlier
 * flushes that are not acknowledged wait until it gets them by other means (flush_member_paid()).
 */
void flush_member_begin(struct flush_core *f, unsigned slot, bool owes);
void flush_member_paid(struct flush_core *f, unsigned slot);
/* The member gets no further flush, and no flush waits for it. */
void flush_member_end(struct flush_core *f, unsigned slot);
/* The members that get the next flush. */
mirror_mask flush_members(const struct flush_core *f);

/* The number of a new flush; 0: too many are under way. */
uint64_t flush_begin(struct flush_core *f);
/*
 * The local write-back has ended. A failed one counts, too, as the local copy leaves the set.
 * shares_errors: the system reports a failure of simultaneous write-backs to only one of them, as
 * with fdatasync() of one open file. So the flush is certainly durable only after all write-backs
 * that may have begun before have ended.
 */
void flush_on_local(struct flush_core *f, uint64_t seq, bool shares_errors);
/*
 * A flush in parts has one flush operation after several of them, and parts of other flushes may
 * lie between. One number describes what a member has, so an operation covers all that was placed
 * before it, of whatever flush.
 */
void flush_on_placed(struct flush_core *f, unsigned slot, struct mirror_range span);
/* The flushes that an operation posted now has to cover, len 0: none. From then on they count as
 * covered. */
struct mirror_range flush_cover(struct flush_core *f, unsigned slot);
/* The member has everything up to seq. */
void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq);
/* The members of the mask that still lack the flush. A member that gets only later ones does not
 * lack it, unless it owes: its resync carries the flush. */
mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have);
/* For certain. */
bool flush_local_done(const struct flush_core *f, uint64_t seq);
/* Every flush up to here is durable in the local file and at must_have. */
uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have);
/* The numbers up to seq, which is acknowledged, are free for others. */
void flush_retire(struct flush_core *f, uint64_t seq);

#endif
