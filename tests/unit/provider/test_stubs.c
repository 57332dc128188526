/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stubs.c -- every table is complete, and the stubs say "not supported" in each convention. */
#include <errno.h>

#include "lib/unit.h"
#include "provider/fault.h"
#include "provider/provider.h"

static void expect_complete(const struct provider *prov)
{
	assert_non_null(prov->name);
	assert_non_null(prov->owns_context);
	assert_non_null(prov->serves);
	assert_non_null(prov->event_str);
	assert_non_null(prov->qp_caps);
	assert_non_null(prov->qp_counters);
#define MEMBER(ret, name, params, args, kind) assert_non_null(prov->name);
	PROVIDER_CALLS(MEMBER)
#undef MEMBER
}

static void no_table_has_a_hole(void **state)
{
	expect_complete(&provider_stubs);
	expect_complete(&provider_verbs);
	expect_complete(&provider_softrnic);
	expect_complete(provider_fault_around(&provider_stubs));
}

static void what_is_not_supported_says_so_in_its_own_convention(void **state)
{
	struct rdma_cm_id *id;

	errno = 0;
	assert_null(provider_stubs.alloc_pd(NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_int_equal(provider_stubs.create_id(NULL, &id, NULL, RDMA_PS_TCP), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(provider_stubs.dereg_mr(NULL), EOPNOTSUPP);
	assert_int_equal(provider_stubs.post_list(NULL, NULL, 0, NULL), EOPNOTSUPP);
	provider_stubs.freeaddrinfo(NULL);
	assert_int_equal(provider_stubs.qp_caps(NULL), SOFTRNIC_CAP_KNOWN);
	assert_int_equal(provider_stubs.qp_counters(NULL, NULL, NULL, 0), -1);
	assert_false(provider_stubs.owns_context(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_table_has_a_hole),
		cmocka_unit_test(what_is_not_supported_says_so_in_its_own_convention),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
