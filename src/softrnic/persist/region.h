/* SPDX-License-Identifier: BSD-3-Clause */
/* region.h -- how a region is stored: as ranges of one durability class each. */
#ifndef PERSIST_REGION_H
#define PERSIST_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/file.h"
#include "softrnic/persist/persist.h"

struct range {
	uintptr_t start, end;
	enum vext_durability cls;
	struct file *file; /* NULL: the range is volatile */
	uint64_t offset;   /* offset of `start` in the file */
	bool syncs;        /* msync() of the application's mapping has an effect */
	unsigned own;      /* the file's own_epoch if it had an own mapping (ownmap.h); else 0 */
};

/* Does the file still have the own mapping that it had when the range was registered? A younger own
 * mapping does not report earlier losses, which the kernel may still report to the application's
 * mapping. */
bool range_has_own(const struct range *r);
/* Can the library's own mapping write back [start, end) of this range, without the application's
 * mapping? */
bool range_is_lasting(const struct range *r, uintptr_t start, uintptr_t end);

/* The ranges ascend without gaps and cover [start, end). After creation only `refs` changes. */
struct persist_region {
	atomic_uint refs;
	bool can_stall;
	uintptr_t start, end;
	size_t count, room;
	struct range *ranges;
	char why[192]; /* one line: path, file system, kind of mapping */
};

/* The range that contains addr, an address inside the region. */
const struct range *region_range_at(const struct persist_region *region, uintptr_t addr);

#endif
