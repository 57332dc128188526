/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.h -- the rules by which a daemon uses a copy: promises, connections, resync, holders;
 * pure.
 *
 * The rules work on a struct meta. The daemon asks before it acts (cuts connections, answers,
 * watches processes). Each question returns a verdict; if a question changes the metadata, the
 * change is durable on return. One thread at a time.
 *
 * Fencing: member_promise() returns MEMBER_CUT_FIRST as long as connections of lower epochs are
 * open. The daemon disconnects and deregisters them, calls member_on_closed() for each connection
 * that can place no more bytes, and asks again. Only then the promise becomes durable (W1) and the
 * daemon answers it.
 */
#ifndef MIRROR_CORE_MEMBER_H
#define MIRROR_CORE_MEMBER_H

#include "mirror/core/meta.h"
#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum member_answer {
	MEMBER_YES,
	/* end data connections of epochs up to verdict.known, then ask again */
	MEMBER_CUT_FIRST,
	MEMBER_NO
};

/* The reason of the answer NO. Messages carry its number. */
enum member_reason {
	MEMBER_OK,
	MEMBER_OTHER_SET,  /* the UUIDs differ */
	MEMBER_OTHER_COPY, /* this copy was replaced, or never belonged to that member */
	MEMBER_OTHER_SIZE,
	MEMBER_EPOCH_OLD,    /* a higher epoch was promised */
	MEMBER_EPOCH_TWIN,   /* another epoch has the same number: the set is split */
	MEMBER_NOT_PROMISED, /* the copy has to promise the epoch first */
	MEMBER_IS_HELD,      /* a living process maps the copy */
	MEMBER_HAS_FAILED,
	MEMBER_IS_SYNCING,
	MEMBER_IS_UNKNOWN, /* metadata are damaged: compare everything */
	MEMBER_NOT_BEGUN,  /* no resync has begun, or another primary has begun it */
	MEMBER_IS_SPLIT,   /* the register lacks an epoch or view that this copy has */
	MEMBER_IO,         /* the metadata cannot be written */
	MEMBER_REASONS
};

struct member_verdict {
	enum member_answer answer;
	enum member_reason reason;
	struct mirror_epoch known; /* the epoch that is the reason */
	char text[256];            /* the reason in words, with its values */
};

/* A short word for each reason, for logs and JSON. */
const char *member_reason_name(enum member_reason reason);

enum member_kind { MEMBER_CONTROL, MEMBER_LANE, MEMBER_BULK, MEMBER_RESTORE };

struct member {
	struct meta *meta;
	struct mirror_uuid boot;     /* identifier of this host's boot */
	struct mirror_epoch fencing; /* the requested epoch that is not promised yet */
	uint32_t lanes, bulks;       /* open connections, all of the promised epoch */
	bool is_split;               /* according to the newest record that was read */
	bool has_failed; /* the copy has failed, even if the metadata could not record the failure */
	struct mirror_range *ranges; /* the ranges that may differ, from the last report */
	uint32_t range_count, range_room;
};

/* A copy's state, in the answer to a promise. */
struct member_report {
	enum mirror_copy copy; /* according to the newest view that this member has seen */
	uint32_t flags;        /* enum meta_flag */
	uint32_t damage;       /* enum meta_damage */
	bool is_held;          /* a living process maps the copy, so no write may reach it yet */
	bool is_uncertain;     /* any byte may differ: compare the whole copy */
	/*
	 * the copy is also uncertain beyond the set's former end, to which no primary of that size
	 * wrote
	 */
	bool is_unknown;
	struct mirror_epoch promised;
	struct mirror_epoch epoch; /* the last epoch whose flushes the copy may hold */
	uint64_t source_id;        /* the source of a resync that has not ended, or 0 */
	struct meta_seen seen;
	/* numbers of hot extents, and of flushes that are not acknowledged */
	uint32_t hot, intents;
	uint32_t range_count; /* number of ranges for member_ranges() */
};

/* Call it after meta_load(). It records a restart of the host: a holder of an earlier boot is
 * gone, and if lanes were in use, intents are lost (META_UNCERTAIN). 0 or -errno. */
int member_init(struct member *m, struct meta *meta, const struct mirror_uuid *boot);
/* Compare the files as they are now, before the first write, with the state in which they were
 * left. A difference shows that the files were copied, restored, edited or swapped; the copy is
 * then `syncing` until it was compared as a whole. The verdict is MEMBER_YES in both cases. */
void member_set_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
/*
 * Record the state of the files when the daemon ends in good order, after the last write into the
 * data.
 */
void member_leave_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
void member_fini(struct member *m);

/* asked: this host has just got the newest view from the register or from the primary. Without
 * it a copy that was in-sync is `unknown`. */
enum mirror_copy member_copy(const struct member *m, bool asked);

/* ---- the register ---- */

/*
 * A record was read from the register, by a read that began after the last call of this function.
 * The verdict is MEMBER_NO with MEMBER_IS_SPLIT if the record is older than one that this member
 * has seen, or if this copy holds flushes of an epoch that the record lacks. Other reasons:
 * MEMBER_OTHER_COPY, MEMBER_OTHER_SET, MEMBER_OTHER_SIZE. Otherwise the copy durably stores the
 * record as the newest one, with history and members. A copy that is in-sync by the record, and
 * whose metadata lack the record's epoch, was restored from a backup: it is `syncing` from then on,
 * until it was compared as a whole.
 */
void member_on_record(struct member *m, const struct mirror_record *rec, uint64_t revision,
		      struct member_verdict *v);
/* The primary of the promised epoch sends its view, which is kept as the newest one. */
void member_on_view(struct member *m, const struct mirror_view *view, struct member_verdict *v);
/* An operator gives up this copy's differing past, so the record counts although it is older.
 * The copy is then `syncing`, outside of every epoch, until it was compared as a whole. */
void member_discard(struct member *m, const struct mirror_record *rec, uint64_t revision,
		    struct member_verdict *v);
/* Is member_discard() permitted? Changes nothing. */
void member_may_discard(const struct member *m, const struct mirror_record *rec,
			struct member_verdict *v);

/* ---- fence ---- */

void member_promise(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);
/* Reads the ring and the hot slots. Call it after a promise, when no more bytes can be placed.
 * Returns 0 or -errno. */
int member_report(struct member *m, struct member_report *report);
/* The ranges that may differ, ascending, merged; valid until the next report. Returns their
 * number from `first`. */
uint32_t member_ranges(const struct member *m, uint32_t first, struct mirror_range *out,
		       uint32_t n);

/* ---- connections of a primary ---- */

struct member_hello {
	struct mirror_uuid uuid;
	uint64_t member_id; /* the copy that the primary expects here; 0: any */
	uint64_t size;      /* 0: the hello has none */
	struct mirror_epoch epoch;
	enum member_kind kind;
};

/* May this connection be made? A control connection may if set and copy are the right ones.
 * Before a lane is granted, the metadata durably record that the copy may hold flushes of this
 * epoch. A lane or bulk connection that is granted counts as open until member_on_closed(). A
 * RESTORE connection only reads. */
void member_grant(struct member *m, const struct member_hello *hello, struct member_verdict *v);
void member_on_closed(struct member *m, enum member_kind kind);

/* ---- equalisation and resync ---- */

/*
 * W9: record durably that these ranges may differ. They are rounded to extents. If there are too
 * many, the copy becomes uncertain.
 */
void member_record_ranges(struct member *m, struct mirror_epoch epoch,
			  const struct mirror_range *ranges, uint32_t n, struct member_verdict *v);
/* Records of ranges that may differ are lost or do not fit (the source's side of W9). Until the
 * next retirement the whole copy counts as different. */
void member_set_uncertain(struct member *m, struct member_verdict *v);
/*
 * W4: record durably that this copy is `syncing` from that one. Bitmaps of this copy are dropped.
 */
void member_resync_begin(struct member *m, struct mirror_epoch epoch, uint64_t source_id,
			 struct member_verdict *v);
/* May unreadable blocks of that range be overwritten? Only in a resync that was begun in this
 * epoch: the source then sends all of the range. Changes nothing. */
void member_may_clear(const struct member *m, struct mirror_epoch epoch, struct mirror_range range,
		      struct member_verdict *v);
/* W5: every byte is durable and the source has cleared its bitmap. The copy is usable again, and
 * damage counts as repaired: everything has been compared. */
void member_resync_end(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);

enum member_retire {
	MEMBER_SERVING,  /* `serving` of this epoch is committed */
	MEMBER_CLEAN_END /* the epoch has ended with everything flushed everywhere */
};

/* Intents and hot slots of former epochs are void; at a clean end also those of this epoch. The
 * hot slots of a held copy are its holder's, and stay: meta_hot_retire(). */
void member_retire(struct member *m, struct mirror_epoch epoch, enum member_retire why,
		   struct member_verdict *v);

/*
 * The register's record, which member_on_record() has just accepted, shows that the epoch whose
 * flushes this copy holds has ended well, and that the copy is in-sync. So no flush of the epoch
 * was under way, and all in-sync copies are equal. After its last connection has closed, the
 * epoch's records are void (MEMBER_CLEAN_END), and a restart of the host leaves no doubt. In all
 * other cases nothing changes, and v is YES.
 */
void member_end_clean(struct member *m, const struct mirror_record *rec, struct member_verdict *v);

/* ---- its size ---- */

/*
 * A set grows in three steps, each durable before the next. The files of every copy of the in-sync
 * set get longer (their owner does that, then member_reserve()). The register gets the new size.
 * Each copy takes it when no process maps it and no primary is connected to it. A primary works
 * with the size that its own copy had when it was mapped; other copies have at least that size when
 * they are used.
 */

/* Both files durably have room for this size, and hold zeros beyond the present size. */
void member_reserve(struct member *m, uint64_t size, struct member_verdict *v);
/* Would member_grow() return MEMBER_YES? */
bool member_may_grow(const struct member *m, uint64_t size);
/* The copy has this size from now on; its store must be long enough. With the same or a smaller
 * size nothing changes, and the verdict is MEMBER_YES. */
void member_grow(struct member *m, uint64_t size, struct member_verdict *v);

/* ---- the process that maps the copy ---- */

/* This process holds the copy, and no other one may map it; durable, and `clean` is cleared
 * (W7). A repeated call of the same holder gives MEMBER_YES. member_copy() and the register
 * decide whether the copy may be promoted. */
void member_hold(struct member *m, const struct meta_holder *holder, struct member_verdict *v);
/* The holder serves as primary of this epoch, and its flushes are in the copy. Durable before
 * its map returns. */
void member_serve(struct member *m, struct mirror_epoch epoch, bool forced,
		  struct member_verdict *v);
/* The holder has unmapped the copy (clean: with everything flushed and its bitmaps written; W7),
 * or is gone. The call reads the holder's part of the metadata again. */
void member_release(struct member *m, bool clean, struct member_verdict *v);
/* Bytes that were written to the data file may have been lost before it was opened: the copy is
 * compared as a whole before it counts as good. */
void member_doubt(struct member *m, struct member_verdict *v);
/* Bytes were lost while this object lives. The copy has then failed as well, since the cached
 * pages of the file differ from its medium. */
void member_lose(struct member *m, struct member_verdict *v);
/* The medium failed. The failure is recorded durably if possible, remembered in any case, and
 * final: a replaced member has another copy. */
void member_fail(struct member *m, struct member_verdict *v);

#endif
