/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device.c -- find the device of an address, and query the device. */
#include <sys/mman.h>

#include "ends.h"

static void addresses_have_a_device(void **state)
{
	struct ibv_context *local = NULL, *remote = NULL;

	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &local));
	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &remote));
	assert_non_null(local);
	assert_ptr_equal(local, remote);
	if (!ends_is_kernels())
		assert_int_equal(local->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(local->device->node_type, ends_is_tcp() ? IBV_NODE_RNIC : IBV_NODE_CA);
}

static void nonsense_has_no_device(void **state)
{
	struct ibv_context *ctx = NULL;

	assert_int_equal(
		rpma_utils_get_ibv_context("not an address", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
		RPMA_E_PROVIDER);
	assert_int_equal(
		rpma_utils_get_ibv_context(ends_addr(), (enum rpma_util_ibv_context_type)2, &ctx),
		RPMA_E_INVAL);
	assert_int_equal(rpma_utils_get_ibv_context(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 RPMA_E_INVAL);
	assert_null(ctx);
}

static void foreign_address_cannot_be_local(void **state)
{
	struct ibv_context *ctx = NULL;

	/* TEST-NET-1 (RFC 5737) belongs to no host. */
	assert_int_equal(rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 RPMA_E_PROVIDER);
	assert_null(ctx);
}

static void on_demand_paging_is_answered(void **state)
{
	struct ibv_context *ctx;
	int capable = 42;

	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_utils_ibv_context_is_odp_capable(ctx, &capable));
	if (ends_is_kernels())
		assert_in_range(capable, 0, 1);
	else
		/* the software RNIC registers any mapping without this capability */
		assert_int_equal(capable, 0);
	assert_int_equal(rpma_utils_ibv_context_is_odp_capable(NULL, &capable), RPMA_E_INVAL);
}

static void advice_is_taken(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	if (rpma_mr_advise(d.srv_mr, 0, ENDS_BUF, IBV_ADVISE_MR_ADVICE_PREFETCH, 0) ==
		    RPMA_E_NOSUPP &&
	    ends_is_kernels()) { /* a device without ODP refuses the advice */
		ends_close(&d);
		return;
	}
	for (int advice = IBV_ADVISE_MR_ADVICE_PREFETCH;
	     advice <= (int)IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; advice++) {
		OK(rpma_mr_advise(d.srv_mr, 0, ENDS_BUF, advice, 0));
		OK(rpma_mr_advise(d.srv_mr, 4096, 4096, advice, IBV_ADVISE_MR_FLAG_FLUSH));
	}
	assert_int_equal(rpma_mr_advise(d.srv_mr, 0, 4096, 1000, 0), RPMA_E_NOSUPP);
	assert_int_equal(rpma_mr_advise(d.srv_mr, 0, 4096, 0, 0x80), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_advise(d.srv_mr, ENDS_BUF, 4096, 0, 0), RPMA_E_INVAL);
	ends_close(&d);
}

static void regions_describe_themselves(void **state)
{
	struct ends d;
	size_t size;
	void *ptr;

	ends_open(&d, NULL);
	OK(rpma_mr_get_ptr(d.srv_mr, &ptr));
	OK(rpma_mr_get_size(d.srv_mr, &size));
	assert_ptr_equal(ptr, d.srv_buf);
	assert_int_equal(size, ENDS_BUF);
	OK(rpma_mr_remote_get_size(d.at_srv, &size));
	assert_int_equal(size, ENDS_BUF);
	OK(rpma_mr_get_descriptor_size(d.srv_mr, &size));
	assert_int_equal(size, 21);
	ends_close(&d);
}

/* The region is larger than the memory that an unprivileged process is allowed to lock. */
static void large_regions_need_no_locked_memory(void **state)
{
	size_t size = (size_t)4 << 30;
	struct rpma_mr_local *mr;
	struct ends d;
	void *p;

	SOFTRNIC_ONLY(); /* RDMA devices pin registered memory, within the limit */
	ends_open(&d, NULL);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	mr = ends_reg(&d, p, size);
	OK(rpma_mr_dereg(&mr));
	munmap(p, size);
	ends_close(&d);
}

static void peer_can_be_deleted_after_its_regions(void **state)
{
	struct rpma_mr_local *mr;
	struct ibv_context *ctx;
	struct rpma_peer *peer;
	uint8_t byte = 0;

	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	OK(rpma_mr_reg(peer, &byte, 1, RPMA_MR_USAGE_READ_SRC, &mr));
	OK(rpma_mr_dereg(&mr));
	assert_null(mr);
	OK(rpma_peer_delete(&peer));
	assert_null(peer);
	OK(rpma_peer_delete(&peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_have_a_device),
		cmocka_unit_test(nonsense_has_no_device),
		cmocka_unit_test(foreign_address_cannot_be_local),
		cmocka_unit_test(on_demand_paging_is_answered),
		cmocka_unit_test(advice_is_taken),
		cmocka_unit_test(regions_describe_themselves),
		cmocka_unit_test(large_regions_need_no_locked_memory),
		cmocka_unit_test(peer_can_be_deleted_after_its_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
