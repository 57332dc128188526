/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * badblocks.h -- finds and clears blocks of a copy's data file that the medium cannot read.
 *
 * A store into an unreadable mapped page faults, because the kernel reads the page first. A write
 * of whole blocks that bypasses the page cache does not fail: a disk then uses another sector, and
 * the driver of persistent memory clears the poison.
 */
#ifndef MIRROR_FILE_BADBLOCKS_H
#define MIRROR_FILE_BADBLOCKS_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "mirror/core/types.h"

struct badblocks {
	uint32_t cleared; /* number of blocks that could not be read and are now zeros, durably */
	uint64_t offset;  /* offset of the block that failed */
};

/* Returns true if this errno shows a bad block of the medium. */
bool badblocks_is_of_medium(int error);

/*
 * Overwrite with zeros those blocks of the range that cannot be read; the other blocks are not
 * written to. The range has whole blocks, and no other code may write to it meanwhile. Returns 0 if
 * the whole range can be read afterwards, else -errno (ENODATA: the file ends before the range
 * does). The call may take long, because a disk repeats its attempts.
 */
int badblocks_clear(int fd, enum rpma_durability durability, struct mirror_range range,
		    struct badblocks *found);

#endif
