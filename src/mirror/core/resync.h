/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync.h -- makes one member's copy equal to the primary's, piece by piece.
 *
 * A bitmap has a bit for each block that may differ. The caller owns the bitmap: for a member that
 * left the in-sync set, it is the member's bitmap in the metadata. So a resync can continue after a
 * restart of either side. A bit is cleared when the block is durable at the member (or its digest
 * was equal) and no flush has touched the block since it was read. So the bitmap covers every
 * difference at each moment, except flushes that are on their way to the member.
 *
 *	EQUALISE  in a promotion: the ranges of the records; there are no flushes.
 *	CATCH_UP  flushes are not sent to the member, they set bits. There are passes over the
 *	          bitmap until one leaves more than 70 % of the bits that it found, or none. Then the
 *	          member may join.
 *	JOINING   flushes go to the member as well, and wait for it. Only now the number of bits can
 *	          but shrink, so the end is certain.
 *	VERIFY    of a member that is in sync: digests of blocks that no flush touches meanwhile.
 *
 * A piece is a run of at most 64 to 256 KiB of the file and a mask of its blocks. The caller reads
 * them after resync_next(), sends and flushes them, and reports. The caller holds the set's mutex
 * in each call, and also while a flush changes the copy and is posted. The caller passes the time,
 * in microseconds. No call allocates.
 */
#ifndef MIRROR_CORE_RESYNC_H
#define MIRROR_CORE_RESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/resync_rate.h"
#include "mirror/core/types.h"

#define RESYNC_PIECE_MAX  (256u << 10) /* 64 blocks, the bits of a mask */
#define RESYNC_PIECE_MIN  (64u << 10)
#define RESYNC_COMPARE    (64u << 10) /* largest number of bytes under the first digest */
#define RESYNC_FLIGHT_MAX 256         /* largest number of pieces in flight */
#define RESYNC_BUSY       256
/* number of comparisons in a row that have to find a difference before a block counts as
 * different */
#define RESYNC_VERIFY_TRIES 3

enum resync_mode { RESYNC_EQUALISE, RESYNC_CATCH_UP, RESYNC_JOINING, RESYNC_VERIFY };

struct resync_config {
	uint64_t size;  /* bytes of the file */
	uint64_t *bits; /* resync_words(size) words */
	/* bitmap of the same size: blocks to compare before they are copied; NULL: none */
	uint64_t *unsure;
	uint32_t piece; /* largest size of a piece; a power of two */
	struct resync_limits limits;
	uint64_t calm_us; /* p99 of the flushes without a resync; 0: unknown */
};

enum resync_op {
	RESYNC_OP_COPY, /* write the blocks and flush them, then resync_done() */
	/* compare one digest of all len bytes, then call resync_compared() */
	RESYNC_OP_COMPARE,
	/* compare a digest of each block in the mask, then call resync_compared() */
	RESYNC_OP_COMPARE_BLOCKS
};

struct resync_piece {
	uint32_t slot;   /* the piece's place among those in flight */
	uint32_t number; /* distinguishes the piece from others that had the slot */
	enum resync_op op;
	uint64_t offset;
	uint32_t len;
	uint64_t blocks; /* bit i stands for the block at offset + i * MIRROR_BLOCK */
};

/* Ranges of a flush that waits for pieces; no piece that begins meanwhile touches them. */
struct resync_hold {
	const struct mirror_range *ranges;
	unsigned count;
	struct resync_hold *next;
};

struct resync_flight {
	bool is_used;
	struct resync_piece piece;
	/* blocks of the piece's word that a flush has set since the piece began */
	uint64_t touched;
	uint64_t begun_us;
};

struct resync {
	struct resync_config config;
	struct resync_rate rate;
	enum resync_mode mode;
	uint64_t remaining;  /* number of bits that are set */
	uint64_t words;      /* number of words in `bits` */
	uint64_t cursor;     /* word at which the pass continues */
	uint64_t begun;      /* blocks of the cursor's word that this pass has begun */
	uint64_t pass_found; /* number of bits that were set when the pass began */
	uint32_t pass;
	uint32_t in_flight; /* pieces */
	uint32_t number;    /* number of the last piece */
	uint64_t flight_bytes;
	uint16_t busy[RESYNC_BUSY]; /* pieces in flight by word % RESYNC_BUSY */
	struct resync_hold *holds;
	uint64_t copied, equal, differing; /* number of blocks so far */
	uint64_t failed;                   /* pieces */
	struct resync_flight flight[RESYNC_FLIGHT_MAX];
};

/* Number of 64-bit words in the bitmap of a file of that size. */
size_t resync_words(uint64_t size);

/* Does not change the words of bits and unsure. */
void resync_init(struct resync *rs, enum resync_mode mode, const struct resync_config *config,
		 uint64_t now_us);
/* Set the bits of ranges, in bytes of the file. is_unsure: compare newly set blocks before they
 * are copied. Also call it for flushes that were under way to a member when the member was lost. */
void resync_mark(struct resync *rs, const struct mirror_range *ranges, unsigned count,
		 bool is_unsure);

enum resync_step {
	RESYNC_HAS_PIECE, /* carry out *piece */
	/* for a piece in flight, for a flush that holds blocks, or until *wake_us */
	RESYNC_WAITS,
	RESYNC_MAY_JOIN, /* CATCH_UP: resync_join() when the member can get flushes */
	RESYNC_ENDED     /* no block is left, and no piece is in flight */
};
enum resync_step resync_next(struct resync *rs, uint64_t now_us, struct resync_piece *piece,
			     uint64_t *wake_us);
/*
 * The same for several members at once, so that one read serves all. steps[i] is the step of
 * members[i]; with HAS_PIECE, pieces[i] is its piece. All pieces of a call lie in the same run of
 * RESYNC_PIECE_MAX bytes. Returns false if no member has a piece.
 */
bool resync_next_of(struct resync *const *members, unsigned count, uint64_t now_us,
		    struct resync_piece *pieces, enum resync_step *steps, uint64_t *wake_us);

/* The blocks of a COPY are durable at the member (ok), or were not sent because of a failure;
 * after a failure their bits stay set. */
void resync_done(struct resync *rs, const struct resync_piece *piece, bool ok, uint64_t now_us);
/*
 * The digests were compared. differing: with COMPARE_BLOCKS the blocks that differ, with COMPARE
 * any value but 0 if the digests differ. Returns true if *piece continues in another form, with the
 * same blocks locked; false if the piece has ended.
 */
bool resync_compared(struct resync *rs, struct resync_piece *piece, uint64_t differing,
		     uint64_t now_us);

/* From this moment on flushes are sent to the member, too. They become slower by that, so the
 * rate measures anew. */
void resync_join(struct resync *rs, uint64_t now_us);
/* The member is lost, and all pieces have failed. CATCH_UP continues from here when the member
 * is back. resync_mark() the flushes that it has not confirmed. */
void resync_break(struct resync *rs, uint64_t now_us);

/*
 * Call it for a flush, before the flush changes the copy. It registers the hold, so that no further
 * piece of these blocks begins. False: a piece that is being copied touches the blocks. The caller
 * then waits for the end of a piece and asks again, with the same hold. Ask the resync of every
 * member, even after one returned false, so that the flush waits only for pieces that began
 * earlier.
 */
bool resync_flush_enter(struct resync *rs, struct resync_hold *hold);
/* The flush is posted, or is given up: the hold ends. */
void resync_flush_leave(struct resync *rs, struct resync_hold *hold);
/* The flush changes the copy now. */
void resync_on_flush(struct resync *rs, const struct mirror_range *ranges, unsigned count);
/* The duration of a flush, which controls the rate. */
void resync_on_latency(struct resync *rs, uint64_t took_us, uint64_t now_us);

struct resync_progress {
	enum resync_mode mode;
	uint32_t pass;
	uint64_t remaining, in_flight;     /* bytes */
	uint64_t copied, equal, differing; /* bytes */
	uint64_t rate;                     /* bytes a second */
	uint64_t p99_us, calm_us;
};
void resync_get_progress(const struct resync *rs, struct resync_progress *p);

#endif
