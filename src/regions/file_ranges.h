/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_ranges.h -- the ranges of a file that were written and may not be durable. Pure.
 *
 * Each write is noted with the ticket of the next sync, which is the first one that can cover it.
 * The answer of sync k decides all ranges noted with k or less. A noted range may be too large, or
 * have a later ticket than necessary; it then stays undecided longer than necessary. The reverse
 * never happens.
 */
#ifndef REGIONS_FILE_RANGES_H
#define REGIONS_FILE_RANGES_H

#include <librpmafile.h>
#include <stdbool.h>

#define FILE_RANGES_MAX 1024

struct file_range_noted {
	uint64_t from, to, ticket;
};

/* Zeroed: nothing was written. Ranges are in the order of their tickets, with room for one more. */
struct file_ranges {
	struct file_range_noted noted[FILE_RANGES_MAX];
	unsigned count;
};

/* Sort and merge the ranges. The ticket that decides them is rounded up to `ticket`. */
void file_ranges_merge(struct file_ranges *r, uint64_t ticket);
void file_ranges_make_room(struct file_ranges *r, uint64_t ticket);

/* Tickets must ascend, and len is not 0. Inline, because each write passes through it. */
static inline void file_ranges_note(struct file_ranges *r, uint64_t from, uint64_t len,
				    uint64_t ticket)
{
	struct file_range_noted *last = r->count ? &r->noted[r->count - 1] : NULL;
	uint64_t to = from + len;

	/* Extend the last range if possible: a log grows at its end, and a counter stays at one
	 * place. */
	if (last && last->ticket == ticket && from <= last->to && to >= last->from) {
		last->from = from < last->from ? from : last->from;
		last->to = to > last->to ? to : last->to;
		return;
	}
	r->noted[r->count++] = (struct file_range_noted){from, to, ticket};
	if (r->count == FILE_RANGES_MAX)
		file_ranges_make_room(r, ticket);
}

/* The sync with that ticket has succeeded: it covered everything, or one range. */
void file_ranges_decide(struct file_ranges *r, const struct rpma_file_range *range,
			uint64_t ticket);
/* for one part of the noted ranges: those up to ticket */
void file_ranges_decide_some(struct file_ranges *r, uint64_t ticket);
static inline void file_ranges_decide_all(struct file_ranges *r, uint64_t ticket)
{
	if (r->count && r->noted[r->count - 1].ticket > ticket)
		file_ranges_decide_some(r, ticket);
	else
		r->count = 0;
}

#endif
