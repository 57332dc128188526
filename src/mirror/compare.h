/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.h -- a comparison of the in-sync members' copies with this one, while flushes go on. An
 * operator's order VERIFY begins it, or the daemon's scrubbing, which gives the same order.
 *
 * The primary asks each member over a bulk connection for digests of blocks that no flush touches
 * meanwhile. A block counts as different after three such comparisons (core/resync.h,
 * RESYNC_VERIFY). Then the copies vote on each block that differs (core/finding.h):
 *
 *	an operator's repair   makes all other copies equal to the primary's,
 *	the automatic one      does that only for copies against which a majority stands,
 *	without repair         these copies are excluded until `rpmirror resume`, and not promoted.
 *
 * A member that is repaired lacks acknowledged bytes, so it leaves the in-sync set, gets those
 * blocks, and returns. The set's lock protects all of it.
 */
#ifndef MIRROR_COMPARE_H
#define MIRROR_COMPARE_H

#include "mirror/wire/packet.h"

struct rpma_digest;
struct rpmirror;
struct resync_piece;

/* Limit of the kept digests of blocks that differ. A further block stays undecided, unless a
 * majority agrees with the primary. */
#define COMPARE_NOTES 256

struct compare_note {
	uint64_t block;
	uint8_t slot;
	uint8_t digest[32]; /* of that member's block */
};

struct compare {
	mirror_mask running; /* members whose copies are being compared */
	mirror_mask whole;   /* those compared to the end */
	mirror_mask differ;  /* those with a difference */
	mirror_mask leaves;  /* those that are to leave the in-sync set */
	mirror_mask lost;    /* those to be repaired that have not left the in-sync set yet, */
	mirror_mask absent;  /* or have not returned to it */
	bool is_open, repair, is_automatic, is_judged, is_answered;
	bool undecided, primary_differs; /* in any block */
	const char *cannot_leave;        /* why a member with a wrong copy cannot leave; NULL */
	unsigned note_count;
	struct compare_note notes[COMPARE_NOTES];
	uint32_t id; /* of the order */
	uint64_t rate, deadline_ms, total;
	struct packet_verified result;
	char why[PACKET_TEXT]; /* why a member could not be compared; "" */
};

void compare_order(struct rpmirror *m, const struct packet *p);
/* In each turn of the set's thread. */
void compare_step(struct rpmirror *m, uint64_t now_ms);
/* For the report. */
void compare_progress(const struct rpmirror *m, struct packet_report *report);

/* Called by repair.h's thread. A piece was read here. It contains flushes that may still be on
 * their way to the member. */
void compare_on_read(struct rpmirror *m, unsigned slot);
/* The blocks in the mask differ from the piece's; theirs[i] is the digest of block i. */
void compare_note(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		  uint64_t differing, const struct rpma_digest *theirs);
/* Nothing is left to compare. */
void compare_on_done(struct rpmirror *m, unsigned slot);
/* The connection, or the member, is lost. */
void compare_on_lost(struct rpmirror *m, unsigned slot, const char *why);
/* The member's medium cannot return that range. The member counts as different, is excluded for
 * that reason, and gets the range. Blocks after the range are not compared this time. */
void compare_on_unreadable(struct rpmirror *m, unsigned slot, const struct mirror_range *range,
			   const char *why);

#endif
