/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIRROR_REPAIR_IMPL_H
#define MIRROR_REPAIR_IMPL_H

#include "mirror/repair.h"

#define REPAIR_PIECE  (64u << 10)
#define REPAIR_BLOCKS (REPAIR_PIECE / MIRROR_BLOCK)
#define REPAIR_WORKS  64 /* largest number of a member's outstanding pieces, and of buffers */
#define REPAIR_QUEUE  (REPAIR_WORKS * (REPAIR_BLOCKS + 1))
/* number of bytes that are written before a flush operation, while no flush of the set waits for
 * them */
#define REPAIR_FLUSH (4u << 20)
/* number of ranges of a flush that are noted; more ranges are made coarser */
#define REPAIR_SENT_RANGES 64
/* time limit for an answer of a daemon, which may have to write a lot */
#define REPAIR_ANSWER_MS 30000
/* pause before the daemon is asked again whether it has cleared a part */
#define REPAIR_AGAIN_MS 100

/* Values of wr_id. 0 belongs to the connection's proof. */
#define REPAIR_OF_FLUSH(n)  ((const void *)(uintptr_t)((n) << 1 | 1))
#define REPAIR_OF_WORK(i)   ((const void *)(uintptr_t)(((uint64_t)(i) + 1) << 1))
#define REPAIR_IS_FLUSH(id) ((id)&1)
#define REPAIR_NUMBER(id)   ((id) >> 1)
#define REPAIR_DIGEST       RPMA_DIGEST_BLAKE2B

/* The stages from the primary's action to its end. */
enum repair_stage {
	REPAIR_IDLE,
	REPAIR_OPENING,   /* the bulk connection is being made */
	REPAIR_LEARNING,  /* RESYNC by bitmap: ask for the ranges of the member's own records */
	REPAIR_RECORDING, /* EQUALISE: the ranges become records of the member (W9) */
	/* EQUALISE: the ranges do not fit at this host, and the daemon records this */
	REPAIR_NOTING,
	REPAIR_BEGINNING, /* RESYNC: the member records `syncing` (W4) */
	/* RESYNC: the member overwrites with zeros the blocks that it could not read or write */
	REPAIR_CLEARING,
	REPAIR_RUNNING,
	REPAIR_ENDING,  /* RESYNC: the member ends `syncing` (W5) */
	REPAIR_SETTLING /* flushes that are not acknowledged become records of the member (W9) */
};

struct repair_work {
	bool is_used, has_ours;
	bool waits; /* the piece waits to be read and posted */
	struct resync_piece piece;
	unsigned buffer;
	unsigned pending; /* operations without completion */
	/* COPY: number of the flush operation after the piece's writes; 0: not posted yet */
	uint64_t flush;
	uint64_t differing; /* blocks that differ, by the digests so far */
	struct rpma_digest ours[REPAIR_BLOCKS], theirs[REPAIR_BLOCKS];
};

struct repair_member {
	enum repair_stage stage;
	bool is_equalise;
	/*
	 * RESYNC by the bitmap. If false, everything is sent: by digests, or because the member is
	 * empty
	 */
	bool by_bitmap;
	bool is_whole;   /* EQUALISE: compare the whole copy */
	bool is_compare; /* the work belongs to a comparison (compare.h) */
	bool covers;     /* the bitmap contains every block that the member lacks */
	struct link bulk;
	/* a former connection, which was given up while the thread was posting to it */
	struct link left;
	unsigned generation; /* number of the connection */
	uint64_t *bits, *unsure;
	/* blocks that still have to be compared; NULL before the first comparison */
	uint64_t *compare_bits;
	struct resync rs;
	struct ranges_union ranges; /* ranges that have to be recorded */
	uint32_t range_sent;
	/* ranges that the member's medium may not be able to return before they are cleared */
	struct ranges_union bad;
	uint64_t clear_from;  /* the ranges before this offset are cleared */
	uint64_t again_ms;    /* CLEARING: time to ask again, or 0 */
	uint32_t question;    /* id of the request without an answer, or 0 */
	uint64_t deadline_ms; /* time limit for the answer */
	/* numbers of the flush operations that were posted, and that have ended */
	uint64_t flush, flush_done;
	uint64_t unflushed, first, end; /* range of bytes written since the last flush operation */
	struct repair_work works[REPAIR_WORKS];
};

/* A flush that a member may lack. */
struct repair_sent {
	uint64_t begun_us;
	uint32_t count;
	struct mirror_range ranges[REPAIR_SENT_RANGES];
};

struct repair {
	struct rpmirror *m;
	pthread_t thread;
	bool has_thread, stopping;
	bool is_posting; /* the thread is posting, without the set's lock */
	int wake_fd;
	unsigned active; /* number of members that are not idle */
	struct link_place place;
	/* registered memory: a buffer for each piece in flight of a pass over the file */
	uint8_t *buffers;
	struct rpma_mr_local *mr;
	uint8_t used[REPAIR_WORKS]; /* number of pieces that use each buffer */
	bool filled[REPAIR_WORKS];  /* only for the thread: the buffer has its piece's bytes */
	struct repair_member *members[MIRROR_MEMBERS_MAX];
	struct repair_sent sent[FLUSH_MAX]; /* indexed by number % FLUSH_MAX */
	struct resync_latencies latencies;  /* durations of flushes while no resync is running */
	uint64_t calm_us;
};

uint64_t repair_now_us(void);
/* Returns the member and its bitmap, which are made when first needed; NULL: out of memory. */
struct repair_member *repair_member_get(struct rpmirror *m, unsigned slot);
void repair_set_stage(struct rpmirror *m, struct repair_member *rm, enum repair_stage stage);

/* repair.c: begins the work. */
/* Make the member's memory and the thread. Returns NULL if either is missing. */
struct repair_member *repair_make_ready(struct rpmirror *m, unsigned slot);
void repair_connect(struct rpmirror *m, unsigned slot);
void repair_clear_bits(const struct rpmirror *m, struct repair_member *rm);
void repair_init_resync(struct rpmirror *m, struct repair_member *rm, enum resync_mode mode);

/* repair_end.c: finishes work that has no pieces left. Flushes that a resync has carried and that
 * are not acknowledged may have no intent at the member, so the call first records them at the
 * member. */
void repair_settle(struct rpmirror *m, unsigned slot);
/* Handle a failure of the work with the member. */
void repair_failed(struct rpmirror *m, unsigned slot, const char *why);
/* Handle the end of the member's connection as a failure; the pieces in flight on it may give the
 * reason. */
void repair_on_end(struct repair *r, unsigned slot, const char *why);
/* Handle a range of which the member cannot make a digest: the range counts as different, and is
 * copied. */
void repair_unreadable(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		       const char *why);
/* Note a piece that the member could not write: the member has to clear it before it is sent
 * again. */
void repair_note_bad(struct rpmirror *m, unsigned slot, const struct resync_piece *piece);
/* Report that the member is equal. */
void repair_finish(struct rpmirror *m, unsigned slot);

/* repair_thread.c: starts the thread. Returns false if that is not possible. */
bool repair_start_thread(struct repair *r);

/* repair_ask.c: asks the daemon of a member before and after the pieces. */
void repair_on_open(struct rpmirror *m, unsigned slot);
void repair_enter(struct rpmirror *m, unsigned slot, enum repair_stage stage);
void repair_ask_next(struct rpmirror *m, unsigned slot);

/* repair_post.c: posts the pieces that wait, and after them flush operations where they are due,
 * or with flush_all for all written bytes. Called with the set's lock, which is released at
 * times. */
void repair_post(struct repair *r, bool flush_all);
/* Close the connection. If the thread is posting to it now, the thread closes it. */
void repair_leave_link(struct repair *r, struct repair_member *rm);

/* repair_pump.c: moves the pieces; called with the set's lock. Returns the length of the part of
 * the buffer that digest i covers: the whole piece, or block i. */
uint32_t repair_digest_part(const struct repair *r, const struct resync_piece *piece, unsigned i,
			    uint64_t *offset);
/* Returns a mask of the parts that need a digest. */
uint64_t repair_digests(const struct resync_piece *piece);
/* Begin as many pieces as permitted. Returns the time at which to try again. */
uint64_t repair_pump_begin(struct repair *r);
/* Compute the digests of the pieces that have to be compared. The lock is released meanwhile. */
void repair_pump_digest(struct repair *r);
/* Handle the completions that have come. Returns false if the member is lost. */
bool repair_pump_collect(struct repair *r, unsigned slot);
/* Give up all pieces of the member, whose connection may still be open. */
void repair_pump_end(struct repair *r, struct repair_member *rm);

#endif
