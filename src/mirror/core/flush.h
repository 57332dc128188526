/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h -- which flushes are under way, what each member has of them, and when one is settled.
 *
 * Flushes have numbers from 1 on, in the order of their snapshots. A member gets all flushes from a
 * certain one on, in order, over one connection; so what it has is one number. The local
 * write-backs may end in any order.
 *
 * A flush and a piece of a resync never touch the same bytes at the same time, as they use
 * connections of their own: a flush waits for the piece, and a piece is not begun where a flush is
 * under way. The caller's lock protects all of it.
 */
#ifndef MIRROR_CORE_FLUSH_H
#define MIRROR_CORE_FLUSH_H

#include "mirror/core/types.h"

#define FLUSH_MAX    256 /* under way at a time; a power of two */
#define FLUSH_PIECES 64  /* of resyncs */

struct flush_entry {
	const struct mirror_range *ranges; /* normal; the caller's until it is retired */
	uint32_t count;
	bool local_done;
};

struct flush_core {
	uint64_t begun;   /* the last number */
	uint64_t retired; /* settled, and nobody asks for it any more: its entry is free */
	uint64_t local;   /* all up to here are durable in the local file */
	struct flush_member {
		uint64_t from; /* the first flush that is sent to it; 0: none is */
		uint64_t done; /* durable there up to this one */
	} members[MIRROR_MEMBERS_MAX];
	struct flush_entry entries[FLUSH_MAX]; /* number % FLUSH_MAX */
	struct mirror_range pieces[FLUSH_PIECES];
	uint32_t piece_count;
};

void flush_init(struct flush_core *f);

/* From the next flush on all are sent to the member. */
void flush_member_begin(struct flush_core *f, unsigned slot);
/* None is sent to it any more, and it is not waited for. */
void flush_member_end(struct flush_core *f, unsigned slot);
/* Who gets the next flush. */
mirror_mask flush_members(const struct flush_core *f);

/* -EAGAIN: too many are under way. -EBUSY: a piece of a resync is in the way. Both end by
 * themselves.
 */
int flush_begin(struct flush_core *f, const struct mirror_range *ranges, uint32_t n, uint64_t *seq);
void flush_on_local(struct flush_core *f, uint64_t seq);
/* The member has everything up to seq. */
void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq);
/* Who of the mask still lacks the flush. Members that get flushes only from a later one on do not:
 * their resync carries it. */
mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have);
bool flush_local_done(const struct flush_core *f, uint64_t seq);
/* Everything up to here is durable in the local file (unless local_failed) and at must_have. */
uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have, bool local_failed);
/* The entries up to seq may be used anew. Not before they are settled. */
void flush_retire(struct flush_core *f, uint64_t seq);

/* A resync begins to copy a range. False: a flush that touches it is under way, or too many pieces
 * are. */
bool flush_piece_begin(struct flush_core *f, struct mirror_range piece);
void flush_piece_end(struct flush_core *f, struct mirror_range piece);

#endif
