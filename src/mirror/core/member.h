/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.h -- the rules by which a daemon uses a copy: promises, connections, resync, holders;
 * pure.
 *
 * The rules work on a struct meta. The daemon calls one of these functions before it ends
 * connections, answers requests or watches processes. The function gives a verdict; if it changes
 * the metadata, the change is durable on return. Only one thread at a time may call the functions.
 *
 * Fencing: member_promise() returns MEMBER_CUT_FIRST as long as connections of lower epochs are
 * open. The daemon disconnects and deregisters them, calls member_on_closed() for each connection
 * that can place no more bytes, and calls member_promise() again. Only this call makes the promise
 * durable (W1), and then the daemon sends it as its answer.
 */
#ifndef MIRROR_CORE_MEMBER_H
#define MIRROR_CORE_MEMBER_H

#include "mirror/core/meta.h"
#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum member_answer {
	MEMBER_YES,
	/* the daemon has to end the data connections of epochs up to verdict.known, and then to
	 * repeat the call */
	MEMBER_CUT_FIRST,
	MEMBER_NO
};

/* The reason of the answer MEMBER_NO. Messages carry its number. */
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
	MEMBER_IS_UNKNOWN, /* the metadata are damaged, so the whole copy has to be compared */
	MEMBER_NOT_BEGUN,  /* no resync has begun, or another primary has begun it */
	MEMBER_IS_SPLIT,   /* the register lacks an epoch or view that this copy has */
	MEMBER_IO,         /* the metadata cannot be written */
	MEMBER_REASONS
};

struct member_verdict {
	enum member_answer answer;
	enum member_reason reason;
	struct mirror_epoch known; /* the epoch that is the reason of the answer */
	char text[256];            /* the reason in words, with its values */
};

/* Returns a short word for each reason, for logs and JSON. */
const char *member_reason_name(enum member_reason reason);

enum member_kind { MEMBER_CONTROL, MEMBER_LANE, MEMBER_BULK, MEMBER_RESTORE };

struct member {
	struct meta *meta;
	struct mirror_uuid boot;     /* identifier of this host's boot */
	struct mirror_epoch fencing; /* the requested epoch that is not promised yet */
	/* numbers of open connections, which all belong to the promised epoch */
	uint32_t lanes, bulks;
	/* the set is split, according to the newest record that was read */
	bool is_split;
	/* the copy has failed, even if the metadata could not record the failure */
	bool has_failed;
	struct mirror_range *ranges; /* the ranges that may differ, from the last report */
	uint32_t range_count, range_room;
};

/* The state of a copy, in the answer to a promise. */
struct member_report {
	enum mirror_copy copy; /* according to the newest view that this member has seen */
	uint32_t flags;        /* enum meta_flag */
	uint32_t damage;       /* enum meta_damage */
	/* a living process maps the copy, so no write may reach the copy yet */
	bool is_held;
	bool is_uncertain; /* any byte may differ, so the whole copy has to be compared */
	/*
	 * the copy is uncertain even beyond the set's former end, to which no primary of that size
	 * wrote
	 */
	bool is_unknown;
	struct mirror_epoch promised;
	struct mirror_epoch epoch; /* the last epoch whose flushes the copy may hold */
	uint64_t source_id;        /* id of the copy that sends a resync that has not ended, or 0 */
	struct meta_seen seen;
	/* number of hot extents, and number of flushes that are not acknowledged */
	uint32_t hot, intents;
	uint32_t range_count; /* number of ranges for member_ranges() */
};

/* Call this after meta_load(). The call records a restart of the host: a holder of an earlier boot
 * is gone, and if lanes were in use, intents are lost (META_UNCERTAIN). Returns 0 or -errno. */
int member_init(struct member *m, struct meta *meta, const struct mirror_uuid *boot);
/* Compare the present state of the files, before the first write, with the state in which the last
 * daemon left them. A difference shows that the files were copied, restored, edited or swapped;
 * the copy is then `syncing` until it was compared as a whole. The verdict is MEMBER_YES in both
 * cases. */
void member_set_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
/*
 * Record the state of the files when the daemon exits in good order, after the last write to the
 * data.
 */
void member_leave_files(struct member *m, const struct meta_files *files, struct member_verdict *v);
void member_fini(struct member *m);

/* Returns the state of the copy. asked: this host has just got the newest view from the register
 * or from the primary. If asked is false, a copy that was in-sync is `unknown`. */
enum mirror_copy member_copy(const struct member *m, bool asked);

/* ---- the register ---- */

/*
 * Handle a record of the register, from a read that began after the last call of this function. The
 * verdict is MEMBER_NO with MEMBER_IS_SPLIT if the record is older than one that this member has
 * seen, or if this copy holds flushes of an epoch that the record lacks. Other reasons:
 * MEMBER_OTHER_COPY, MEMBER_OTHER_SET, MEMBER_OTHER_SIZE. Otherwise the copy durably stores the
 * record as the newest one, with history and members. If the copy is in-sync according to the
 * record, but its metadata lack the record's epoch, the copy was restored from a backup. From then
 * on the copy is `syncing`, until it was compared as a whole.
 */
void member_on_record(struct member *m, const struct mirror_record *rec, uint64_t revision,
		      struct member_verdict *v);
/* Store the view that the primary of the promised epoch sends as the newest view. */
void member_on_view(struct member *m, const struct mirror_view *view, struct member_verdict *v);
/* Discard this copy's own history by an operator's order, so that the record counts although it is
 * older. The copy is then `syncing`, outside of every epoch, until it was compared as a whole. */
void member_discard(struct member *m, const struct mirror_record *rec, uint64_t revision,
		    struct member_verdict *v);
/* Check whether member_discard() is permitted. Changes nothing. */
void member_may_discard(const struct member *m, const struct mirror_record *rec,
			struct member_verdict *v);

/* ---- fence ---- */

void member_promise(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);
/* Reads the ring and the hot slots. Call it after a promise, when no more bytes can be placed.
 * Returns 0 or -errno. */
int member_report(struct member *m, struct member_report *report);
/* Store the ranges that may differ, from number `first` on, in out: ascending, merged, and valid
 * until the next report. Returns the number of ranges. */
uint32_t member_ranges(const struct member *m, uint32_t first, struct mirror_range *out,
		       uint32_t n);

/* ---- connections of a primary ---- */

struct member_hello {
	struct mirror_uuid uuid;
	uint64_t member_id; /* id of the copy that the primary expects here; 0: any */
	uint64_t size;      /* 0: the hello has none */
	struct mirror_epoch epoch;
	enum member_kind kind;
};

/* Decide whether this connection may be made. A control connection needs only the right set and
 * copy. Before a lane is granted, the metadata durably record that the copy may hold flushes of
 * this epoch. A lane or bulk connection that is granted counts as open until member_on_closed(). A
 * RESTORE connection only reads. */
void member_grant(struct member *m, const struct member_hello *hello, struct member_verdict *v);
void member_on_closed(struct member *m, enum member_kind kind);

/* ---- equalisation and resync ---- */

/*
 * W9: record durably that these ranges may differ. The ranges are rounded to extents. If there are
 * too many extents, the copy becomes uncertain.
 */
void member_record_ranges(struct member *m, struct mirror_epoch epoch,
			  const struct mirror_range *ranges, uint32_t n, struct member_verdict *v);
/* Record that records of ranges that may differ are lost or do not fit (W9, at the primary). Until
 * the next retirement the whole copy counts as different. */
void member_set_uncertain(struct member *m, struct member_verdict *v);
/*
 * W4: record durably that this copy is `syncing` from the copy source_id. Bitmaps of this copy are
 * dropped.
 */
void member_resync_begin(struct member *m, struct mirror_epoch epoch, uint64_t source_id,
			 struct member_verdict *v);
/* Check whether unreadable blocks of that range may be overwritten. This is permitted only in a
 * resync that was begun in this epoch, because the primary then sends the whole range. Changes
 * nothing. */
void member_may_clear(const struct member *m, struct mirror_epoch epoch, struct mirror_range range,
		      struct member_verdict *v);
/* W5: end a resync, after every byte is durable and the primary has cleared its bitmap. The copy
 * is usable again, and damage counts as repaired, because everything has been compared. */
void member_resync_end(struct member *m, struct mirror_epoch epoch, struct member_verdict *v);

enum member_retire {
	MEMBER_SERVING,  /* `serving` of this epoch is committed */
	MEMBER_CLEAN_END /* the epoch has ended, and every copy has every flush */
};

/* Make intents and hot slots of former epochs void; with MEMBER_CLEAN_END also those of this epoch.
 * If the copy is held, its hot slots belong to the holder and stay: meta_hot_retire(). */
void member_retire(struct member *m, struct mirror_epoch epoch, enum member_retire why,
		   struct member_verdict *v);

/*
 * Call this after member_on_record() has accepted the register's record. If the copy is in-sync
 * according to the record, and the epoch of the copy's flushes has ended well, then no flush of
 * that epoch was outstanding, and all in-sync copies are equal. So after the epoch's last
 * connection has closed, the epoch's records become void (MEMBER_CLEAN_END), and a later restart of
 * the host does not make the copy uncertain. In all other cases nothing changes, and the verdict is
 * MEMBER_YES.
 */
void member_end_clean(struct member *m, const struct mirror_record *rec, struct member_verdict *v);

/* ---- the copy's size ---- */

/*
 * A set grows in three steps, each durable before the next one. First the files of every in-sync
 * copy are extended (by the caller, followed by member_reserve()). Then the register gets the new
 * size. Then each copy takes the new size when no process maps the copy and no primary is
 * connected to it. A primary works with the size that its own copy had when it was mapped; other
 * copies have at least that size when they are used.
 */

/* Record that both files are durably long enough for this size, with zeros beyond the present
 * size. */
void member_reserve(struct member *m, uint64_t size, struct member_verdict *v);
/* Record that the data file has no room beyond the present size any more. */
void member_unreserve(struct member *m, struct member_verdict *v);
/* Returns true if member_grow() would return MEMBER_YES. */
bool member_may_grow(const struct member *m, uint64_t size);
/* Give the copy this size; the file must be long enough. With the same or a smaller size nothing
 * changes, and the verdict is MEMBER_YES. */
void member_grow(struct member *m, uint64_t size, struct member_verdict *v);

/* ---- the process that maps the copy ---- */

/* Record durably that this process holds the copy; no other process may then map it. `clean` is
 * cleared (W7). A repeated call for the same holder gives MEMBER_YES. Whether the copy may be
 * promoted is decided by member_copy() and the register, not here. */
void member_hold(struct member *m, const struct meta_holder *holder, struct member_verdict *v);
/* Record that the holder serves as primary of this epoch, and that its flushes are in the copy.
 * The record is durable before the holder's map call returns. */
void member_serve(struct member *m, struct mirror_epoch epoch, bool forced,
		  struct member_verdict *v);
/* Record that the holder has unmapped the copy, or is gone. clean: the holder flushed everything
 * and wrote the bitmaps (W7). The call reads the holder's part of the metadata again. */
void member_release(struct member *m, bool clean, struct member_verdict *v);
/* Record that written bytes of the data file may have been lost before the file was opened. The
 * copy has to be compared as a whole before it counts as good. */
void member_doubt(struct member *m, struct member_verdict *v);
/* Record that bytes were lost after the file was opened. The copy has then failed as well, because
 * the cached pages of the file differ from its medium. */
void member_lose(struct member *m, struct member_verdict *v);
/* Record that the medium failed. The failure is durable if possible, remembered in any case, and
 * final: a member that is replaced gets another copy. */
void member_fail(struct member *m, struct member_verdict *v);

#endif
