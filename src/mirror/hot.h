/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hot.h -- records in the copy's metadata, before each write, the extents to which flushes write
 * (W2): after an unclean end only these extents may differ from other copies. The set's lock
 * protects the whole structure.
 */
#ifndef MIRROR_HOT_H
#define MIRROR_HOT_H

#include "mirror/core/meta.h"
#include "mirror/file/metafile.h"

struct hot {
	struct metafile file; /* the metadata file; its fd is -1 if it is not open */
	bool is_loaded;
	struct meta meta;
	/* for each slot: number of the last flush that touches its extent */
	uint64_t last[META_HOT_SLOTS];
};

/* Open the metadata. The call takes over the descriptor. Returns 0 or an RPMIRROR_E_*. */
int hot_open(struct hot *hot, int fd);
void hot_close(struct hot *hot);

/*
 * Record the extents of ranges that the flush with number seq will write. retired: the number of
 * the last acknowledged flush. If no later flush has touched an extent, the extent may give up its
 * slot. -EBUSY: no slot is free yet; another -errno: the metadata cannot be written.
 */
int hot_mark(struct hot *hot, const struct mirror_range *v, uint32_t n, uint64_t seq,
	     uint64_t retired);
/* Call this when `serving` is committed: marks the extents of former epochs in the bitmaps of
 * absent members, and frees their slots. Returns 0 or -errno. */
int hot_retire(struct hot *hot);
/* Call this when the epoch ends cleanly: writes the bitmaps and frees all slots, because only
 * blocks in the bitmaps may differ. Returns 0 or -errno. */
int hot_end(struct hot *hot);

#endif
