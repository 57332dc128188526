/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a RoCE device whose addresses are in an environment variable (CMakeLists.txt sets
 * it). */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#include "softrnic/softrnic.h"

static void expect_gid(const union ibv_gid *gid, const char *expected)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void the_device_is_a_roce_device(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_port_attr port;

	assert_int_equal(ctx->device->node_type, IBV_NODE_CA);
	assert_int_equal(ctx->device->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(softrnic_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.gid_tbl_len, 16);
	assert_int_equal(port.lid, 0);
}

static void gids_are_the_addresses_that_were_named(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	union ibv_gid gid;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(softrnic_query_gid(ctx, 1, i, &gid), 0);
		expect_gid(&gid, "::ffff:127.0.0.3");
	}
	assert_int_equal(softrnic_query_gid(ctx, 1, 4, &gid), 0);
	expect_gid(&gid, "::1");
}

static void empty_rows_are_zero_and_others_do_not_exist(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	assert_int_equal(softrnic_query_gid(ctx, 1, 15, &gid), 0);
	expect_gid(&gid, "::");
	assert_int_equal(softrnic_query_gid_ex(ctx, 1, 15, &entry, 0), ENODATA);
	assert_int_equal(softrnic_query_gid_ex(ctx, 1, 16, &entry, 0), EINVAL);
	assert_int_equal(softrnic_query_gid_ex(ctx, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(softrnic_query_gid_ex(ctx, 1, 0, &entry, 1), EINVAL);
	errno = 0;
	assert_int_equal(softrnic_query_gid(ctx, 1, 16, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(softrnic_query_gid(ctx, 1, -1, &gid), -1);
}

static void the_whole_table_can_be_asked_for(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_gid_entry entries[16];

	assert_int_equal(softrnic_query_gid_table(ctx, entries, 16, 0), 6);
	assert_int_equal(entries[4].gid_index, 4);
	assert_int_equal(entries[4].port_num, 1);
	assert_int_equal(entries[4].gid_type, IBV_GID_TYPE_ROCE_V2);
	expect_gid(&entries[5].gid, "::ffff:127.0.0.1");
	assert_true(entries[5].ndev_ifindex > 0); /* the index of the loopback interface */
	assert_int_equal(softrnic_query_gid_table(ctx, entries, 6, 0), 6);
	assert_int_equal(softrnic_query_gid_table(ctx, entries, 5, 0), -EINVAL);
	assert_int_equal(softrnic_query_gid_table(ctx, entries, 16, 1), -EINVAL);
}

static void there_is_one_partition_key(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	__be16 key;

	assert_int_equal(softrnic_query_pkey(ctx, 1, 0, &key), 0);
	assert_int_equal(key, 0xffff);
	assert_int_equal(softrnic_get_pkey_index(ctx, 1, key), 0);
	assert_int_equal(softrnic_query_pkey(ctx, 1, 1, &key), -1);
	assert_int_equal(softrnic_get_pkey_index(ctx, 1, 1), -1);
}

/* --- to which addresses a queue pair may be connected ----------------------------------------- */

static struct ibv_qp *made(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = softrnic_create_plain_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_non_null(qp);
	assert_int_equal(softrnic_modify_qp(qp, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS),
			 0);
	return qp;
}

static int lead_to(struct ibv_qp *qp, int sgid_index, const char *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = 0x7fff01,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12};

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.sgid_index = (uint8_t)sgid_index;
	assert_int_equal(inet_pton(AF_INET6, gid, attr.ah_attr.grh.dgid.raw), 1);
	return softrnic_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER);
}

static void a_peer_without_a_route_is_refused_at_once(void **state)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_pd *pd = softrnic_alloc_pd(ctx);
	struct ibv_cq *cq = softrnic_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp *qp = made(pd, cq);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	/* an address of the other family */
	assert_int_equal(lead_to(qp, 0, "fe80::dead:beef"), ENETUNREACH);
	assert_int_equal(lead_to(qp, 4, "::ffff:127.0.0.1"), ENETUNREACH);
	assert_int_equal(lead_to(qp, 15, "::ffff:127.0.0.1"), EINVAL); /* an index without a GID */
	assert_int_equal(lead_to(qp, 16, "::ffff:127.0.0.1"), EINVAL);
	assert_int_equal(softrnic_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(attr.dest_qp_num, 0); /* the failed moves have stored no attribute */
	assert_int_equal(softrnic_destroy_plain_qp(qp), 0);
	assert_int_equal(softrnic_destroy_cq(cq), 0);
	assert_int_equal(softrnic_dealloc_pd(pd), 0);
}

static void a_child_has_the_table_too(void **state)
{
	union ibv_gid gid;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(softrnic_query_gid(softrnic_context(), 1, 0, &gid) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_is_a_roce_device),
		cmocka_unit_test(gids_are_the_addresses_that_were_named),
		cmocka_unit_test(empty_rows_are_zero_and_others_do_not_exist),
		cmocka_unit_test(the_whole_table_can_be_asked_for),
		cmocka_unit_test(there_is_one_partition_key),
		cmocka_unit_test(a_peer_without_a_route_is_refused_at_once),
		cmocka_unit_test(a_child_has_the_table_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
