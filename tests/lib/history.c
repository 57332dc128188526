/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/history.h"

#include <stdlib.h>

/* The zone of all operations on one value of one register (history.h). */
struct zone {
	uint64_t first_end, last_begin;
	/* ends: the operation that ends first; begins: the operation that begins last */
	const struct history_op *ends, *begins;
};

static bool zone_is_forward(const struct zone *z)
{
	return z->first_end < z->last_begin;
}

static uint64_t zone_low(const struct zone *z)
{
	return zone_is_forward(z) ? z->first_end : z->last_begin;
}

static uint64_t zone_high(const struct zone *z)
{
	return zone_is_forward(z) ? z->last_begin : z->first_end;
}

static struct history_verdict verdict(enum history_fault fault, const struct history_op *a,
				      const struct history_op *b)
{
	return (struct history_verdict){.fault = fault, .a = *a, .b = *b};
}

/* Sort by register, then by value; the write of a value precedes its reads. */
static int op_compare(const void *left, const void *right)
{
	const struct history_op *a = left, *b = right;

	if (a->reg != b->reg)
		return a->reg < b->reg ? -1 : 1;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return b->is_write - a->is_write;
}

static int zone_compare(const void *left, const void *right)
{
	uint64_t a = zone_low(left), b = zone_low(right);

	return a < b ? -1 : a > b;
}

/* Find the zone of ops[0..count), which have the same value. The value 0 counts as written before
 * any time. */
static struct history_verdict zone_of(const struct history_op *ops, size_t count, struct zone *z)
{
	bool is_written = ops->is_write;

	if (!is_written && ops->value)
		return verdict(HISTORY_VALUE_UNKNOWN, ops, ops);
	if (ops->is_write && (!ops->value || (count > 1 && ops[1].is_write)))
		return verdict(HISTORY_VALUE_TWICE, ops, &ops[count > 1]);
	*z = (struct zone){.first_end = is_written ? ops->end : 0,
			   .last_begin = ops->begin,
			   .ends = ops,
			   .begins = ops};
	for (size_t i = 1; i < count; i++) {
		if (ops[i].end < ops->begin && is_written)
			return verdict(HISTORY_READ_TOO_EARLY, &ops[i], ops);
		if (is_written && ops[i].end < z->first_end) {
			z->first_end = ops[i].end;
			z->ends = &ops[i];
		}
		if (ops[i].begin > z->last_begin) {
			z->last_begin = ops[i].begin;
			z->begins = &ops[i];
		}
	}
	return (struct history_verdict){.fault = HISTORY_IS_FINE};
}

/* A forward zone is one in which the register had the value throughout. Forward zones must not
 * overlap, and no other zone must lie inside a forward zone. */
static struct history_verdict check_zones(struct zone *zones, size_t count)
{
	const struct zone *latest = NULL; /* the forward zone that has the highest end so far */

	qsort(zones, count, sizeof(zones[0]), zone_compare);
	for (size_t i = 0; i < count; i++) {
		const struct zone *z = &zones[i];

		if (latest && zone_is_forward(z) && zone_low(z) < zone_high(latest))
			return verdict(HISTORY_OUT_OF_ORDER, latest->begins, z->ends);
		if (latest && !zone_is_forward(z) && zone_low(latest) < zone_low(z) &&
		    zone_high(z) < zone_high(latest))
			return verdict(HISTORY_OUT_OF_ORDER, latest->begins, z->ends);
		if (zone_is_forward(z) && (!latest || zone_high(z) > zone_high(latest)))
			latest = z;
	}
	return (struct history_verdict){.fault = HISTORY_IS_FINE};
}

/* Check ops[0..count), which have the same register. */
static struct history_verdict check_register(const struct history_op *ops, size_t count,
					     struct zone *zones)
{
	struct history_verdict found = {.fault = HISTORY_IS_FINE};
	size_t n = 0;

	for (size_t i = 0, next; i < count && !found.fault; i = next) {
		for (next = i + 1; next < count && ops[next].value == ops[i].value;)
			next++;
		/* A write without an answer possibly had no effect, unless a read returned its
		 * value. */
		if (next == i + 1 && ops[i].is_unsure)
			continue;
		found = zone_of(&ops[i], next - i, &zones[n++]);
	}
	return found.fault ? found : check_zones(zones, n);
}

struct history_verdict history_check(struct history_op *ops, size_t count)
{
	struct history_verdict found = {.fault = HISTORY_IS_FINE};
	struct zone *zones = calloc(count + 1, sizeof(zones[0]));

	if (!zones)
		abort();
	qsort(ops, count, sizeof(ops[0]), op_compare);
	for (size_t i = 0, next; i < count && !found.fault; i = next) {
		for (next = i + 1; next < count && ops[next].reg == ops[i].reg;)
			next++;
		found = check_register(&ops[i], next - i, zones);
	}
	free(zones);
	return found;
}

const char *history_fault_2str(enum history_fault fault)
{
	static const char *const texts[] = {
		[HISTORY_IS_FINE] = "linearizable",
		[HISTORY_VALUE_TWICE] = "a value was written twice",
		[HISTORY_VALUE_UNKNOWN] = "a value was read that nobody wrote",
		[HISTORY_READ_TOO_EARLY] = "a value was read before it was written",
		[HISTORY_OUT_OF_ORDER] = "a value was there before and after another one",
	};

	return texts[fault];
}
