/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * badblocks.h -- blocks of a copy's data file that the medium cannot give back.
 *
 * A store into an unreadable mapped page faults, as the page is read first. A write of whole blocks
 * past the page cache does not: a disk then uses another sector, and the driver of persistent
 * memory clears the poison.
 */
#ifndef MIRROR_FILE_BADBLOCKS_H
#define MIRROR_FILE_BADBLOCKS_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "mirror/core/types.h"

struct badblocks {
	uint32_t cleared; /* blocks that could not be read, and are zeros, durably */
	uint64_t offset;  /* offset of the block that failed */
};

/* Is that errno a medium's? Other errors are no sign of a bad block. */
bool badblocks_is_of_medium(int error);

/*
 * The blocks of the range that cannot be read become zeros; the others are not written to. The
 * range has whole blocks, and nothing else writes to it meanwhile. 0 if all of it can be read then,
 * else -errno: ENODATA if the file ends before it. May take long, as a disk tries again and again.
 */
int badblocks_clear(int fd, enum rpma_durability durability, struct mirror_range range,
		    struct badblocks *found);

#endif
