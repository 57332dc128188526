/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.h -- compares the copies of the in-sync members with this copy, while flushes continue.
 * An operator's order VERIFY begins a comparison; the daemon's periodic scrubbing gives the same
 * order.
 *
 * The primary asks each member over a bulk connection for digests of blocks that no flush touches
 * meanwhile. A block counts as different after three such comparisons (core/resync.h,
 * RESYNC_VERIFY). Then the copies vote on each block that differs (core/finding.h):
 *
 *   an operator's repair   makes all other copies equal to the primary's copy
 *   an automatic repair    makes only those copies equal that a majority contradicts
 *   without repair         excludes these copies until `rpmirror resume`, and promotes none of them
 *
 * A member that is repaired lacks acknowledged bytes, so it leaves the in-sync set, gets those
 * blocks, and returns. The set's lock protects all members of struct compare.
 */
#ifndef MIRROR_COMPARE_H
#define MIRROR_COMPARE_H

#include "mirror/wire/packet.h"

struct rpma_digest;
struct rpmirror;
struct resync_piece;

/* Limit of the kept digests of blocks that differ. A block without a kept digest stays undecided,
 * unless a majority agrees with the primary. */
#define COMPARE_NOTES 256

struct compare_note {
	uint64_t block;
	uint8_t slot;
	uint8_t digest[32]; /* digest of that member's block */
};

struct compare {
	mirror_mask running; /* members whose copies are being compared */
	mirror_mask whole;   /* members whose copies were compared to the end */
	mirror_mask differ;  /* members whose copies differ */
	mirror_mask leaves;  /* members that have to leave the in-sync set */
	mirror_mask lost;    /* members to be repaired that have not left the in-sync set yet */
	/* members to be repaired that have left the in-sync set and not returned */
	mirror_mask absent;
	bool is_open, repair, is_automatic, is_judged, is_answered;
	/* true if a majority of the copies supports no value of at least one block, or another
	 * value than the primary's */
	bool undecided, primary_differs;
	/* reason why a member with a wrong copy cannot leave; or NULL */
	const char *cannot_leave;
	unsigned note_count;
	struct compare_note notes[COMPARE_NOTES];
	uint32_t id; /* number of the order */
	uint64_t rate, deadline_ms, total;
	struct packet_verified result;
	char why[PACKET_TEXT]; /* reason why a member could not be compared; or "" */
};

void compare_order(struct rpmirror *m, const struct packet *p);
/* The set's thread calls this in each pass. */
void compare_step(struct rpmirror *m, uint64_t now_ms);
/* Put the progress into the report. */
void compare_progress(const struct rpmirror *m, struct packet_report *report);

/* Let the blocks of the member's outstanding flushes count as changed, so that they are compared
 * again. repair.h's thread calls this after it has read a piece of this copy, because the piece
 * contains these flushes and the member may still lack them. */
void compare_on_read(struct rpmirror *m, unsigned slot);
/* Note that the blocks in the mask differ from the piece's; theirs[i] is the member's digest of
 * block i. */
void compare_note(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		  uint64_t differing, const struct rpma_digest *theirs);
/* End the comparison with the member. Call this when no block is left to compare. */
void compare_on_done(struct rpmirror *m, unsigned slot);
/* End the comparison with the member, and note `why` for the result. Call this when the connection
 * or the member is lost. */
void compare_on_lost(struct rpmirror *m, unsigned slot, const char *why);
/* Handle a range that the member's medium cannot return. The member counts as different, is
 * therefore excluded, and gets the range. Blocks behind the range are not compared this time. */
void compare_on_unreadable(struct rpmirror *m, unsigned slot, const struct mirror_range *range,
			   const char *why);

#endif
