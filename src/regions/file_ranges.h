/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_ranges.h -- the ranges of a file that were written and may not be durable. Pure.
 *
 * Each write is noted with the ticket of the next sync, which is the first sync that can cover the
 * write. The answer of sync k decides all ranges noted with k or less. A noted range may be larger
 * than its writes, or have a later ticket than necessary; then it stays undecided longer than
 * necessary. A range is never decided too early.
 */
#ifndef REGIONS_FILE_RANGES_H
#define REGIONS_FILE_RANGES_H

#include <librpmafile.h>
#include <stdbool.h>

#define FILE_RANGES_MAX 1024

struct file_range_noted {
	uint64_t from, to, ticket;
};

/* Zeroed: nothing was written. The ranges are in the order of their tickets, and the array always
 * has room for another range. */
struct file_ranges {
	struct file_range_noted noted[FILE_RANGES_MAX];
	unsigned count;
};

/* Sort and merge the ranges. All ranges get `ticket`, which must not be earlier than their own
 * tickets. */
void file_ranges_merge(struct file_ranges *r, uint64_t ticket);
void file_ranges_make_room(struct file_ranges *r, uint64_t ticket);

/* Tickets must ascend, and len must not be 0. Inline, because each write calls this function. */
static inline void file_ranges_note(struct file_ranges *r, uint64_t from, uint64_t len,
				    uint64_t ticket)
{
	struct file_range_noted *last = r->count ? &r->noted[r->count - 1] : NULL;
	uint64_t to = from + len;

	/* Extend the last range if possible: a log grows at its end, and a counter stays at the
	 * same position. */
	if (last && last->ticket == ticket && from <= last->to && to >= last->from) {
		last->from = from < last->from ? from : last->from;
		last->to = to > last->to ? to : last->to;
		return;
	}
	r->noted[r->count++] = (struct file_range_noted){from, to, ticket};
	if (r->count == FILE_RANGES_MAX)
		file_ranges_make_room(r, ticket);
}

/* Record that the sync with that ticket has succeeded. range: the range that the sync covered;
 * NULL: it covered everything. */
void file_ranges_decide(struct file_ranges *r, const struct rpma_file_range *range,
			uint64_t ticket);
/* used by file_ranges_decide_all() if only the ranges up to `ticket` are decided */
void file_ranges_decide_some(struct file_ranges *r, uint64_t ticket);
static inline void file_ranges_decide_all(struct file_ranges *r, uint64_t ticket)
{
	if (r->count && r->noted[r->count - 1].ticket > ticket)
		file_ranges_decide_some(r, ticket);
	else
		r->count = 0;
}

#endif
