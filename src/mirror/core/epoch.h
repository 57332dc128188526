/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.h -- encodes an epoch in files and messages: number, nonce, little-endian. */
#ifndef MIRROR_CORE_EPOCH_H
#define MIRROR_CORE_EPOCH_H

#include "base/cursor.h"
#include "mirror/core/types.h"

static inline void epoch_put(struct wcursor *c, struct mirror_epoch epoch)
{
	wcursor_le(c, epoch.number, 8);
	wcursor_le(c, epoch.nonce, 8);
}

static inline struct mirror_epoch epoch_get(struct rcursor *c)
{
	uint64_t number = rcursor_le(c, 8);

	return (struct mirror_epoch){.number = number, .nonce = rcursor_le(c, 8)};
}

#endif
