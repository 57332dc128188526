/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_handles.c -- address handles, in a program of libibverbs. The preloaded library shows a RoCE
 * device, because an iWARP device has no address handles.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "ends.h"

static struct rdma_cm_id *id;
static struct ibv_pd *pd;

static int setup(void **state)
{
	id = end_make(RAI_PASSIVE, 0);
	pd = ibv_alloc_pd(id->verbs);
	return pd ? 0 : -1;
}

static int teardown(void **state)
{
	int ret = ibv_dealloc_pd(pd);

	rdma_destroy_ep(id);
	return ret;
}

static bool is_roce(void)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IB;
}

/* Returns the address of this host. */
static struct ibv_ah_attr own_address(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	assert_int_equal(ibv_query_gid(id->verbs, 1, 0, &attr.grh.dgid), 0);
	return attr;
}

static void assert_no_handle(struct ibv_ah_attr attr, int err)
{
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, err);
}

static void a_handle_is_of_a_reachable_address(void **state)
{
	struct ibv_ah_attr attr = own_address();
	struct ibv_ah *ah;

	if (!is_roce()) {
		assert_no_handle(attr, EOPNOTSUPP);
		return;
	}
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void an_address_that_names_no_peer_is_refused(void **state)
{
	struct ibv_ah_attr attr = own_address();

	if (!is_roce())
		return;
	attr.is_global = 0; /* an address by LID, which Ethernet does not have */
	assert_no_handle(attr, EINVAL);
	attr = own_address();
	attr.port_num = 2;
	assert_no_handle(attr, EINVAL);
	attr = own_address();
	attr.grh.sgid_index = 15; /* an index without a GID */
	assert_no_handle(attr, EINVAL);
	attr = own_address();
	attr.grh.sgid_index = 200;
	assert_no_handle(attr, EINVAL);
	attr = own_address();
	memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
	attr.grh.dgid.raw[0] = 0x20; /* an IPv6 destination from an IPv4 source */
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_not_equal(errno, 0);
}

/* Fill in the 40 bytes before a received datagram, which was sent over IPv4 from `from` to `to`. */
static void fill_ipv4(uint8_t *bytes, const union ibv_gid *from, const union ibv_gid *to)
{
	struct iphdr ip = {.version = 4, .ihl = 5, .tos = 3};

	memset(bytes, 0, 40);
	memcpy(&ip.saddr, from->raw + 12, 4);
	memcpy(&ip.daddr, to->raw + 12, 4);
	memcpy(bytes + 20, &ip, sizeof(ip));
}

static void the_sender_of_a_datagram_can_be_answered(void **state)
{
	union ibv_gid own = own_address().grh.dgid;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 2};
	struct ibv_ah_attr attr;
	struct ibv_grh grh;
	struct ibv_ah *ah;

	fill_ipv4((uint8_t *)&grh, &own, &own);
	if (!is_roce()) {
		assert_int_equal(ibv_init_ah_from_wc(id->verbs, 1, &wc, &grh, &attr), -1);
		assert_int_equal(errno, EOPNOTSUPP);
		return;
	}
	assert_int_equal(ibv_init_ah_from_wc(id->verbs, 1, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &own, sizeof(own));
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.traffic_class, 3);
	assert_int_equal(attr.sl, 2);
	assert_int_equal(attr.is_global, 1);
	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void assert_no_sender(struct ibv_wc wc, struct ibv_grh *grh)
{
	struct ibv_ah_attr attr;

	errno = 0;
	assert_int_equal(ibv_init_ah_from_wc(id->verbs, 1, &wc, grh, &attr), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_create_ah_from_wc(pd, &wc, grh, 1));
	assert_int_equal(errno, EINVAL);
}

static void bytes_that_are_no_header_have_no_sender(void **state)
{
	union ibv_gid own = own_address().grh.dgid, other = own;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh;

	if (!is_roce())
		return;
	memset(&grh, 0, sizeof(grh));
	assert_no_sender(wc, &grh);
	memset(&grh, 0xff, sizeof(grh));
	assert_no_sender(wc, &grh);
	other.raw[15] ^= 0x55; /* this is no address of this host */
	fill_ipv4((uint8_t *)&grh, &own, &other);
	assert_no_sender(wc, &grh);
	fill_ipv4((uint8_t *)&grh, &own, &own);
	wc.wc_flags = 0;
	assert_no_sender(wc, &grh);
}

static void an_ipv6_header_names_its_sender(void **state)
{
	union ibv_gid own = own_address().grh.dgid, other = own;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {.version_tclass_flow = htonl(0x61200007), .dgid = own};
	struct ibv_ah_attr attr;

	if (!is_roce())
		return;
	other.raw[15] ^= 0x55;
	grh.sgid = other;
	assert_int_equal(ibv_init_ah_from_wc(id->verbs, 1, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &other, sizeof(other));
	assert_int_equal(attr.grh.flow_label, 7);
	assert_int_equal(attr.grh.traffic_class, 0x12);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_handle_is_of_a_reachable_address),
		CASE(an_address_that_names_no_peer_is_refused),
		CASE(the_sender_of_a_datagram_can_be_answered),
		CASE(bytes_that_are_no_header_have_no_sender),
		CASE(an_ipv6_header_names_its_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
