/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mooncake.c -- the calls of the RDMA transport of Mooncake's transfer engine, which cannot be
 * built here.
 *
 * The test is written from the list of calls that the transport makes, and shares no code with it.
 * It checks the node and the path of the device, and chooses the GID by its kind. It first moves
 * each queue pair to RESET. It connects queue pairs with other processes and with themselves. At
 * the end it moves each queue pair to ERR and drains it.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

/*
 * The amount of data is small because of ThreadSanitizer. Over TCP it finds a race in each word
 * that the kernel sends or receives, and has to suppress each race separately (cmake/tsan.supp).
 * With it, 80 batches of 1 MiB take more than 60 s over TCP, but 3 s over rings.
 */
enum { PATIENCE_S = 30, SLICE = 16384, SLICES = 16, ENTRIES = 64 };

/* A context of the device, and its queue pairs. */
struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_gid_entry gid;
	int epoll; /* epoll instance that watches the asynchronous events */
	char *data;
	struct ibv_mr *mr;
};

/* The transport ignores a device without a node and a path; the preloaded library shows both. */
static void the_device_has_a_node_and_a_path(void **state)
{
	struct ibv_context *ctx = end_open_device();
	char name[512];
	struct stat st;
	char *real;

	snprintf(name, sizeof(name), "/dev/infiniband/%s", ctx->device->dev_name);
	assert_int_equal(stat(name, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(name, R_OK | W_OK), 0);
	snprintf(name, sizeof(name), "/sys/class/infiniband/%s/../..", ctx->device->name);
	real = realpath(name, NULL);
	assert_non_null(real);
	free(real);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* Choose the best GID of the port: a RoCE v2 GID with an IPv4-mapped address. */
static void choose_gid(struct node *n)
{
	static const unsigned char mapped[12] = {[10] = 0xff, 0xff};
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(n->ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		int ret = ibv_query_gid_ex(n->ctx, 1, (uint32_t)i, &n->gid, 0);

		if (ret) {
			assert_int_equal(ret, ENODATA); /* no GID at this index */
			continue;
		}
		if (n->gid.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(n->gid.gid.raw, mapped, sizeof(mapped)))
			return;
	}
	fail_msg("no GID of an IPv4 address");
}

static void node_watch_events(struct node *n)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = n->ctx->async_fd};
	int flags = fcntl(n->ctx->async_fd, F_GETFL);

	assert_int_equal(fcntl(n->ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	n->epoll = epoll_create1(0);
	assert_true(n->epoll >= 0);
	assert_int_equal(epoll_ctl(n->epoll, EPOLL_CTL_ADD, n->ctx->async_fd, &event), 0);
}

static void qp_new(struct node *n)
{
	struct ibv_qp_init_attr init = {.send_cq = n->cq,
					.recv_cq = n->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = ENTRIES,
						.max_recv_wr = ENTRIES,
						.max_send_sge = 4,
						.max_recv_sge = 4,
						.max_inline_data = 64}};

	n->qp = ibv_create_qp(n->pd, &init);
	assert_non_null(n->qp);
}

static void node_open(struct node *n)
{
	*n = (struct node){.ctx = end_open_device(), .data = calloc(SLICES, SLICE)};
	assert_non_null(n->data);
	choose_gid(n);
	node_watch_events(n);
	n->pd = ibv_alloc_pd(n->ctx);
	assert_non_null(n->pd);
	n->channel = ibv_create_comp_channel(n->ctx);
	assert_non_null(n->channel);
	n->cq = ibv_create_cq(n->ctx, 4 * ENTRIES, n, n->channel, 0);
	assert_non_null(n->cq);
	qp_new(n);
	n->mr = ibv_reg_mr(n->pd, n->data, SLICES * SLICE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	assert_non_null(n->mr);
}

static void node_close(struct node *n)
{
	assert_int_equal(ibv_destroy_qp(n->qp), 0);
	assert_int_equal(ibv_destroy_cq(n->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(n->channel), 0);
	assert_int_equal(ibv_dereg_mr(n->mr), 0);
	assert_int_equal(ibv_dealloc_pd(n->pd), 0);
	assert_int_equal(ibv_close_device(n->ctx), 0);
	close(n->epoll);
	free(n->data);
}

static void qp_move(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

/* Make all four state changes, whichever state the queue pair is in. */
static void qp_connect(struct node *n, uint32_t number, const union ibv_gid *gid)
{
	qp_move(n->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
	qp_move(n->qp,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				     .port_num = 1,
				     .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
							IBV_ACCESS_REMOTE_READ |
							IBV_ACCESS_REMOTE_WRITE},
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	qp_move(n->qp,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_4096,
				     .ah_attr = {.is_global = 1,
						 .grh = {.dgid = *gid,
							 .sgid_index = (uint8_t)n->gid.gid_index,
							 .hop_limit = 16},
						 .port_num = 1},
				     .dest_qp_num = number,
				     .max_dest_rd_atomic = 16,
				     .min_rnr_timer = 12},
		IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	qp_move(n->qp,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 16},
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

static void drain(struct node *n, int count, enum ibv_wc_status status)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (count) {
		struct ibv_wc wcs[16];
		int got = ibv_poll_cq(n->cq, 16, wcs);

		assert_true(got >= 0 && time(NULL) < end);
		for (int i = 0; i < got; i++)
			assert_int_equal(wcs[i].status, status);
		count -= got;
	}
}

/* Post one list of slices. Each slice gets a completion. */
static void post_slices(struct node *n, const struct node *to, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *bad, wrs[SLICES] = {0};
	struct ibv_sge sges[SLICES];

	for (int i = 0; i < SLICES; i++) {
		uint64_t offset = (uint64_t)i * SLICE;

		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)n->data + offset, .length = SLICE, .lkey = n->mr->lkey};
		wrs[i] = (struct ibv_send_wr){
			.wr_id = (uint64_t)i,
			.opcode = opcode,
			.next = i + 1 < SLICES ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = (uintptr_t)to->data + offset,
				    .rkey = to->mr->rkey}};
	}
	assert_int_equal(ibv_post_send(n->qp, wrs, &bad), 0);
}

static void fill(struct node *n, int seed)
{
	for (int i = 0; i < SLICES; i++)
		memset(n->data + (size_t)i * SLICE, seed + i, SLICE);
}

static void a_transfer_is_there_when_it_completes(void **state)
{
	struct node a, b;

	node_open(&a);
	node_open(&b);
	qp_connect(&a, b.qp->qp_num, &b.gid.gid);
	qp_connect(&b, a.qp->qp_num, &a.gid.gid);
	for (int i = 0; i < 5; i++) {
		fill(&a, i);
		post_slices(&a, &b, IBV_WR_RDMA_WRITE);
		drain(&a, SLICES, IBV_WC_SUCCESS);
		assert_memory_equal(a.data, b.data, SLICES * SLICE);
		fill(&a, 100 + i);
		post_slices(&b, &a, IBV_WR_RDMA_READ);
		drain(&b, SLICES, IBV_WC_SUCCESS);
		assert_memory_equal(a.data, b.data, SLICES * SLICE);
	}
	node_close(&a);
	node_close(&b);
}

/* A queue pair that is connected to itself reaches segments of its own process. */
static void a_local_segment_is_reached(void **state)
{
	struct node n, target;

	node_open(&n);
	target = n;
	target.data = calloc(SLICES, SLICE);
	target.mr = ibv_reg_mr(n.pd, target.data, SLICES * SLICE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(target.mr);
	qp_connect(&n, n.qp->qp_num, &n.gid.gid);
	fill(&n, 3);
	post_slices(&n, &target, IBV_WR_RDMA_WRITE);
	drain(&n, SLICES, IBV_WC_SUCCESS);
	assert_memory_equal(n.data, target.data, SLICES * SLICE);
	assert_int_equal(ibv_dereg_mr(target.mr), 0);
	free(target.data);
	node_close(&n);
}

/* After an error each slice of the queue pair completes, so that its memory can be released. */
static void a_queue_pair_is_drained_after_an_error_and_used_again(void **state)
{
	struct node a, b;

	node_open(&a);
	node_open(&b);
	for (int round = 0; round < 3; round++) {
		qp_connect(&a, b.qp->qp_num, &b.gid.gid);
		qp_connect(&b, a.qp->qp_num, &a.gid.gid);
		fill(&a, round);
		post_slices(&a, &b, IBV_WR_RDMA_WRITE);
		drain(&a, SLICES, IBV_WC_SUCCESS);
		assert_memory_equal(a.data, b.data, SLICES * SLICE);
		qp_move(a.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, 0);
		post_slices(&a, &b, IBV_WR_RDMA_WRITE);
		drain(&a, SLICES, IBV_WC_WR_FLUSH_ERR);
		qp_move(b.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, 0);
	}
	node_close(&a);
	node_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_has_a_node_and_a_path),
		cmocka_unit_test(a_transfer_is_there_when_it_completes),
		cmocka_unit_test(a_local_segment_is_reached),
		cmocka_unit_test(a_queue_pair_is_drained_after_an_error_and_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
