/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.h -- making other copies equal to this one: the actions EQUALISE and RESYNC of
 * core/primary.h. The seam between the library and core/resync.h.
 *
 * All calls are made under the set's lock. m->records is the union of what may differ; the data is
 * read from m->copy.shared. Members are asked by ask_send(), and the answers that are not those of
 * ask.c come to repair_on_answer(). A failure of a member is reported by act_lost().
 */
#ifndef MIRROR_REPAIR_H
#define MIRROR_REPAIR_H

#include "mirror/set.h"

/* PRIMARY_DO_EQUALISE, _RESYNC: begin. */
void repair_equalise(struct rpmirror *m, unsigned slot, bool whole);
void repair_resync(struct rpmirror *m, unsigned slot, bool whole);
/* PRIMARY_DO_DROP, and the end of the set: give up what is under way with the member. */
void repair_drop(struct rpmirror *m, unsigned slot);
void repair_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer);
/* In each turn of the thread. Returns when the next one is to be, in CLOCK_BOOTTIME's ms. */
uint64_t repair_step(struct rpmirror *m, uint64_t now_ms);

/* A flush: before its snapshot (false: wait, and ask again), and behind its post. */
bool repair_flush_enter(struct rpmirror *m, const struct mirror_range *v, uint32_t n);
void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n);

#endif
