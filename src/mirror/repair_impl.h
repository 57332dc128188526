/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIRROR_REPAIR_IMPL_H
#define MIRROR_REPAIR_IMPL_H

#include "mirror/repair.h"

#define REPAIR_PIECE  (64u << 10)
#define REPAIR_BLOCKS (REPAIR_PIECE / MIRROR_BLOCK)
#define REPAIR_WORKS  64 /* most pieces of a member under way; also the number of buffers */
#define REPAIR_QUEUE  (REPAIR_WORKS * (REPAIR_BLOCKS + 1))
/* bytes written before a flush, while no flush of the set waits for them */
#define REPAIR_FLUSH (4u << 20)
/* ranges of a flush that are noted; if there are more, they are made coarser */
#define REPAIR_SENT_RANGES 64
/* time limit for an answer of a daemon, which may have to write a lot */
#define REPAIR_ANSWER_MS 30000
/* pause before the daemon is asked again whether it has cleared a part */
#define REPAIR_AGAIN_MS 100

/* Values of wr_id; 0 is the connection's proof. */
#define REPAIR_OF_FLUSH(n)  ((const void *)(uintptr_t)((n) << 1 | 1))
#define REPAIR_OF_WORK(i)   ((const void *)(uintptr_t)(((uint64_t)(i) + 1) << 1))
#define REPAIR_IS_FLUSH(id) ((id)&1)
#define REPAIR_NUMBER(id)   ((id) >> 1)
#define REPAIR_DIGEST       RPMA_DIGEST_BLAKE2B

/* The stages from the primary's action to its end. */
enum repair_stage {
	REPAIR_IDLE,
	REPAIR_OPENING,   /* the bulk connection is made */
	REPAIR_LEARNING,  /* RESYNC by bitmap: ask for the ranges of the member's own records */
	REPAIR_RECORDING, /* EQUALISE: the ranges become records of the member (W9) */
	REPAIR_NOTING,    /* EQUALISE: they do not fit here, and the daemon records that */
	REPAIR_BEGINNING, /* RESYNC: `syncing` (W4) */
	REPAIR_CLEARING,  /* RESYNC: blocks that it could not read or write become zeros there */
	REPAIR_RUNNING,
	REPAIR_ENDING,  /* RESYNC: `syncing` ends (W5) */
	REPAIR_SETTLING /* flushes that are not acknowledged become records of the member (W9) */
};

struct repair_work {
	bool is_used, has_ours;
	bool waits; /* to be read and posted */
	struct resync_piece piece;
	unsigned buffer;
	unsigned pending;   /* operations without completion */
	uint64_t flush;     /* COPY: the flush after its writes; 0: not posted yet */
	uint64_t differing; /* blocks that differ, by the digests so far */
	struct rpma_digest ours[REPAIR_BLOCKS], theirs[REPAIR_BLOCKS];
};

struct repair_member {
	enum repair_stage stage;
	bool is_equalise;
	/*
	 * RESYNC: by bitmap. If false, everything is sent: by digests, or because the member is
	 * empty
	 */
	bool by_bitmap;
	bool is_whole;   /* EQUALISE: compare everything */
	bool is_compare; /* the work belongs to a comparison (compare.h) */
	bool covers;     /* the bitmap has everything that the member lacks */
	struct link bulk;
	struct link left;    /* an older connection, given up while it was being posted to */
	unsigned generation; /* number of the connection */
	uint64_t *bits, *unsure;
	/* blocks that are still to be compared; NULL: there never were any */
	uint64_t *compare_bits;
	struct resync rs;
	struct ranges_union ranges; /* ranges to be recorded */
	uint32_t range_sent;
	/* ranges that the member's medium may not return before they are cleared; */
	struct ranges_union bad;
	uint64_t clear_from;            /* those before this offset are cleared */
	uint64_t again_ms;              /* CLEARING: time to ask again, or 0 */
	uint32_t question;              /* id of the question under way, or 0 */
	uint64_t deadline_ms;           /* time limit for its answer */
	uint64_t flush, flush_done;     /* numbers of flushes, by time of post */
	uint64_t unflushed, first, end; /* bytes written after the last flush */
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
	bool is_posting; /* the thread posts, without the set's lock */
	int wake_fd;
	unsigned active; /* members that are not idle */
	struct link_place place;
	uint8_t *buffers; /* registered, one for each work of a pass over the file */
	struct rpma_mr_local *mr;
	uint8_t used[REPAIR_WORKS]; /* number of works that use each buffer */
	bool filled[REPAIR_WORKS];  /* the thread's own: whether a buffer has its piece's bytes */
	struct repair_member *members[MIRROR_MEMBERS_MAX];
	struct repair_sent sent[FLUSH_MAX]; /* by number % FLUSH_MAX */
	struct resync_latencies latencies;  /* times of flushes while no resync is under way */
	uint64_t calm_us;
};

uint64_t repair_now_us(void);
void repair_wake(struct repair *r);
/* The member and its bitmap, made when it is first needed; NULL: no memory. */
struct repair_member *repair_member_get(struct rpmirror *m, unsigned slot);
void repair_set_stage(struct rpmirror *m, struct repair_member *rm, enum repair_stage stage);

/* repair.c: beginnings. */
/* Memory and the thread; NULL: one is missing. */
struct repair_member *repair_make_ready(struct rpmirror *m, unsigned slot);
void repair_connect(struct rpmirror *m, unsigned slot);
void repair_clear_bits(const struct rpmirror *m, struct repair_member *rm);
void repair_init_resync(struct rpmirror *m, struct repair_member *rm, enum resync_mode mode);

/* repair_end.c: a resync has ended. Flushes that it has carried and that are not acknowledged
 * may have no intent at the member, so they are recorded there; then the resync is finished. */
void repair_settle(struct rpmirror *m, unsigned slot);
/* The work with the member has failed. */
void repair_failed(struct rpmirror *m, unsigned slot, const char *why);
/* The member's connection has ended, which is such a failure; the work under way there may give
 * the reason. */
void repair_on_end(struct repair *r, unsigned slot, const char *why);
/* The member can make no digest of that range: it counts as different, and is copied. */
void repair_unreadable(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		       const char *why);
/* The member could not write that piece: it is cleared before it is sent again. */
void repair_note_bad(struct rpmirror *m, unsigned slot, const struct resync_piece *piece);
/* The member is equal. */
void repair_finish(struct rpmirror *m, unsigned slot);

/* repair_thread.c: false: it cannot be started. */
bool repair_start_thread(struct repair *r);

/* repair_ask.c */
void repair_on_open(struct rpmirror *m, unsigned slot);
void repair_enter(struct rpmirror *m, unsigned slot, enum repair_stage stage);
void repair_ask_next(struct rpmirror *m, unsigned slot);

/* repair_post.c: post the works that wait, and flushes after them where they are due, or with
 * flush_all for everything written; locked, with gaps. */
void repair_post(struct repair *r, bool flush_all);
/* Close the connection; if the thread is posting just now, it closes it. */
void repair_leave_link(struct repair *r, struct repair_member *rm);

/* repair_pump.c: pieces; locked. The part of the buffer that digest i covers: the whole piece,
 * or block i. */
uint32_t repair_digest_part(const struct repair *r, const struct resync_piece *piece, unsigned i,
			    uint64_t *offset);
/* The parts that need a digest. */
uint64_t repair_digests(const struct resync_piece *piece);
/* Begin as many pieces as permitted; returns when to try again. */
uint64_t repair_pump_begin(struct repair *r);
/* Compute the digests of pieces to be compared, with the lock released. */
void repair_pump_digest(struct repair *r);
/* Take over what was completed. False: the member is lost. */
bool repair_pump_collect(struct repair *r, unsigned slot);
/* Give up all of the member's pieces; its connection may still be open. */
void repair_pump_end(struct repair *r, struct repair_member *rm);

#endif
