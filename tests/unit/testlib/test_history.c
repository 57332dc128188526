/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "lib/history.h"

#define OPS_MAX 7

/* Try every order that the times permit. Returns true if the remaining operations can take
 * effect. */
static bool search(const struct history_op *ops, unsigned count, unsigned taken, uint64_t value)
{
	uint64_t first_end = UINT64_MAX;
	bool is_done = true;

	for (unsigned i = 0; i < count; i++)
		if (!(taken >> i & 1)) {
			is_done = is_done && ops[i].is_unsure;
			if (!ops[i].is_unsure && ops[i].end < first_end)
				first_end = ops[i].end;
		}
	if (is_done)
		return true;
	for (unsigned i = 0; i < count; i++) {
		/*
		 * This operation can be next only if each remaining operation ends after it begins.
		 * An unacknowledged operation must take effect before any operation that began
		 * after its end.
		 */
		if (taken >> i & 1 || ops[i].begin > first_end)
			continue;
		if (ops[i].is_unsure) {
			bool too_late = false;

			for (unsigned j = 0; j < count; j++)
				if (taken >> j & 1 && ops[j].begin > ops[i].end)
					too_late = true;
			if (too_late)
				continue;
		}
		if (!ops[i].is_write && ops[i].value != value)
			continue;
		if (search(ops, count, taken | 1u << i, ops[i].is_write ? ops[i].value : value))
			return true;
	}
	return false;
}

/* All times differ, so that the order of any two is known. */
static unsigned make(struct history_op *ops, uint64_t *seed)
{
	unsigned count = 2 + (unsigned)(test_random(seed) % (OPS_MAX - 1)), writes = 0;
	uint64_t used = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t t[2];

		for (unsigned k = 0; k < 2; k++) {
			do
				t[k] = 1 + test_random(seed) % 60;
			while (used >> t[k] & 1);
			used |= 1ull << t[k];
		}
		ops[i] = (struct history_op){.begin = t[0] < t[1] ? t[0] : t[1],
					     .end = t[0] < t[1] ? t[1] : t[0],
					     .is_write = test_random(seed) % 2};
		if (ops[i].is_write) {
			ops[i].value = ++writes;
			ops[i].is_unsure = test_random(seed) % 4 == 0;
		}
	}
	for (unsigned i = 0; i < count; i++)
		if (!ops[i].is_write)
			ops[i].value = test_random(seed) % (writes + 1);
	return count;
}

static void it_agrees_with_a_search_of_all_orders(void **state)
{
	uint64_t seed = 20261122;
	unsigned fine = 0, wrong = 0;

	for (unsigned round = 0; round < 40000; round++) {
		struct history_op ops[OPS_MAX];
		unsigned count = make(ops, &seed);
		bool expected = search(ops, count, 0, 0);
		struct history_verdict found = history_check(ops, count);

		if (expected != (found.fault == HISTORY_IS_FINE))
			fail_msg("round %u: %s, a search says %s", round,
				 history_fault_2str(found.fault), expected ? "fine" : "wrong");
		fine += expected;
		wrong += !expected;
	}
	/* Both results must be frequent. */
	assert_true(fine > 4000 && wrong > 4000);
}

static enum history_fault judge(const struct history_op *ops, size_t count)
{
	struct history_op copy[OPS_MAX];

	memcpy(copy, ops, count * sizeof(ops[0]));
	return history_check(copy, count).fault;
}

static void an_acknowledged_write_that_is_gone_is_noticed(void **state)
{
	const struct history_op ops[] = {
		{.value = 1, .begin = 10, .end = 20, .is_write = true},
		{.value = 2, .begin = 30, .end = 40, .is_write = true},
		{.value = 1, .begin = 50, .end = 60},
	};

	assert_int_equal(judge(ops, 3), HISTORY_OUT_OF_ORDER);
}

static void a_value_that_was_read_must_not_disappear(void **state)
{
	const struct history_op ops[] = {
		{.value = 1, .begin = 10, .end = UINT64_MAX, .is_write = true, .is_unsure = true},
		{.value = 1, .begin = 20, .end = 30},
		{.value = 0, .begin = 40, .end = 50},
	};

	assert_int_equal(judge(ops, 3), HISTORY_OUT_OF_ORDER);
	assert_int_equal(judge(ops, 2), HISTORY_IS_FINE);
}

/* An unacknowledged write of an earlier epoch must not take effect after the next epoch has
 * begun. */
static void an_unsure_write_does_not_take_effect_after_its_end(void **state)
{
	struct history_op ops[] = {
		{.value = 1, .begin = 10, .end = 25, .is_write = true, .is_unsure = true},
		{.value = 0, .begin = 30, .end = 40},
		{.value = 1, .begin = 50, .end = 60},
	};

	assert_int_equal(judge(ops, 3), HISTORY_OUT_OF_ORDER);
	ops[0].end = 45;
	assert_int_equal(judge(ops, 3), HISTORY_IS_FINE);
}

static void what_nobody_wrote_is_noticed(void **state)
{
	const struct history_op ops[] = {
		{.value = 7, .begin = 10, .end = 20},
		{.value = 8, .begin = 30, .end = 40, .is_write = true},
		{.value = 8, .begin = 10, .end = 20},
		{.value = 8, .begin = 50, .end = 60, .is_write = true},
	};

	assert_int_equal(judge(ops, 1), HISTORY_VALUE_UNKNOWN);
	assert_int_equal(judge(ops + 1, 2), HISTORY_READ_TOO_EARLY);
	assert_int_equal(judge(ops + 1, 3), HISTORY_VALUE_TWICE);
}

static void registers_are_judged_each_for_itself(void **state)
{
	struct history_op ops[] = {
		{.reg = 1, .value = 1, .begin = 10, .end = 20, .is_write = true},
		{.reg = 2, .value = 1, .begin = 12, .end = 22, .is_write = true},
		{.reg = 2, .value = 0, .begin = 5, .end = 11},
		{.reg = 1, .value = 0, .begin = 30, .end = 40},
	};
	struct history_verdict found = history_check(ops, 4);

	assert_int_equal(found.fault, HISTORY_OUT_OF_ORDER);
	assert_int_equal(found.a.reg, 1);
	assert_int_equal(found.b.reg, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_agrees_with_a_search_of_all_orders),
		cmocka_unit_test(an_acknowledged_write_that_is_gone_is_noticed),
		cmocka_unit_test(a_value_that_was_read_must_not_disappear),
		cmocka_unit_test(an_unsure_write_does_not_take_effect_after_its_end),
		cmocka_unit_test(what_nobody_wrote_is_noticed),
		cmocka_unit_test(registers_are_judged_each_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
