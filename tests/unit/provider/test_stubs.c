/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stubs.c -- every table of calls is complete, and a stub reports "not supported" as its
 * function reports errors.
 */
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
	assert_non_null(prov->read_sink_access);
	assert_non_null(prov->qp_caps);
	assert_non_null(prov->qp_counters);
#define MEMBER(ret, name, params, args, failure, act) assert_non_null(prov->name);
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
	assert_int_equal(provider_stubs.qp_caps(NULL), VEXT_CAP_KNOWN);
	assert_int_equal(provider_stubs.qp_counters(NULL, NULL, NULL, 0), -1);
	assert_false(provider_stubs.owns_context(NULL));
}

/* If a card needs IBV_ACCESS_REMOTE_WRITE for Reads, the peer is able to write to the sink at any
 * time. */
static void only_iwarp_cards_need_remote_write_to_read(void **state)
{
	struct ibv_device device = {.transport_type = IBV_TRANSPORT_IWARP};
	struct ibv_context ctx = {.device = &device};

	assert_int_equal(provider_verbs.read_sink_access(&ctx), IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(provider_softrnic.read_sink_access(&ctx), 0);
	assert_int_equal(provider_fault_around(&provider_softrnic)->read_sink_access(&ctx), 0);
	device.transport_type = IBV_TRANSPORT_IB;
	assert_int_equal(provider_verbs.read_sink_access(&ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_table_has_a_hole),
		cmocka_unit_test(what_is_not_supported_says_so_in_its_own_convention),
		cmocka_unit_test(only_iwarp_cards_need_remote_write_to_read),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
