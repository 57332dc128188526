/* SPDX-License-Identifier: BSD-3-Clause */
/* Which copy is wrong if copies differ, and how this finding is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mirror/core/finding.h"

static void copies_vote(void **state)
{
	/* arguments: number of copies, copies that differ from the primary's, copies that agree
	 * with it */
	assert_int_equal(finding_judge(2, 1, 1), FINDING_UNDECIDED);
	assert_int_equal(finding_judge(3, 1, 1), FINDING_MEMBER);
	assert_int_equal(finding_judge(3, 2, 2), FINDING_PRIMARY);
	assert_int_equal(finding_judge(3, 2, 1), FINDING_UNDECIDED);
	assert_int_equal(finding_judge(4, 1, 1), FINDING_MEMBER);
	assert_int_equal(finding_judge(4, 2, 2), FINDING_UNDECIDED); /* two copies against two */
	assert_int_equal(finding_judge(4, 3, 2), FINDING_UNDECIDED);
	assert_int_equal(finding_judge(4, 3, 3), FINDING_PRIMARY);
	assert_int_equal(finding_judge(5, 2, 2), FINDING_MEMBER);
	assert_int_equal(finding_judge(5, 3, 3), FINDING_PRIMARY);
	assert_int_equal(finding_judge(8, 4, 4), FINDING_UNDECIDED);
}

static void add(struct findings *f, mirror_mask members, enum finding_wrong wrong, bool is_due,
		uint64_t offset)
{
	const struct finding finding = {members, (uint8_t)wrong, is_due, {offset, 4096}};

	findings_add(f, &finding);
}

static void what_two_members_have_in_common_is_one_finding(void **state)
{
	struct findings f = {0};

	assert_false(findings_has_any(&f));
	add(&f, 2, FINDING_PRIMARY, false, 0);
	add(&f, 4, FINDING_PRIMARY, false, 0);
	add(&f, 4, FINDING_PRIMARY, false, 8192);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.list[0].members, 6);
	assert_int_equal(findings_bytes(&f), 3 * 4096);
	assert_true(findings_has_wrong(&f, FINDING_PRIMARY));
	assert_false(findings_has_wrong(&f, FINDING_MEMBER));
}

static void a_member_that_is_compared_anew_is_forgotten(void **state)
{
	struct findings f = {0};

	add(&f, 6, FINDING_PRIMARY, false, 0);
	add(&f, 4, FINDING_UNDECIDED, false, 4096);
	findings_forget(&f, 4);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.list[0].members, 2);
	findings_forget(&f, 0xff);
	assert_false(findings_has_any(&f));
}

static void what_has_no_room_still_counts(void **state)
{
	struct findings f = {0};

	for (unsigned i = 0; i < FINDINGS_MAX + 3; i++)
		add(&f, 2, FINDING_UNDECIDED, false, i * 8192);
	assert_int_equal(f.count, FINDINGS_MAX);
	assert_int_equal(f.more, 3 * 4096);
	assert_int_equal(findings_bytes(&f), (FINDINGS_MAX + 3) * 4096);
	findings_forget(&f, 4);
	assert_int_equal(f.more, 3 * 4096);
	findings_forget(&f, 2);
	assert_false(findings_has_any(&f));
}

/* Only the return of the member that the finding is about makes its range equal. */
static void what_is_due_has_come_with_the_return(void **state)
{
	struct findings f = {0};

	add(&f, 4, FINDING_MEMBER, true, 0);
	add(&f, 4, FINDING_UNDECIDED, false, 4096);
	assert_false(findings_on_insync(&f, 3));
	assert_true(findings_on_insync(&f, 7));
	assert_int_equal(f.count, 1);
	assert_int_equal(f.list[0].range.offset, 4096);
	assert_false(findings_on_insync(&f, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_vote),
		cmocka_unit_test(what_two_members_have_in_common_is_one_finding),
		cmocka_unit_test(a_member_that_is_compared_anew_is_forgotten),
		cmocka_unit_test(what_has_no_room_still_counts),
		cmocka_unit_test(what_is_due_has_come_with_the_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
