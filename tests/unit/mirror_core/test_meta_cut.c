/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of writes (rules W1 to W9 of doc/mirror-format.md) under power cuts. The power is cut
 * at every persist call of every step, and the medium then has any mixture of written-back words.
 * The writes of an answered step must be on the medium. The writes of an unanswered step may be
 * there or not. No byte may be damaged. The same steps then run with a medium that does not write
 * one region, which the check of each rule must notice.
 */
#include "unit/mirror_core/steps.h"

#include "lib/unit.h"

#define CUTS_A_CALL 25

static struct two_layers base, work;

static void boot_up(void)
{
	copy_load(&steps_meta, &work);
	assert_int_equal(member_init(&steps_member, &steps_meta, &steps_boot), 0);
}

static void shut_down(void)
{
	member_fini(&steps_member);
	meta_fini(&steps_meta);
}

static bool cut_load(void)
{
	struct meta_store store = two_layers_store(&work);

	return !meta_load(&steps_meta, &store, NULL);
}

/*
 * Cut the power at that persist call of the step (0: right after the step). Returns the number of
 * calls.
 */
static uint32_t cut_step(const struct step *step, uint32_t at, bool *holds)
{
	uint32_t calls;
	bool done;

	two_layers_copy(&work, &base);
	boot_up();
	step->before();
	two_layers_write_back(&work, test_random(&work.seed) % 2 ? 64 : 0);
	work.persists = 0;
	work.cut_at = at;
	done = step->run() == 0;
	calls = work.persists;
	assert_true(done || work.is_cut);
	shut_down();
	two_layers_reboot(&work);
	*holds = cut_load() && !steps_meta.damage && step->holds(done);
	meta_fini(&steps_meta);
	return calls;
}

static int setup(void **state)
{
	copy_create(&base, 1);
	two_layers_init(&work, base.len, 4711);
	steps_boot = copy_uuid(0x70);
	return 0;
}

static int teardown(void **state)
{
	two_layers_fini(&base);
	two_layers_fini(&work);
	return 0;
}

static void each_step_keeps_its_rule_at_each_cut(void **state)
{
	bool holds;

	for (unsigned i = 0; i < steps_count; i++) {
		uint32_t calls = cut_step(&steps[i], 0, &holds);

		assert_true(calls > 0);
		for (uint32_t at = 0; at <= calls; at++)
			for (unsigned n = 0; n < CUTS_A_CALL; n++) {
				cut_step(&steps[i], at, &holds);
				if (!holds)
					fail_msg("%s: cut at call %u of %u", steps[i].name, at,
						 calls);
			}
	}
}

/* The checks must notice a broken rule: the medium reports bytes as durable that are not. */
static void a_medium_that_lies_is_caught_in_each_step(void **state)
{
	for (unsigned i = 0; i < steps_count; i++) {
		bool caught = false, holds;

		for (unsigned n = 0; n < 200 && !caught; n++) {
			work.lie_from = steps[i].region;
			work.lie_to = steps[i].region_end;
			cut_step(&steps[i], 0, &holds);
			caught = !holds;
			work.lie_from = work.lie_to = 0;
		}
		if (!caught)
			fail_msg("%s: not caught", steps[i].name);
	}
}

/* The power is cut again during the repair after the first cut. */
static void a_restart_that_is_cut_off_harms_nothing(void **state)
{
	bool holds;

	for (unsigned i = 0; i < steps_count; i++) {
		for (unsigned n = 0; n < 20; n++) {
			uint32_t calls = cut_step(&steps[i], 1 + n % 3, &holds);

			(void)calls;
			work.cut_at = 1 + n % 5;
			copy_load(&steps_meta, &work);
			member_init(&steps_member, &steps_meta, &steps_boot);
			shut_down();
			two_layers_reboot(&work);
			copy_load(&steps_meta, &work);
			if (steps_meta.damage || !steps[i].holds(false))
				fail_msg("%s: after a second cut", steps[i].name);
			meta_fini(&steps_meta);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_keeps_its_rule_at_each_cut),
		cmocka_unit_test(a_medium_that_lies_is_caught_in_each_step),
		cmocka_unit_test(a_restart_that_is_cut_off_harms_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
