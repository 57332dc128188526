/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * absent.h -- bitmaps of the blocks that members without flushes lack. The metadata of this host's
 * copy hold them, so that they survive a restart.
 *
 * A bitmap begins before the swap that excludes its member, or with a resync of everything; from
 * then on it contains each block of the resync's own bitmap. It ends when the member is in-sync
 * again. All calls are made under the set's lock. If the metadata cannot be written, this host's
 * copy has failed.
 */
#ifndef MIRROR_ABSENT_H
#define MIRROR_ABSENT_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* Take over bitmaps of the metadata, which belong to this process now. */
void absent_open(struct rpmirror *m);
/* PRIMARY_DO_SWAP: begin bitmaps for the members that leave the in-sync set. */
void absent_exclude(struct rpmirror *m, const struct primary_action *swap);
/* PRIMARY_DO_RETIRE. Own slot: mark the ranges of the records for absent members, then drop the hot
 * extents of former epochs. Another slot: that member is in-sync, so end its bitmap. */
void absent_retire(struct rpmirror *m, unsigned slot);
/* The configuration has changed: bitmaps of copies that were replaced are void. */
void absent_configure(struct rpmirror *m);

/* It is no longer known which blocks the member lacks: end its bitmap. */
void absent_drop(struct rpmirror *m, unsigned slot);
/* The number of blocks that the member lacks. */
uint64_t absent_count(const struct rpmirror *m, unsigned slot);
/* The member has a bitmap, which counts from the state of its copy. */
bool absent_is_known(const struct rpmirror *m, unsigned slot);
/* Mark the blocks of its bitmap in rs. */
void absent_load(const struct rpmirror *m, unsigned slot, struct resync *rs);
/* A resync is to begin with these bits: they are durable from now on. */
void absent_keep(struct rpmirror *m, unsigned slot, const uint64_t *bits);
/* A piece has ended: blocks without a bit leave the bitmap. */
void absent_unset(struct rpmirror *m, unsigned slot, const uint64_t *bits,
		  const struct resync_piece *piece);
/* W5: the member has everything. */
void absent_clear(struct rpmirror *m, unsigned slot);

/* Count a flush that is not sent to the members of the mask. */
void absent_on_flush(struct rpmirror *m, mirror_mask lacking, const struct mirror_range *v,
		     uint32_t n);

#endif
