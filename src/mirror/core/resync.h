/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync.h -- makes one member's copy equal to the primary's, piece by piece.
 *
 * A bitmap has a bit for each block that may differ. The caller owns the bitmap. For a member that
 * left the in-sync set it is the member's bitmap in the metadata, so a resync can continue after a
 * restart of either side. A bit is cleared when the block is durable at the member (or its digest
 * was equal) and no flush has touched the block since the block was read. So at each moment the
 * bitmap covers every difference, except flushes that are in transfer to the member.
 *
 *   EQUALISE  in a promotion: the ranges of the records. There are no flushes.
 *   CATCH_UP  flushes are not sent to the member, they set bits. There are passes over the bitmap
 *             until a pass leaves more than 70 % of the bits that it found, or no bit. Then the
 *             member may join.
 *   JOINING   flushes are sent to the member as well, and wait for it. In this mode the number of
 *             bits can only fall, so the resync certainly ends.
 *   VERIFY    for a member that is in-sync: compares digests of blocks that no flush touches
 *             meanwhile.
 *
 * A piece is a run of the file (its largest size is 64 to 256 KiB) and a mask of its blocks. The
 * caller reads the blocks after resync_next(), sends and flushes them, and reports the result. The
 * caller holds the set's mutex in each call, and also while a flush changes the copy and is posted.
 * The caller passes the time, in microseconds. No call allocates.
 */
#ifndef MIRROR_CORE_RESYNC_H
#define MIRROR_CORE_RESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/resync_rate.h"
#include "mirror/core/types.h"

#define RESYNC_PIECE_MAX  (256u << 10) /* the 64 blocks of a mask */
#define RESYNC_PIECE_MIN  (64u << 10)
#define RESYNC_COMPARE    (64u << 10) /* largest number of bytes under the first digest */
#define RESYNC_FLIGHT_MAX 256         /* largest number of pieces in flight */
#define RESYNC_BUSY       256
/* number of comparisons in a row that have to find a difference before a block counts as
 * different */
#define RESYNC_VERIFY_TRIES 3

enum resync_mode { RESYNC_EQUALISE, RESYNC_CATCH_UP, RESYNC_JOINING, RESYNC_VERIFY };

struct resync_config {
	uint64_t size;  /* size of the file in bytes */
	uint64_t *bits; /* resync_words(size) words */
	/* bitmap of the same size: blocks to compare before they are copied; NULL: none */
	uint64_t *unsure;
	uint32_t piece; /* largest size of a piece; a power of two */
	struct resync_limits limits;
	/* 99th percentile of the flushes' durations without a resync; 0: unknown */
	uint64_t calm_us;
};

enum resync_op {
	RESYNC_OP_COPY, /* write the blocks and flush them, then call resync_done() */
	/* compare one digest of all len bytes, then call resync_compared() */
	RESYNC_OP_COMPARE,
	/* compare a digest of each block in the mask, then call resync_compared() */
	RESYNC_OP_COMPARE_BLOCKS
};

struct resync_piece {
	uint32_t slot;   /* index of the piece among the pieces in flight */
	uint32_t number; /* distinguishes the piece from others with the same index */
	enum resync_op op;
	uint64_t offset;
	uint32_t len;
	uint64_t blocks; /* bit i stands for the block at offset + i * MIRROR_BLOCK */
};

/* The ranges of a flush that waits for pieces: no new piece touches them. */
struct resync_hold {
	const struct mirror_range *ranges;
	unsigned count;
	struct resync_hold *next;
};

struct resync_flight {
	bool is_used;
	struct resync_piece piece;
	/* blocks of the piece's word that a flush has set since the piece began, as a mask */
	uint64_t touched;
	uint64_t begun_us;
};

struct resync {
	struct resync_config config;
	struct resync_rate rate;
	enum resync_mode mode;
	uint64_t remaining; /* number of bits that are set */
	uint64_t words;     /* number of words in `bits` */
	uint64_t cursor;    /* word at which the pass continues */
	/* blocks of the cursor's word with which this pass has already begun a piece, as a mask */
	uint64_t begun;
	uint64_t pass_found; /* number of bits that were set when the pass began */
	uint32_t pass;
	uint32_t in_flight; /* number of pieces in flight */
	uint32_t number;    /* number of the last piece */
	uint64_t flight_bytes;
	uint16_t busy[RESYNC_BUSY]; /* number of pieces in flight, indexed by word % RESYNC_BUSY */
	struct resync_hold *holds;
	uint64_t copied, equal, differing; /* number of blocks so far */
	uint64_t failed;                   /* number of pieces that failed */
	struct resync_flight flight[RESYNC_FLIGHT_MAX];
};

/* Returns the number of 64-bit words in the bitmap of a file of that size. */
size_t resync_words(uint64_t size);

/* Initialize *rs. The words of bits and unsure are not changed. */
void resync_init(struct resync *rs, enum resync_mode mode, const struct resync_config *config,
		 uint64_t now_us);
/* Set the bits of ranges, in bytes of the file. is_unsure: compare newly set blocks before they
 * are copied. Also call this for flushes that were outstanding to a member when the member was
 * lost. */
void resync_mark(struct resync *rs, const struct mirror_range *ranges, unsigned count,
		 bool is_unsure);

enum resync_step {
	RESYNC_HAS_PIECE, /* carry out *piece */
	/* wait for a piece in flight, for a flush that holds blocks, or until *wake_us */
	RESYNC_WAITS,
	RESYNC_MAY_JOIN, /* CATCH_UP: call resync_join() when the member can get flushes */
	RESYNC_ENDED     /* no block is left, and no piece is in flight */
};
enum resync_step resync_next(struct resync *rs, uint64_t now_us, struct resync_piece *piece,
			     uint64_t *wake_us);
/*
 * Return the next steps of several members in one call, so that one read serves all members.
 * steps[i] is the step of members[i]; with RESYNC_HAS_PIECE, pieces[i] is the member's piece. All
 * pieces of a call lie in the same run of RESYNC_PIECE_MAX bytes. Returns false if no member has a
 * piece.
 */
bool resync_next_of(struct resync *const *members, unsigned count, uint64_t now_us,
		    struct resync_piece *pieces, enum resync_step *steps, uint64_t *wake_us);

/* Report the end of a COPY. ok: the blocks are durable at the member. Otherwise they were not sent
 * because of a failure, and their bits stay set. */
void resync_done(struct resync *rs, const struct resync_piece *piece, bool ok, uint64_t now_us);
/*
 * Report the result of a comparison. differing: with COMPARE_BLOCKS the blocks that differ, with
 * COMPARE any value but 0 if the digests differ. Returns true if *piece continues in another form,
 * with the same blocks locked; false if the piece has ended.
 */
bool resync_compared(struct resync *rs, struct resync_piece *piece, uint64_t differing,
		     uint64_t now_us);

/* Report that from now on flushes are sent to the member, too. This makes flushes slower, so the
 * rate control measures again. */
void resync_join(struct resync *rs, uint64_t now_us);
/* Report that the member is lost, and that all pieces have failed. CATCH_UP continues from here
 * when the member is back. Call resync_mark() for the flushes that the member has not confirmed. */
void resync_break(struct resync *rs, uint64_t now_us);

/*
 * Call this for a flush, before the flush changes the copy. The call registers the hold, so that no
 * further piece of these blocks begins. Returns false if a piece that is being copied touches the
 * blocks. The caller then waits until a piece has finished, and asks again, with the same hold. Ask
 * the resync of every member, even after one returned false, so that the flush waits only for
 * pieces that began earlier.
 */
bool resync_flush_enter(struct resync *rs, struct resync_hold *hold);
/* Call this when the flush is posted, or is given up: ends the hold. */
void resync_flush_leave(struct resync *rs, struct resync_hold *hold);
/* Call this at the moment at which the flush changes the copy. */
void resync_on_flush(struct resync *rs, const struct mirror_range *ranges, unsigned count);
/* Report the duration of a flush, which controls the rate. */
void resync_on_latency(struct resync *rs, uint64_t took_us, uint64_t now_us);

struct resync_progress {
	enum resync_mode mode;
	uint32_t pass;
	uint64_t remaining, in_flight;     /* in bytes */
	uint64_t copied, equal, differing; /* in bytes */
	uint64_t rate;                     /* bytes a second */
	uint64_t p99_us, calm_us;
};
void resync_get_progress(const struct resync *rs, struct resync_progress *p);

#endif
