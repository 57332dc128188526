/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/file_ranges.h"

#include <stdlib.h>
#include <string.h>

static int file_range_compare(const void *a, const void *b)
{
	const struct file_range_noted *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

void file_ranges_merge(struct file_ranges *r, uint64_t ticket)
{
	unsigned kept = 0;

	qsort(r->noted, r->count, sizeof(r->noted[0]), file_range_compare);
	for (unsigned i = 0; i < r->count; i++) {
		struct file_range_noted *last = &r->noted[kept ? kept - 1 : 0];

		if (kept && r->noted[i].from <= last->to) {
			if (r->noted[i].to > last->to)
				last->to = r->noted[i].to;
		} else {
			r->noted[kept++] = r->noted[i];
		}
	}
	r->count = kept;
	for (unsigned i = 0; i < kept; i++)
		r->noted[i].ticket = ticket;
}

/* Halve the number of ranges: two neighbours become one range, together with the bytes between
 * them. */
static void file_ranges_halve(struct file_ranges *r)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < r->count; i += 2) {
		r->noted[kept] = r->noted[i];
		if (i + 1 < r->count)
			r->noted[kept].to = r->noted[i + 1].to;
		kept++;
	}
	r->count = kept;
}

void file_ranges_make_room(struct file_ranges *r, uint64_t ticket)
{
	file_ranges_merge(r, ticket);
	if (r->count > FILE_RANGES_MAX / 2)
		file_ranges_halve(r);
}

void file_ranges_decide_some(struct file_ranges *r, uint64_t ticket)
{
	unsigned n = 0;

	while (r->noted[n].ticket <= ticket)
		n++;
	memmove(r->noted, r->noted + n, (r->count - n) * sizeof(r->noted[0]));
	r->count -= n;
}

/* Keep the parts of a noted range that are outside [from, to), and return their number. If the
 * array has no room for a second part, the range stays unchanged. */
static unsigned file_range_cut(struct file_range_noted *noted, uint64_t from, uint64_t to,
			       bool has_room)
{
	struct file_range_noted was = *noted;

	if (to <= was.from || from >= was.to)
		return 1;
	if (from <= was.from && to >= was.to)
		return 0;
	if (from > was.from && to < was.to) {
		if (!has_room)
			return 1;
		noted[0].to = from;
		return 2;
	}
	if (from <= was.from)
		noted->from = to;
	else
		noted->to = from;
	return 1;
}

static void file_ranges_insert(struct file_ranges *r, unsigned at, struct file_range_noted noted)
{
	memmove(r->noted + at + 1, r->noted + at, (r->count - at) * sizeof(r->noted[0]));
	r->noted[at] = noted;
	r->count++;
}

static void file_ranges_remove(struct file_ranges *r, unsigned at)
{
	r->count--;
	memmove(r->noted + at, r->noted + at + 1, (r->count - at) * sizeof(r->noted[0]));
}

void file_ranges_decide(struct file_ranges *r, const struct rpma_file_range *range, uint64_t ticket)
{
	uint64_t from = range->offset, to = from + range->length;

	for (unsigned i = 0; i < r->count && r->noted[i].ticket <= ticket;) {
		struct file_range_noted was = r->noted[i];
		unsigned left =
			file_range_cut(&r->noted[i], from, to, r->count + 1 < FILE_RANGES_MAX);

		if (left == 0)
			file_ranges_remove(r, i);
		if (left == 2)
			file_ranges_insert(r, i + 1,
					   (struct file_range_noted){to, was.to, was.ticket});
		i += left;
	}
}
