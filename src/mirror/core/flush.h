/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h -- which flushes are under way, which of them each member has, and when a flush is
 * acknowledged.
 *
 * Flushes have numbers from 1 on, in the order of their snapshots. A member gets every flush after
 * its first one, in order, over one connection. So one number is enough to describe which flushes a
 * member has. The local write-backs may end in any order.
 *
 * This file keeps numbers only. resync.h decides which blocks a resync may copy while flushes are
 * under way. The caller's lock protects all of it.
 */
#ifndef MIRROR_CORE_FLUSH_H
#define MIRROR_CORE_FLUSH_H

#include "mirror/core/types.h"

#define FLUSH_MAX 256 /* largest number of flushes under way; a power of two */

struct flush_core {
	uint64_t begun;   /* number of the newest flush */
	uint64_t retired; /* all up to here are acknowledged for good */
	uint64_t local;   /* all up to here are certainly durable in the local file, */
	uint64_t ended;   /* and up to here the local write-backs have ended */
	struct flush_member {
		uint64_t from; /* the first flush that is sent to the member; 0: none */
		uint64_t done; /* all up to this one are durable at the member */
		bool owes;     /* the member still lacks earlier flushes */
		/* flushes placed at the member that no flush operation covers yet; placed_to 0:
		 * none */
		uint64_t placed_from, placed_to;
	} members[MIRROR_MEMBERS_MAX];
	/* Indexed by number % FLUSH_MAX. The flush is certainly durable when all flushes up to
	 * this value have ended. 0: the flush's own write-back has not ended. */
	uint64_t certain_at[FLUSH_MAX];
};

void flush_init(struct flush_core *f);

/*
 * The member gets every flush from the next one on. owes: the member is in the in-sync set, so each
 * earlier flush that is not acknowledged waits until the member gets it in another way
 * (flush_member_paid()).
 */
void flush_member_begin(struct flush_core *f, unsigned slot, bool owes);
void flush_member_paid(struct flush_core *f, unsigned slot);
/* The member gets no further flush, and no flush waits for it. */
void flush_member_end(struct flush_core *f, unsigned slot);
/* The members that get the next flush. */
mirror_mask flush_members(const struct flush_core *f);

/* The number of a new flush; 0 if FLUSH_MAX flushes are under way. */
uint64_t flush_begin(struct flush_core *f);
/*
 * The local write-back has ended. A failed one counts as well, because the local copy then leaves
 * the set. shares_errors: the system reports a failure of simultaneous write-backs to only one of
 * them, as with fdatasync() of one open file. So the flush is certainly durable only after all
 * write-backs that may have begun before have ended.
 */
void flush_on_local(struct flush_core *f, uint64_t seq, bool shares_errors);
/*
 * A flush in parts posts one flush operation after several parts, and parts of other flushes may
 * lie between them. Since one number describes which flushes a member has, an operation covers
 * everything placed before it, parts of other flushes included.
 */
void flush_on_placed(struct flush_core *f, unsigned slot, struct mirror_range span);
/* Returns the flushes that an operation posted now has to cover (len 0: none), and takes them
 * for covered. */
struct mirror_range flush_cover(struct flush_core *f, unsigned slot);
/* The member has all flushes up to seq. */
void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq);
/* The members of the mask that still lack the flush. A member that joined after the flush does
 * not lack it, because its resync carries the flush; unless the member owes. */
mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have);
/* Is the flush certainly durable in the local file? */
bool flush_local_done(const struct flush_core *f, uint64_t seq);
/* Returns the number up to which every flush is durable in the local file and at the members
 * must_have. */
uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have);
/* The flushes up to seq are acknowledged: free their places for new flushes. */
void flush_retire(struct flush_core *f, uint64_t seq);

#endif
