/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * absent.h -- keeps bitmaps of the blocks that absent members lack, for members that do not get
 * flushes. The bitmaps are in the metadata of this host's copy, so that they survive a restart.
 *
 * A bitmap is begun before the swap that excludes its member, or with a resync of the whole copy.
 * In the latter case the bitmap also contains each block of the resync's own bitmap. A bitmap is
 * dropped when its member is in-sync again. All calls are made under the set's lock. If the
 * metadata cannot be written, this host's copy has failed.
 */
#ifndef MIRROR_ABSENT_H
#define MIRROR_ABSENT_H

#include "mirror/core/resync.h"
#include "mirror/set.h"

/* Note which members have a bitmap in the metadata. Call this when this process begins to own the
 * metadata. */
void absent_note_counted(struct rpmirror *m);
/* For PRIMARY_DO_SWAP: begin bitmaps for the members that leave the in-sync set. */
void absent_exclude(struct rpmirror *m, const struct primary_action *swap);
/* For PRIMARY_DO_RETIRE. Own slot: mark the ranges of the records in the bitmaps of absent members,
 * then drop the hot extents of former epochs. Another slot: that member is in-sync, so drop its
 * bitmap. */
void absent_retire(struct rpmirror *m, unsigned slot);
/* Call this after a change of the configuration: drops the bitmaps of copies that were replaced. */
void absent_configure(struct rpmirror *m);

/* Drop the member's bitmap, because it is no longer known which blocks the member lacks. */
void absent_drop(struct rpmirror *m, unsigned slot);
/* Returns the number of blocks that the member lacks. */
uint64_t absent_count(const struct rpmirror *m, unsigned slot);
/* Returns true if the member has a bitmap that is complete for the state of its copy. */
bool absent_is_known(const struct rpmirror *m, unsigned slot);
/* Set the bits of the member's bitmap in rs. */
void absent_load(const struct rpmirror *m, unsigned slot, struct resync *rs);
/* Make these bits the member's durable bitmap, before a resync begins with them. */
void absent_keep(struct rpmirror *m, unsigned slot, const uint64_t *bits);
/* Call this when a piece of the resync has ended: clears the piece's blocks in the bitmap, unless
 * their bits are set in `bits`. */
void absent_unset(struct rpmirror *m, unsigned slot, const uint64_t *bits,
		  const struct resync_piece *piece);
/* W5: clear the member's bitmap, because the member has all bytes. */
void absent_clear(struct rpmirror *m, unsigned slot);

/* Set the blocks of a flush in the bitmaps of the members in `lacking`, to which the flush is not
 * sent. */
void absent_on_flush(struct rpmirror *m, mirror_mask lacking, const struct mirror_range *v,
		     uint32_t n);

#endif
