/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hot.h -- the extents that flushes write to, recorded in the copy's metadata before the write
 * (W2): after an unclean end only these may differ from other copies. The set's lock protects all
 * of it.
 */
#ifndef MIRROR_HOT_H
#define MIRROR_HOT_H

#include "mirror/core/meta.h"
#include "mirror/file/metafile.h"

struct hot {
	struct metafile file; /* fd -1: none */
	bool is_loaded;
	struct meta meta;
	uint64_t last[META_HOT_SLOTS]; /* by slot: the last flush that touches its extent */
};

/* Takes over the descriptor. 0 or an RPMIRROR_E_*. */
int hot_open(struct hot *hot, int fd);
void hot_close(struct hot *hot);

/*
 * Record the extents of ranges that the flush with number seq is to write. retired: the number of
 * the last acknowledged flush. An extent that no later flush has touched may give up its slot.
 * -EBUSY: no slot is free yet; another -errno: the metadata cannot be written.
 */
int hot_mark(struct hot *hot, const struct mirror_range *v, uint32_t n, uint64_t seq,
	     uint64_t retired);
/* `serving` is committed: the extents of former epochs go into the bitmaps of absent members. 0
 * or -errno. */
int hot_retire(struct hot *hot);
/* At a clean end: only blocks in the bitmaps may differ. 0 or -errno. */
int hot_end(struct hot *hot);

#endif
