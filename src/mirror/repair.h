/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.h -- makes other copies equal to this copy: carries out the actions EQUALISE and RESYNC
 * of core/primary.h with core/resync.h, over a bulk connection to each member.
 *
 * Each member that gets no flushes has a bitmap of the blocks that it lacks, as long as these
 * blocks are known; absent.h keeps the bitmap across a restart. A thread moves the pieces; it
 * starts when the first member is made equal. m->records is the union of the ranges that may
 * differ; the data is read from m->copy.shared. All calls are made under the set's lock. A
 * member's failure is passed to act_lost().
 */
#ifndef MIRROR_REPAIR_H
#define MIRROR_REPAIR_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* Make m->repair. map.c calls this when it opens the set. Returns 0 or an RPMIRROR_E_*. */
int repair_open(struct rpmirror *m);
/* End the thread, close the bulk connections, and free m->repair. The caller does not hold the
 * set's lock, because the call waits for the thread. */
void repair_close(struct rpmirror *m);
/* End the thread, without closing descriptors (files.h). */
void repair_leave(struct rpmirror *m);

/* Begin PRIMARY_DO_EQUALISE and PRIMARY_DO_RESYNC. */
void repair_equalise(struct rpmirror *m, const struct primary_action *action);
void repair_resync(struct rpmirror *m, unsigned slot, bool whole);
/* For PRIMARY_DO_DROP, and at the end of the set: give up the work with the member. Flushes that
 * the member has not confirmed are noted. */
void repair_drop(struct rpmirror *m, unsigned slot);
/* Record that the member's copy differs where it must be equal: from now on it is unknown which
 * blocks the member lacks. */
void repair_forget(struct rpmirror *m, unsigned slot);
void repair_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer);

/* A flush that may wait for pieces of resyncs. */
struct repair_hold {
	struct resync_hold holds[MIRROR_MEMBERS_MAX];
};
/* Returns true if resyncs permit a flush of these ranges, which are then held until
 * repair_flush_leave(). The caller posts the flush before it releases the lock. Returns false if a
 * piece touches the ranges; then call repair_wait(), and try again. */
bool repair_flush_enter(struct rpmirror *m, struct repair_hold *hold, const struct mirror_range *v,
			uint32_t n);
void repair_flush_leave(struct rpmirror *m, struct repair_hold *hold);
void repair_wait(struct rpmirror *m);
/* Start the clock of the newest flush, which is about to be posted. */
void repair_on_begin(struct rpmirror *m);
/* Note the ranges of the newest flush, and set their bits for the members that do not get the flush
 * or are being made equal. Call this when the flush was posted. */
void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n);
/* Handle acknowledgements: all flushes up to `retired` are acknowledged now, and those up to
 * `before` were acknowledged earlier. */
void repair_on_acked(struct rpmirror *m, uint64_t before, uint64_t retired);

/* Record that the member has all bytes. From now on its bitmap contains each block that it
 * lacks. */
void repair_note_equal(struct rpmirror *m, unsigned slot);
/* Returns the number of bytes that the member certainly lacks. */
uint64_t repair_get_remaining(const struct rpmirror *m, unsigned slot);
/* Returns the ranges of the flush; ranges close to each other may be merged. The result is valid
 * until the flush is acknowledged.
 */
const struct mirror_range *repair_flush_ranges(const struct rpmirror *m, uint64_t seq,
					       uint32_t *count);
/* Returns the range from the flush's first byte to its last byte. */
struct mirror_range repair_flush_span(const struct rpmirror *m, uint64_t seq);
/* Returns the time in us since the flush began; valid while fewer than FLUSH_MAX later flushes
 * have begun. */
uint64_t repair_flush_age(const struct rpmirror *m, uint64_t seq);
/* Get the progress of the work with the member. Returns false if there is no such work. */
bool repair_get_progress(const struct rpmirror *m, unsigned slot, struct resync_progress *p);

#endif
