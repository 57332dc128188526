/* SPDX-License-Identifier: BSD-3-Clause */
/* test_values.c -- the numbers in this project's librpma.h equal the documented numbers and the
 * distribution's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "values.h"

extern const struct abi_value ours[], ours14[];
#ifdef HAVE_THEIRS
extern const struct abi_value theirs[];
#endif

static void expect_documented(const struct abi_value *v)
{
	for (; v->name; v++)
		if (v->value != v->expected)
			fail_msg("%s is %ld instead of %ld", v->name, v->value, v->expected);
}

static void our_numbers_are_the_documented_ones(void **state)
{
	expect_documented(ours);
	expect_documented(ours14);
}

static void our_numbers_are_the_distributions(void **state)
{
#ifdef HAVE_THEIRS
	for (size_t i = 0; ours[i].name; i++) {
		assert_string_equal(ours[i].name, theirs[i].name);
		if (ours[i].value != theirs[i].value)
			fail_msg("%s is %ld instead of %ld", ours[i].name, ours[i].value,
				 theirs[i].value);
	}
#else
	skip(); /* this machine has no other librpma.h */
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_numbers_are_the_documented_ones),
		cmocka_unit_test(our_numbers_are_the_distributions),
	};

	return cmocka_run_group_tests_name("numbers of the header", tests, NULL, NULL);
}
