/* SPDX-License-Identifier: BSD-3-Clause */
/* A primary's lease has always ended before a candidate may be promoted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mirror/core/candidate.h"
#include "mirror/core/lease.h"

static const struct mirror_epoch epoch = {3, 9};

static void it_counts_from_the_sending(void **state)
{
	struct lease l;

	(void)state;
	lease_init(&l, 5000);
	assert_false(lease_holds(&l, 0));
	assert_false(lease_holds(&l, 100));
	lease_on_confirmed(&l, 100);
	assert_true(lease_holds(&l, 100 + 4499));
	assert_false(lease_holds(&l, 100 + 4500));
	lease_on_confirmed(&l, 2000);
	lease_on_confirmed(&l, 1000); /* a late answer */
	assert_true(lease_holds(&l, 2000 + 4499));
	lease_end(&l);
	assert_false(lease_holds(&l, 2000));
	lease_on_confirmed(&l, 9000);
	assert_false(lease_holds(&l, 9000));
}

static struct candidate_read at_once(uint64_t ms)
{
	return (struct candidate_read){ms, ms};
}

static void a_candidate_waits_a_lease_without_any_change(void **state)
{
	struct candidate c;
	struct mirror_epoch next = {4, 1};

	(void)state;
	candidate_init(&c, 5000);
	assert_int_equal(candidate_due(&c), UINT64_MAX);
	assert_false(candidate_on_alive(&c, epoch, 7, 40, at_once(1000)));
	assert_int_equal(candidate_due(&c), 6000);
	assert_false(candidate_on_alive(&c, epoch, 7, 40, at_once(5999)));
	assert_true(candidate_on_alive(&c, epoch, 7, 40, at_once(6000)));
	assert_false(candidate_on_alive(&c, epoch, 8, 41, at_once(6001)));
	assert_false(
		/* another process wrote the key, so the wait begins again */
		candidate_on_alive(&c, epoch, 8, 42, at_once(11000)));
	assert_false(candidate_on_alive(&c, next, 8, 42, at_once(15999)));
	assert_true(candidate_on_alive(&c, next, 8, 42, at_once(20999)));
	assert_true(candidate_on_cleared(&c));
	assert_false(candidate_on_alive(&c, next, 8, 42, at_once(21000)));
}

/* A slow read may return a key that was written just before the answer, so the time counts from the
 * answer. */
static void a_slow_read_makes_no_lease_shorter(void **state)
{
	struct candidate c;

	(void)state;
	candidate_init(&c, 5000);
	assert_false(candidate_on_alive(&c, epoch, 7, 40, (struct candidate_read){1000, 2500}));
	assert_int_equal(candidate_due(&c), 7500);
	assert_false(candidate_on_alive(&c, epoch, 7, 40, (struct candidate_read){2000, 2400}));
	assert_false(candidate_on_alive(&c, epoch, 7, 40, (struct candidate_read){7499, 9000}));
	assert_true(candidate_on_alive(&c, epoch, 7, 40, (struct candidate_read){7500, 7501}));
}

/*
 * While the register has no leader, a member of it may give an old answer. An old answer may begin
 * the wait for the lease's end, but only a read that cannot be old may end the wait.
 */
static void a_sight_begins_the_lease_and_never_ends_it(void **state)
{
	struct mirror_epoch next = {4, 1};
	struct candidate c;

	(void)state;
	candidate_init(&c, 5000);
	candidate_on_sight(&c, epoch, 7, 40, 1000);
	assert_int_equal(candidate_due(&c), 6000);
	/* a member of the register with an older state answered */
	candidate_on_sight(&c, epoch, 6, 39, 2000);
	assert_int_equal(candidate_due(&c), 6000);
	assert_false(candidate_on_alive(&c, epoch, 7, 40, at_once(5999)));
	assert_true(candidate_on_alive(&c, epoch, 7, 40, at_once(6000)));
	candidate_on_sight(&c, epoch, 8, 41, 6500);
	assert_int_equal(candidate_due(&c), 11500);
	/* The key was renewed meanwhile, and the member that answered did not have the renewal
	 * yet. */
	assert_false(candidate_on_alive(&c, epoch, 9, 42, at_once(11500)));
	assert_int_equal(candidate_due(&c), 16500);
	candidate_on_sight(&c, next, 0, 43, 17000);
	assert_int_equal(candidate_due(&c), 22000);
	/* The register was restored to an older state. */
	assert_false(candidate_on_alive(&c, epoch, 7, 40, at_once(22000)));
	assert_true(candidate_on_cleared(&c));
	candidate_on_sight(&c, epoch, 7, 40, 23000); /* an answer from before the restore */
	assert_true(candidate_on_cleared(&c));
}

/*
 * The renewal is sent at time 0, and is written and seen immediately, which makes the lease as
 * short as possible. The clocks' rates differ by 5 % each.
 */
static void the_margin_covers_clocks_that_drift(void **state)
{
	struct candidate c;
	struct lease l;

	(void)state;
	for (uint32_t lease = 100; lease <= 60000; lease += 700) {
		uint64_t at = 0; /* the true time; the primary's clock is 5 % slow */

		lease_init(&l, lease);
		candidate_init(&c, lease);
		lease_on_confirmed(&l, 0);
		assert_false(candidate_on_alive(&c, epoch, 1, 1, at_once(0)));
		while (!candidate_on_alive(&c, epoch, 1, 1, at_once(at * 105 / 100)))
			at++; /* the candidate's clock is 5 % fast */
		assert_false(lease_holds(&l, at * 95 / 100));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_from_the_sending),
		cmocka_unit_test(a_candidate_waits_a_lease_without_any_change),
		cmocka_unit_test(a_slow_read_makes_no_lease_shorter),
		cmocka_unit_test(a_sight_begins_the_lease_and_never_ends_it),
		cmocka_unit_test(the_margin_covers_clocks_that_drift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
