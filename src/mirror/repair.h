/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.h -- making other copies equal to this one: the actions EQUALISE and RESYNC of
 * core/primary.h, carried out with core/resync.h over a bulk connection to each member.
 *
 * For each member that does not get flushes there is a bitmap of what it lacks, as long as that is
 * known; absent.h has it for the time behind a restart. A thread of its own moves pieces; it begins
 * with the first member that is made equal. m->records is the union of what may differ; the data is
 * read from m->copy.shared. All calls are made under the set's lock. A failure of a member is
 * reported by act_lost().
 */
#ifndef MIRROR_REPAIR_H
#define MIRROR_REPAIR_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* With the set; 0 or an RPMIRROR_E_*. */
int repair_open(struct rpmirror *m);
/* Not under the lock: the thread is waited for. */
void repair_close(struct rpmirror *m);
/* End the thread, and close nothing (files.h). */
void repair_leave(struct rpmirror *m);

/* PRIMARY_DO_EQUALISE, _RESYNC: begin. */
void repair_equalise(struct rpmirror *m, const struct primary_action *action);
void repair_resync(struct rpmirror *m, unsigned slot, bool whole);
/* PRIMARY_DO_DROP, and the end of the set: give up what is under way with the member. Flushes that
 * it has not confirmed are noted. */
void repair_drop(struct rpmirror *m, unsigned slot);
/* What it lacks is not known any more, as its copy differs where it must not. */
void repair_forget(struct rpmirror *m, unsigned slot);
void repair_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer);

/* A flush that may wait for pieces of resyncs. */
struct repair_hold {
	struct resync_hold holds[MIRROR_MEMBERS_MAX];
};
/* Wait until no piece is in the way of the flush, which is posted before the lock is released. Its
 * ranges stay until repair_flush_leave(). False: some is; repair_wait(), and ask again. */
bool repair_flush_enter(struct rpmirror *m, struct repair_hold *hold, const struct mirror_range *v,
			uint32_t n);
void repair_flush_leave(struct rpmirror *m, struct repair_hold *hold);
void repair_wait(struct rpmirror *m);
/* The flush with the last number is about to be posted: its time begins. */
void repair_on_begin(struct rpmirror *m);
/* It was posted. */
void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n);
/* All up to `retired` are acknowledged; up to `before` they were. */
void repair_on_acked(struct rpmirror *m, uint64_t before, uint64_t retired);

/* The member has everything: from now on what it lacks is known. */
void repair_note_equal(struct rpmirror *m, unsigned slot);
/* Bytes that it is known to lack. */
uint64_t repair_get_remaining(const struct rpmirror *m, unsigned slot);
/* From the flush's first byte to its last. */
struct mirror_range repair_flush_span(const struct rpmirror *m, uint64_t seq);
/* How long ago a flush began that was not acknowledged when FLUSH_MAX later ones began; in us. */
uint64_t repair_flush_age(const struct rpmirror *m, uint64_t seq);
/* False: nothing is under way with the member. */
bool repair_get_progress(const struct rpmirror *m, unsigned slot, struct resync_progress *p);

#endif
