/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.h -- making other copies equal to this one: the actions EQUALISE and RESYNC of
 * core/primary.h, carried out with core/resync.h over a bulk connection to each member.
 *
 * Each member that gets no flushes has a bitmap of the blocks that it lacks, as long as they are
 * known; absent.h keeps it for the time after a restart. The pieces are moved by a thread, which
 * starts when the first member is made equal. m->records is the union of the ranges that may
 * differ; the data is read from m->copy.shared. All calls are made under the set's lock. A member's
 * failure is passed to act_lost().
 */
#ifndef MIRROR_REPAIR_H
#define MIRROR_REPAIR_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* With the set; 0 or an RPMIRROR_E_*. */
int repair_open(struct rpmirror *m);
/* Not under the lock: it waits for the thread. */
void repair_close(struct rpmirror *m);
/* End the thread, and close nothing (files.h). */
void repair_leave(struct rpmirror *m);

/* PRIMARY_DO_EQUALISE, _RESYNC: begin. */
void repair_equalise(struct rpmirror *m, const struct primary_action *action);
void repair_resync(struct rpmirror *m, unsigned slot, bool whole);
/* PRIMARY_DO_DROP, and the end of the set: give up the work with the member. Flushes that it has
 * not confirmed are noted. */
void repair_drop(struct rpmirror *m, unsigned slot);
/* Its copy differs where it must not, so what it lacks is unknown from now on. */
void repair_forget(struct rpmirror *m, unsigned slot);
void repair_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer);

/* A flush that may wait for pieces of resyncs. */
struct repair_hold {
	struct resync_hold holds[MIRROR_MEMBERS_MAX];
};
/* Returns whether resyncs permit a flush of these ranges, which are held until
 * repair_flush_leave(). The caller posts the flush before it releases the lock. False: a piece is
 * in the way; call repair_wait(), then try again. */
bool repair_flush_enter(struct rpmirror *m, struct repair_hold *hold, const struct mirror_range *v,
			uint32_t n);
void repair_flush_leave(struct rpmirror *m, struct repair_hold *hold);
void repair_wait(struct rpmirror *m);
/* The flush with the last number is about to be posted: its time begins. */
void repair_on_begin(struct rpmirror *m);
/* It was posted. */
void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n);
/* All flushes up to `retired` are acknowledged now; those up to `before` were so already. */
void repair_on_acked(struct rpmirror *m, uint64_t before, uint64_t retired);

/* The member has everything. From now on its bitmap counts each block that it lacks. */
void repair_note_equal(struct rpmirror *m, unsigned slot);
/* Bytes that the member certainly lacks. */
uint64_t repair_get_remaining(const struct rpmirror *m, unsigned slot);
/* The range from the flush's first byte to its last. */
struct mirror_range repair_flush_span(const struct rpmirror *m, uint64_t seq);
/* Time in us since the flush began; valid while fewer than FLUSH_MAX later flushes have begun. */
uint64_t repair_flush_age(const struct rpmirror *m, uint64_t seq);
/* False: there is no work with the member. */
bool repair_get_progress(const struct rpmirror *m, unsigned slot, struct resync_progress *p);

#endif
