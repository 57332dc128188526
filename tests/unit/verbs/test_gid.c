/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the GID table, and addresses in the form of GIDs. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/unit.h"

#include "softrnic/verbs/gid.h"

static struct link_interface of(const char *text, uint32_t index)
{
	struct link_interface i = {.index = index};

	i.addr.family = strchr(text, ':') ? LINK_IPV6 : LINK_IPV4;
	assert_int_equal(
		inet_pton(i.addr.family == LINK_IPV6 ? AF_INET6 : AF_INET, text, i.addr.bytes), 1);
	if (!strncmp(text, "fe80", 4))
		i.addr.scope = index;
	return i;
}

static void expect_row(const struct gid_table *t, unsigned index, const char *gid, uint32_t ifindex)
{
	char text[INET6_ADDRSTRLEN];

	assert_in_range(index, 0, t->n - 1);
	inet_ntop(AF_INET6, t->rows[index].gid.raw, text, sizeof(text));
	assert_string_equal(text, gid);
	assert_int_equal(t->rows[index].ifindex, ifindex);
}

static void the_primary_address_has_four_rows_and_others_follow_by_kind(void **state)
{
	struct link_interface list[] = {of("::1", 1),     of("127.0.0.1", 1),    of("fe80::1", 2),
					of("fd00::2", 2), of("198.51.100.1", 3), of("10.0.0.1", 2)};
	struct gid_table t = {0};

	gid_table_fill(&t, &list[5], list, 6, false);
	assert_int_equal(t.n, 9);
	for (unsigned i = 0; i < GID_PRIMARIES; i++)
		expect_row(&t, i, "::ffff:10.0.0.1", 2);
	expect_row(&t, 4, "::ffff:198.51.100.1", 3);
	expect_row(&t, 5, "fd00::2", 2);
	expect_row(&t, 6, "fe80::1", 2);
	expect_row(&t, 7, "::ffff:127.0.0.1", 1);
	expect_row(&t, 8, "::1", 1);
}

static void rows_never_change_and_new_addresses_are_appended(void **state)
{
	struct link_interface first[] = {of("10.0.0.1", 2), of("127.0.0.1", 1)};
	struct link_interface later[] = {of("10.0.0.9", 3), of("127.0.0.1", 1)};
	struct gid_table t = {0};

	gid_table_fill(&t, &first[0], first, 2, false);
	gid_table_fill(&t, NULL, later, 2, false);
	assert_int_equal(t.n, 6);
	expect_row(&t, 0, "::ffff:10.0.0.1", 2);
	expect_row(&t, 4, "::ffff:127.0.0.1", 1);
	expect_row(&t, 5, "::ffff:10.0.0.9", 3);
	gid_table_fill(&t, NULL, later, 2, false);
	assert_int_equal(t.n, 6);
}

static void one_row_always_stays_empty(void **state)
{
	struct link_interface list[GID_ROWS + 4];
	struct gid_table t = {0};
	char text[16];

	for (unsigned i = 0; i < GID_ROWS + 4; i++) {
		snprintf(text, sizeof(text), "10.0.1.%u", i + 1);
		list[i] = of(text, 1);
	}
	gid_table_fill(&t, &list[0], list, GID_ROWS + 4, false);
	assert_int_equal(t.n, GID_ROWS - 1);
	gid_table_fill(&t, NULL, list, GID_ROWS + 4, false);
	assert_int_equal(t.n, GID_ROWS - 1);
}

static void an_address_of_one_link_is_there_once_a_link(void **state)
{
	struct link_interface list[] = {of("fe80::1", 2), of("fe80::1", 3)};
	struct gid_table t = {0};

	gid_table_fill(&t, &list[0], list, 2, false);
	assert_int_equal(t.n, 5);
	expect_row(&t, 4, "fe80::1", 3);
}

static void a_given_order_is_kept(void **state)
{
	struct link_interface list[] = {of("127.0.0.1", 1), of("fd00::2", 2), of("10.0.0.1", 2)};
	struct gid_table t = {0};

	gid_table_fill(&t, &list[0], list, 3, true);
	expect_row(&t, 3, "::ffff:127.0.0.1", 1);
	expect_row(&t, 4, "fd00::2", 2);
	expect_row(&t, 5, "::ffff:10.0.0.1", 2);
}

static void addresses_that_name_no_host_have_no_row(void **state)
{
	struct link_interface list[] = {of("0.0.0.0", 1),         of("224.0.0.1", 1),
					of("255.255.255.255", 1), of("::", 1),
					of("ff02::1", 1),         of("10.0.0.1", 1)};
	struct gid_table t = {0};

	for (unsigned i = 0; i < 5; i++)
		assert_false(gid_is_possible(&list[i].addr));
	gid_table_fill(&t, &list[5], list, 6, true);
	assert_int_equal(t.n, GID_PRIMARIES);
}

static void a_gid_is_its_address(void **state)
{
	static const char *const texts[] = {"10.1.2.3", "fd00::2", "fe80::5", "::1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct link_interface from = of(texts[i], 7);
		union ibv_gid gid = gid_of_addr(&from.addr);
		struct link_addr back = gid_to_addr(&gid, 7);

		assert_memory_equal(&back, &from.addr, sizeof(back));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_primary_address_has_four_rows_and_others_follow_by_kind),
		cmocka_unit_test(rows_never_change_and_new_addresses_are_appended),
		cmocka_unit_test(one_row_always_stays_empty),
		cmocka_unit_test(an_address_of_one_link_is_there_once_a_link),
		cmocka_unit_test(a_given_order_is_kept),
		cmocka_unit_test(addresses_that_name_no_host_have_no_row),
		cmocka_unit_test(a_gid_is_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
