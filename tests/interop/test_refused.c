/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_refused.c -- calls that the device does not support fail with EOPNOTSUPP. Programs of
 * libibverbs handle this error and continue without the call. The device's capabilities state in
 * advance which calls are unsupported.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "ends.h"

/* Objects with which the tests call the functions. */
static struct rdma_cm_id *id, *peer;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;

static int setup(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	peer = end_make(RAI_PASSIVE, 0);
	assert_int_equal(rdma_listen(peer, 1), 0);
	id = end_make(0, rdma_get_src_port(peer));
	ctx = id->verbs;
	pd = id->pd;
	qp = id->qp;
	cq = id->send_cq;
	srq = ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(peer);
	return 0;
}

/* --- one function for each call: returns the error, or 0 if the call succeeded -------------- */

#define REFUSED_NULL(name, call)                                                                   \
	static int try_##name(void)                                                                \
	{                                                                                          \
		errno = 0;                                                                         \
		return (call) ? 0 : errno;                                                         \
	}
#define REFUSED_ERR(name, call)                                                                    \
	static int try_##name(void)                                                                \
	{                                                                                          \
		return (call);                                                                     \
	}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = end_qp_attr();

	attr.send_cq = attr.recv_cq = cq;
	attr.qp_type = type;
	return ibv_create_qp(pd, &attr);
}

static struct ibv_qp *make_qp_ex(uint32_t comp_mask, uint64_t ops, uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = end_qp_attr().cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | comp_mask,
		.pd = pd,
		.send_ops_flags = ops,
		.create_flags = flags,
	};

	return ibv_create_qp_ex(ctx, &attr);
}

static struct ibv_cq_ex *make_cq_ex(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 1, .wc_flags = wc_flags};

	return ibv_create_cq_ex(ctx, &attr);
}

static struct ibv_srq *make_srq(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = type,
		.pd = pd,
	};

	return ibv_create_srq_ex(ctx, &attr);
}

static union ibv_gid gid;
static struct ibv_ece ece;
static uint32_t srq_num;
static struct ibv_ops_wr ops_wr, *bad_op;
static struct ibv_dm dm;
static struct ibv_ah_attr ah_attr;
static uint8_t mac[6];
static uint16_t vlan;

REFUSED_NULL(open_xrcd, ibv_open_xrcd(ctx, &(struct ibv_xrcd_init_attr){0}))
REFUSED_NULL(xrc_srq, make_srq(IBV_SRQT_XRC))
REFUSED_NULL(tm_srq, make_srq(IBV_SRQT_TM))
REFUSED_ERR(get_srq_num, ibv_get_srq_num(srq, &srq_num))
REFUSED_ERR(post_srq_ops, ibv_post_srq_ops(srq, &ops_wr, &bad_op))
REFUSED_NULL(xrc_send_qp, make_qp(IBV_QPT_XRC_SEND))
REFUSED_NULL(xrc_recv_qp, make_qp(IBV_QPT_XRC_RECV))
REFUSED_NULL(raw_qp, make_qp(IBV_QPT_RAW_PACKET))
REFUSED_NULL(driver_qp, make_qp(IBV_QPT_DRIVER))
REFUSED_NULL(open_qp, ibv_open_qp(ctx, &(struct ibv_qp_open_attr){0}))
REFUSED_NULL(tso_qp, make_qp_ex(IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0))
REFUSED_NULL(rss_qp, make_qp_ex(IBV_QP_INIT_ATTR_RX_HASH, 0, 0))
REFUSED_NULL(table_qp, make_qp_ex(IBV_QP_INIT_ATTR_IND_TABLE, 0, 0))
REFUSED_NULL(flags_qp,
	     make_qp_ex(IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
REFUSED_NULL(tso_ops_qp, make_qp_ex(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_QP_EX_WITH_TSO, 0))
REFUSED_ERR(rate_limit, ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){0}))
REFUSED_NULL(create_flow, ibv_create_flow(qp, &(struct ibv_flow_attr){0}))
REFUSED_NULL(flow_action, ibv_create_flow_action_esp(ctx, &(struct ibv_flow_action_esp_attr){0}))
REFUSED_NULL(create_wq, ibv_create_wq(ctx, &(struct ibv_wq_init_attr){0}))
REFUSED_NULL(rwq_table, ibv_create_rwq_ind_table(ctx, &(struct ibv_rwq_ind_table_init_attr){0}))
REFUSED_NULL(counters, ibv_create_counters(ctx, &(struct ibv_counters_init_attr){0}))
REFUSED_NULL(vlan_cq, make_cq_ex(IBV_WC_EX_WITH_CVLAN))
REFUSED_NULL(flow_tag_cq, make_cq_ex(IBV_WC_EX_WITH_FLOW_TAG))
REFUSED_NULL(tm_cq, make_cq_ex(IBV_WC_EX_WITH_TM_INFO))
REFUSED_NULL(wallclock_cq, make_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
REFUSED_NULL(alloc_null_mr, ibv_alloc_null_mr(pd))
REFUSED_NULL(alloc_dm, ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 64}))
REFUSED_NULL(reg_dm_mr, ibv_reg_dm_mr(pd, &dm, 0, 64, 0))
REFUSED_NULL(reg_dmabuf_mr, ibv_reg_dmabuf_mr(pd, 0, 64, 0, -1, IBV_ACCESS_LOCAL_WRITE))
REFUSED_NULL(import_device, ibv_import_device(-1))
REFUSED_NULL(import_pd, ibv_import_pd(ctx, 1))
REFUSED_NULL(import_mr, ibv_import_mr(pd, 1))
REFUSED_NULL(import_dm, ibv_import_dm(ctx, 1))
REFUSED_ERR(attach_mcast, ibv_attach_mcast(qp, &gid, 0))
REFUSED_ERR(detach_mcast, ibv_detach_mcast(qp, &gid, 0))
REFUSED_ERR(query_ece, ibv_query_ece(qp, &ece))
REFUSED_ERR(set_ece, ibv_set_ece(qp, &ece))
REFUSED_ERR(resolve_mac, ibv_resolve_eth_l2_from_gid(ctx, &ah_attr, mac, &vlan))

#define ROW(name)                                                                                  \
	{                                                                                          \
#name, try_##name                                                                  \
	}
static const struct {
	const char *name;
	int (*try)(void);
} refused[] = {
	ROW(open_xrcd),     ROW(xrc_srq),       ROW(tm_srq),       ROW(get_srq_num),
	ROW(post_srq_ops),  ROW(xrc_send_qp),   ROW(xrc_recv_qp),  ROW(raw_qp),
	ROW(driver_qp),     ROW(open_qp),       ROW(tso_qp),       ROW(rss_qp),
	ROW(table_qp),      ROW(flags_qp),      ROW(tso_ops_qp),   ROW(rate_limit),
	ROW(create_flow),   ROW(flow_action),   ROW(create_wq),    ROW(rwq_table),
	ROW(counters),      ROW(vlan_cq),       ROW(flow_tag_cq),  ROW(tm_cq),
	ROW(wallclock_cq),  ROW(alloc_null_mr), ROW(alloc_dm),     ROW(reg_dm_mr),
	ROW(reg_dmabuf_mr), ROW(import_device), ROW(import_pd),    ROW(import_mr),
	ROW(import_dm),     ROW(attach_mcast),  ROW(detach_mcast), ROW(query_ece),
	ROW(set_ece),       ROW(resolve_mac),
};

static void what_the_device_lacks_fails_with_one_error(void **state)
{
	int other = 0;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		int err = refused[i].try();

		if (err != EOPNOTSUPP) {
			print_error("%s: %d\n", refused[i].name, err);
			other++;
		}
	}
	assert_int_equal(other, 0);
}

static void capabilities_name_nothing_that_is_refused(void **state)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(ctx, NULL, &attr), 0);
	assert_int_equal(attr.orig_attr.max_mcast_grp, 0);
	assert_int_equal(attr.orig_attr.max_raw_ipv6_qp, 0);
	assert_int_equal(attr.orig_attr.device_cap_flags &
				 (IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW_TYPE_2A),
			 0);
	assert_int_equal(attr.tso_caps.max_tso, 0);
	assert_int_equal(attr.rss_caps.supported_qpts, 0);
	assert_int_equal(attr.max_wq_type_rq, 0);
	assert_int_equal(attr.packet_pacing_caps.supported_qpts, 0);
	assert_int_equal(attr.raw_packet_caps, 0);
	assert_int_equal(attr.tm_caps.max_num_tags, 0);
	assert_int_equal(attr.max_dm_size, 0);
	assert_int_equal(attr.xrc_odp_caps, 0);
}

static void data_are_not_promised_to_arrive_in_order(void **state)
{
	assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
}

/* The device pins no memory, so copies of pages in a child do no harm. */
static void fork_needs_no_preparation(void **state)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_the_device_lacks_fails_with_one_error),
		CASE(capabilities_name_nothing_that_is_refused),
		CASE(data_are_not_promised_to_arrive_in_order),
		cmocka_unit_test(fork_needs_no_preparation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
