/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/ranges.h"

#include <stdlib.h>

uint32_t ranges_clip(struct mirror_range *v, uint32_t n, uint64_t size)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t most = v[i].offset < size ? size - v[i].offset : 0;

		if (!most)
			continue;
		v[left] = v[i];
		if (v[left].len > most)
			v[left].len = most;
		left++;
	}
	return left;
}

static int ranges_compare(const void *a, const void *b)
{
	const struct mirror_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool ranges_are_sorted(const struct mirror_range *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (v[i].offset < v[i - 1].offset)
			return false;
	return true;
}

static uint32_t ranges_drop_empty(struct mirror_range *v, uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (v[i].len)
			v[left++] = v[i];
	return left;
}

/* Join sorted, non-empty ranges that overlap, or whose gap is at most `gap`. */
static uint32_t ranges_join(struct mirror_range *v, uint32_t n, uint64_t gap)
{
	uint32_t last = 0;

	if (!n)
		return 0;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t end = v[last].offset + v[last].len;

		if (v[i].offset > end && v[i].offset - end > gap)
			v[++last] = v[i];
		else if (v[i].offset + v[i].len > end)
			v[last].len = v[i].offset + v[i].len - v[last].offset;
	}
	return last + 1;
}

uint32_t ranges_normalise(struct mirror_range *v, uint32_t n)
{
	n = ranges_drop_empty(v, n);
	if (!ranges_are_sorted(v, n))
		qsort(v, n, sizeof(*v), ranges_compare);
	return ranges_join(v, n, 0);
}

uint32_t ranges_round(struct mirror_range *v, uint32_t n, uint64_t unit, uint64_t size)
{
	n = ranges_drop_empty(v, n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t begin = v[i].offset - v[i].offset % unit;
		uint64_t end = v[i].offset + v[i].len;

		if (end % unit)
			end += unit - end % unit;
		if (end > size)
			end = size;
		v[i].offset = begin;
		v[i].len = end - begin;
	}
	return ranges_normalise(v, n);
}

uint32_t ranges_coarsen(struct mirror_range *v, uint32_t n, uint32_t max, uint64_t size)
{
	if (n > max)
		n = ranges_round(v, n, MIRROR_BLOCK, size);
	for (uint64_t gap = MIRROR_BLOCK; n > max && gap < size; gap *= 2)
		n = ranges_join(v, n, gap);
	return n > max ? ranges_join(v, n, size) : n;
}

bool ranges_overlap(const struct mirror_range *a, uint32_t an, const struct mirror_range *b,
		    uint32_t bn)
{
	uint32_t i = 0, j = 0;

	while (i < an && j < bn) {
		if (a[i].offset + a[i].len <= b[j].offset)
			i++;
		else if (b[j].offset + b[j].len <= a[i].offset)
			j++;
		else
			return true;
	}
	return false;
}
