/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * absent.h -- what members lack that do not get flushes, counted in the metadata of this host's
 * copy, so that it is known after a restart, too.
 *
 * A bitmap begins before the swap that excludes its member, or with a resync of everything; from
 * then on it has all that the resync's own bitmap has. It ends when the member is in-sync again.
 * All calls are made under the set's lock; where the metadata cannot be written, this host's copy
 * has failed.
 */
#ifndef MIRROR_ABSENT_H
#define MIRROR_ABSENT_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* The metadata are this process's. */
void absent_open(struct rpmirror *m);
/* PRIMARY_DO_SWAP: for who leaves the in-sync set. */
void absent_exclude(struct rpmirror *m, const struct primary_action *swap);
/* PRIMARY_DO_RETIRE. Own slot: what the records name is marked for those who are absent, then the
 * hot extents of former epochs go. Another one: it is in-sync. */
void absent_retire(struct rpmirror *m, unsigned slot);
/* The configuration has changed: copies that were replaced lack other things. */
void absent_configure(struct rpmirror *m);

/* What it lacks is not known any more. */
void absent_drop(struct rpmirror *m, unsigned slot);
/* Blocks that it lacks. */
uint64_t absent_count(const struct rpmirror *m, unsigned slot);
/* There is a bitmap that counts from what the member has. */
bool absent_is_known(const struct rpmirror *m, unsigned slot);
/* Mark what it has. */
void absent_load(const struct rpmirror *m, unsigned slot, struct resync *rs);
/* A resync is to begin with these bits: they are durable from now on. */
void absent_keep(struct rpmirror *m, unsigned slot, const uint64_t *bits);
/* A piece has ended: blocks without a bit leave the bitmap. */
void absent_unset(struct rpmirror *m, unsigned slot, const uint64_t *bits,
		  const struct resync_piece *piece);
/* W5: the member has everything. */
void absent_clear(struct rpmirror *m, unsigned slot);

/* A flush that is not sent to the members of the mask. */
void absent_on_flush(struct rpmirror *m, mirror_mask lacking, const struct mirror_range *v,
		     uint32_t n);

#endif
