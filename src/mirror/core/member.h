/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.h -- what a daemon may do with a copy: promises, connections, resync, holders; pure.
 *
 * The rules over a struct meta. The daemon acts (cuts connections, answers, watches processes) and
 * asks here first. Each question gives a verdict; what it records is durable when it returns. One
 * thread at a time.
 *
 * Fencing: member_promise() returns MEMBER_CUT_FIRST as long as connections of lower epochs are
 * open. The daemon disconnects and deregisters them, calls member_on_closed() for each when nothing
 * of it can be placed any more, and asks again: only then the promise is durable (W1), and
 * answered.
 */
#ifndef MIRROR_CORE_MEMBER_H
#define MIRROR_CORE_MEMBER_H

#include "mirror/core/meta.h"
#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum member_answer {
	MEMBER_YES,
	MEMBER_CUT_FIRST, /* data connections of epochs up to verdict.known, which asks (again) */
	MEMBER_NO
};

/* Why not. In messages as a number. */
enum member_reason {
	MEMBER_OK,
	MEMBER_OTHER_SET,  /* the UUIDs differ */
	MEMBER_OTHER_COPY, /* this copy was replaced, or never was that member's */
	MEMBER_OTHER_SIZE,
	MEMBER_EPOCH_OLD,    /* a higher epoch was promised */
	MEMBER_EPOCH_TWIN,   /* another epoch with the same number: split */
	MEMBER_NOT_PROMISED, /* the epoch has to be promised before */
	MEMBER_IS_HELD,      /* a living process maps the copy */
	MEMBER_HAS_FAILED,
	MEMBER_IS_SYNCING,
	MEMBER_IS_UNKNOWN, /* metadata are damaged: compare everything */
	MEMBER_NOT_BEGUN,  /* no resync, or not by this primary */
	MEMBER_IS_SPLIT,   /* the register knows less than this copy */
	MEMBER_IO,         /* the metadata cannot be written */
	MEMBER_REASONS
};

struct member_verdict {
	enum member_answer answer;
	enum member_reason reason;
	struct mirror_epoch known; /* the one that stands against it */
	char text[256];            /* with the values */
};

/* A short word for each reason, for logs and JSON. */
const char *member_reason_name(enum member_reason reason);

enum member_kind { MEMBER_CONTROL, MEMBER_LANE, MEMBER_BULK, MEMBER_RESTORE };

struct member {
	struct meta *meta;
	struct mirror_uuid boot;     /* of this host, now */
	struct mirror_epoch fencing; /* asked for, not yet promised */
	uint32_t lanes, bulks;       /* open connections, all of the promised epoch */
	bool is_split;               /* by the newest record that was read */
	bool has_failed;             /* also where the metadata could not say so */
	struct mirror_range *ranges; /* what may differ, of the last report */
	uint32_t range_count, range_room;
};

/* What an answer to a promise says of the copy. */
struct member_report {
	enum mirror_copy copy; /* by the newest view that this member has seen */
	uint32_t flags;        /* enum meta_flag */
	uint32_t damage;       /* enum meta_damage */
	bool is_held;          /* a living process maps it: nothing may be copied into it yet */
	bool is_uncertain;     /* anything may differ: compare all */
	bool is_unknown;       /* so may what is behind the set's former end, where nobody wrote */
	struct mirror_epoch promised;
	struct mirror_epoch epoch; /* the last one whose flushes it may hold */
	uint64_t source_id;        /* of a resync that has not ended, or 0 */
	struct meta_seen seen;
	uint32_t hot, intents; /* extents, unacknowledged flushes */
	uint32_t range_count;  /* for member_ranges() */
};

/* After meta_load(). Takes note of a restart of the host: a holder of another boot is gone, and
 * where lanes were in use, intents are lost (META_UNCERTAIN). 0 or -errno. */
int member_init(struct member *m, struct meta *meta, const struct mirror_uuid *boot);
/* The files as they are now, before anything is written. Others than they were left: they were
 * copied, restored, edited or swapped. Then the copy is `syncing` until it was compared as a whole;
 * MEMBER_YES also then. */
void member_set_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
/* The daemon's orderly end, after the last write into the data: so they are left. */
void member_leave_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
void member_fini(struct member *m);

/* asked: the newest view that it has seen was read from the register, or heard from the primary,
 * just now; else a copy that was in-sync is `unknown`. */
enum mirror_copy member_copy(const struct member *m, bool asked);

/* ---- the register ---- */

/* A record was read from the register, by a read that began after the last call here. MEMBER_NO
 * with MEMBER_IS_SPLIT if it is older than what this member has seen, or if this copy holds flushes
 * of an epoch that it does not know; with MEMBER_OTHER_COPY, MEMBER_OTHER_SET, MEMBER_OTHER_SIZE.
 * Else it is the newest seen, durably, with history and members. A copy that is in-sync by the
 * record and does not know of its epoch was restored from a backup: it is `syncing` from then on,
 * until it was compared as a whole. */
void member_on_record(struct member *m, const struct mirror_record *rec, uint64_t revision,
		      struct member_verdict *v);
/* The primary of the promised epoch says what the view is now: kept as the newest seen. */
void member_on_view(struct member *m, const struct mirror_view *view, struct member_verdict *v);
/* An operator gives this copy's differing past up: the record counts although it is older. The copy
 * is then `syncing`, outside of every epoch, until it was compared as a whole. */
void member_discard(struct member *m, const struct mirror_record *rec, uint64_t revision,
		    struct member_verdict *v);
/* Is that permitted? Changes nothing. */
void member_may_discard(const struct member *m, const struct mirror_record *rec,
			struct member_verdict *v);

/* ---- fence ---- */

void member_promise(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);
/* Reads the ring and the hot slots: to be called after a promise, when nothing can be placed any
 * more. 0 or -errno. */
int member_report(struct member *m, struct member_report *report);
/* What may differ, ascending, merged; valid until the
 * next report. Returns how many from `first`. */
uint32_t member_ranges(const struct member *m, uint32_t first, struct mirror_range *out,
		       uint32_t n);

/* ---- connections of a primary ---- */

struct member_hello {
	struct mirror_uuid uuid;
	uint64_t member_id; /* the copy that it takes this one for; 0: it does not say */
	uint64_t size;      /* 0: it does not say */
	struct mirror_epoch epoch;
	enum member_kind kind;
};

/* May it connect? Control connections always, if set and copy are the right ones. A lane: from now
 * on the copy may hold flushes of this epoch, durably. A lane or bulk connection that is granted
 * counts as open until member_on_closed(). RESTORE only reads. */
void member_grant(struct member *m, const struct member_hello *hello, struct member_verdict *v);
void member_on_closed(struct member *m, enum member_kind kind);

/* ---- equalisation and resync ---- */

/* W9: these ranges may differ from now on, durably. Rounded to extents; more than fit make the copy
 * uncertain. */
void member_record_ranges(struct member *m, struct mirror_epoch epoch,
			  const struct mirror_range *ranges, uint32_t n, struct member_verdict *v);
/* Records of what may differ are lost or do not fit (the source's side of W9): compare all, until
 * the next retirement. */
void member_set_uncertain(struct member *m, struct member_verdict *v);
/* W4: syncing from this copy, durably. Bitmaps of this copy are dropped. */
void member_resync_begin(struct member *m, struct mirror_epoch epoch, uint64_t source_id,
			 struct member_verdict *v);
/* May blocks of that range be overwritten that cannot be read? Only in a resync that was begun in
 * this epoch: the source then sends all of the range. Changes nothing. */
void member_may_clear(const struct member *m, struct mirror_epoch epoch, struct mirror_range range,
		      struct member_verdict *v);
/* W5: every byte is durable and the source has cleared its bitmap: usable again. Damage is
 * repaired: everything has been compared. */
void member_resync_end(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);

enum member_retire {
	MEMBER_SERVING,  /* `serving` of this epoch is committed */
	MEMBER_CLEAN_END /* it has ended with everything flushed everywhere */
};

/* Intents and hot slots of former epochs (at a clean end: of this one, too) are void. Hot slots of
 * a copy that is held are its holder's and stay: meta_hot_retire(). */
void member_retire(struct member *m, struct mirror_epoch epoch, enum member_retire why,
		   struct member_verdict *v);

/*
 * The register's record, which member_on_record() has just accepted, says that the epoch whose
 * flushes this copy holds has ended well, and that the copy is in-sync: then nothing of it was
 * under way, and all in-sync copies are equal. Once no connection of it is left, its records are
 * void (MEMBER_CLEAN_END), and a restart of the host leaves no doubt. Else nothing changes, and v
 * is YES.
 */
void member_end_clean(struct member *m, const struct mirror_record *rec, struct member_verdict *v);

/* ---- its size ---- */

/*
 * A set grows in three steps, each durable before the next: the files of every copy of the in-sync
 * set get longer (their owner does that, then member_reserve()); the register says the new size;
 * each copy takes it when no process maps it and no primary is connected to it. A primary works
 * with the size that its own copy had when it was mapped, and other copies have that at least when
 * they are used.
 */

/* Both files are durable with room for this size, and zeros behind the present one. */
void member_reserve(struct member *m, uint64_t size, struct member_verdict *v);
/* Would member_grow() say yes? */
bool member_may_grow(const struct member *m, uint64_t size);
/* The copy has this size from now on, and its store is long enough. The same or a smaller one:
 * MEMBER_YES, nothing changes. */
void member_grow(struct member *m, uint64_t size, struct member_verdict *v);

/* ---- the process that maps the copy ---- */

/* Nobody else may; durable, `clean` is cleared (W7). The same holder again: MEMBER_YES. Whether the
 * copy may be promoted is a question to member_copy() and to the register. */
void member_hold(struct member *m, const struct meta_holder *holder, struct member_verdict *v);
/* The holder serves as primary of this epoch: its flushes are in the copy. Durable before its map
 * returns. */
void member_serve(struct member *m, struct mirror_epoch epoch, bool forced,
		  struct member_verdict *v);
/* It has unmapped (clean: with everything flushed and its bitmaps written; W7) or is gone. Reads
 * again what was its own. */
void member_release(struct member *m, bool clean, struct member_verdict *v);
/* Something that was written to the data file may have been lost before it was opened: all of it is
 * compared before it is believed. */
void member_doubt(struct member *m, struct member_verdict *v);
/* The same now: besides, as long as this object lives the copy has failed, since what is cached of
 * the file is not what the medium has. */
void member_lose(struct member *m, struct member_verdict *v);
/* The medium failed. Durable if it can be; remembered in any case, and final: a replaced member has
 * another copy. */
void member_fail(struct member *m, struct member_verdict *v);

#endif
