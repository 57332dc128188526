/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h -- keeps track of the flushes that are not acknowledged yet: which flushes each member
 * has, and when a flush is acknowledged.
 *
 * Flushes have numbers from 1 on, in the order of their snapshots. A member gets every flush after
 * its first one, in order, over one connection. So a single number describes which flushes a
 * member has. The local write-backs may end in any order.
 *
 * This file keeps only numbers. resync.h decides which blocks a resync may copy while flushes are
 * outstanding. The caller's lock protects the whole structure.
 */
#ifndef MIRROR_CORE_FLUSH_H
#define MIRROR_CORE_FLUSH_H

#include "mirror/core/types.h"

#define FLUSH_MAX 256 /* largest number of outstanding flushes; a power of two */

struct flush_core {
	uint64_t begun;   /* number of the newest flush */
	uint64_t retired; /* all flushes up to this number are acknowledged for good */
	/* all flushes up to this number are certainly durable in the local file */
	uint64_t local;
	uint64_t ended; /* the local write-backs of all flushes up to this number have ended */
	struct flush_member {
		/* number of the first flush that is sent to the member; 0: no flush is sent */
		uint64_t from;
		uint64_t done; /* all flushes up to this number are durable at the member */
		bool owes;     /* the member still lacks earlier flushes */
		/* numbers of the flushes whose bytes were placed at the member, and that no flush
		 * operation covers yet; placed_to 0: none */
		uint64_t placed_from, placed_to;
	} members[MIRROR_MEMBERS_MAX];
	/* Indexed by number % FLUSH_MAX. The flush is certainly durable after all flushes up to
	 * this value have ended. 0: the flush's own write-back has not ended. */
	uint64_t certain_at[FLUSH_MAX];
};

void flush_init(struct flush_core *f);

/*
 * From the next flush on, the member gets every flush. owes: the member is in the in-sync set, so
 * each earlier flush that is not acknowledged waits until the member gets that flush in another
 * way (flush_member_paid()).
 */
void flush_member_begin(struct flush_core *f, unsigned slot, bool owes);
void flush_member_paid(struct flush_core *f, unsigned slot);
/* Send no further flush to the member, and let no flush wait for it. */
void flush_member_end(struct flush_core *f, unsigned slot);
/* Returns the members that get the next flush. */
mirror_mask flush_members(const struct flush_core *f);

/* Returns the number of a new flush, or 0 if FLUSH_MAX flushes are outstanding. */
uint64_t flush_begin(struct flush_core *f);
/*
 * Report the end of a local write-back. A failed write-back counts as well, because the local copy
 * then leaves the set. shares_errors: the system reports a failure of simultaneous write-backs to
 * only one of them, as with fdatasync() of one open file. So the flush is certainly durable only
 * after the end of all write-backs that may have begun before this write-back ended.
 */
void flush_on_local(struct flush_core *f, uint64_t seq, bool shares_errors);
/*
 * Record that bytes of the flushes in `span` were placed at the member. A flush in parts posts one
 * flush operation after several parts, and parts of other flushes may lie between them. Because one
 * number describes which flushes a member has, an operation covers all bytes that were placed
 * before the operation, including parts of other flushes.
 */
void flush_on_placed(struct flush_core *f, unsigned slot, struct mirror_range span);
/* Returns the flushes that an operation posted now has to cover (len 0: none), and marks them as
 * covered. */
struct mirror_range flush_cover(struct flush_core *f, unsigned slot);
/* Record that the member has all flushes up to seq. */
void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq);
/* Returns the members of the mask that still lack the flush. A member that joined after the flush
 * does not lack it, because the member's resync carries the flush, unless the member owes
 * flushes. */
mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have);
/* Returns true if the flush is certainly durable in the local file. */
bool flush_local_done(const struct flush_core *f, uint64_t seq);
/* Returns the number up to which every flush is durable in the local file and at the members in
 * must_have. */
uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have);
/* Free the slots of the flushes up to seq, which are acknowledged. */
void flush_retire(struct flush_core *f, uint64_t seq);

#endif
