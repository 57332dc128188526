/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h -- which flushes are under way, what each member has of them, and when one is settled.
 *
 * Flushes have numbers from 1 on, in the order of their snapshots. A member gets all flushes from a
 * certain one on, in order, over one connection; so what it has is one number. The local
 * write-backs may end in any order.
 *
 * Only numbers are kept here; what a resync may copy while flushes are under way is resync.h's. The
 * caller's lock protects all of it.
 */
#ifndef MIRROR_CORE_FLUSH_H
#define MIRROR_CORE_FLUSH_H

#include "mirror/core/types.h"

#define FLUSH_MAX 256 /* under way at a time; a power of two */

struct flush_core {
	uint64_t begun;   /* the last number */
	uint64_t retired; /* acknowledged up to here, whatever happens later */
	uint64_t local;   /* all up to here are durable in the local file for certain, */
	uint64_t ended;   /* and up to here the local write-backs have ended */
	struct flush_member {
		uint64_t from; /* the first flush that is sent to it; 0: none is */
		uint64_t done; /* durable there up to this one */
		bool owes;     /* it still lacks what came before */
		/* what was placed there and no flush operation covers yet; to 0: nothing */
		uint64_t placed_from, placed_to;
	} members[MIRROR_MEMBERS_MAX];
	/* By number % FLUSH_MAX: certain when all up to that number have ended; 0: it has not. */
	uint64_t certain_at[FLUSH_MAX];
};

void flush_init(struct flush_core *f);

/*
 * From the next flush on all are sent to the member. owes: it is of the in-sync set, so the earlier
 * ones that are not acknowledged wait until it has them by other means (flush_member_paid()).
 */
void flush_member_begin(struct flush_core *f, unsigned slot, bool owes);
void flush_member_paid(struct flush_core *f, unsigned slot);
/* None is sent to it any more, and it is not waited for. */
void flush_member_end(struct flush_core *f, unsigned slot);
/* Who gets the next flush. */
mirror_mask flush_members(const struct flush_core *f);

/* The number of a new flush; 0: too many are under way. */
uint64_t flush_begin(struct flush_core *f);
/*
 * The local write-back has ended; one that failed counts, too, as the local copy leaves the set.
 * shares_errors: of write-backs at the same time the system reports a failure to one of them only,
 * as with fdatasync() of one open file; so the flush is durable for certain only when all that may
 * have begun before have ended.
 */
void flush_on_local(struct flush_core *f, uint64_t seq, bool shares_errors);
/*
 * A flush in parts has one flush operation behind several of them, and parts of other flushes may
 * be among them. As what a member has is one number, an operation covers all that was placed before
 * it, whosever that is.
 */
void flush_on_placed(struct flush_core *f, unsigned slot, struct mirror_range span);
/* What a flush operation that is posted now has to cover, len 0: nothing; then it is covered. */
struct mirror_range flush_cover(struct flush_core *f, unsigned slot);
/* The member has everything up to seq. */
void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq);
/* Who of the mask still lacks the flush. A member that gets only later ones does not, unless it
 * owes: its resync carries the flush. */
mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have);
/* For certain. */
bool flush_local_done(const struct flush_core *f, uint64_t seq);
/* Everything up to here is durable in the local file and at must_have. */
uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have);
/* The numbers up to seq, which is acknowledged, are free for others. */
void flush_retire(struct flush_core *f, uint64_t seq);

#endif
