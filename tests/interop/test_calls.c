/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_calls.c -- a program that uses only libibverbs and librdmacm, on the interposer: less common
 * behaviour that foreign clients rely on, and the errors that unsupported calls return.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

#define MARK              0x50524d41u
#define REMOTE_INVALIDATE (1 << 30) /* a flag of the software RNIC (softrnic-verbs(7)) */

static int setup(void **state)
{
	static struct ends d;

	ends_open(&d);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	ends_close(*state);
	return 0;
}

static void synchronous_endpoints_exchange_a_message(void **state)
{
	struct ends *d = *state;
	char out[] = "hello", in[16] = "";
	struct ibv_mr *mr = rdma_reg_msgs(d->server, in, sizeof(in));
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(d->server, in, in, sizeof(in), mr), 0);
	/* The program requested no inline data, but the device grants a few bytes. */
	assert_int_equal(rdma_post_send(d->client, NULL, out, sizeof(out), NULL, IBV_SEND_INLINE),
			 0);
	assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	assert_ptr_equal(wc.wr_id, in);
	assert_string_equal(in, "hello");
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

static void disconnecting_waits_for_the_end(void **state)
{
	struct ends *d = *state;

	assert_int_equal(rdma_disconnect(d->client), 0);
	assert_int_equal(d->client->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(d->server), 0);
	/* a second disconnect causes no second event */
	assert_int_equal(rdma_disconnect(d->server), 0);
}

/* tgtd and many other programs end a connection by moving its queue pair to the error state. */
static void moving_a_queue_pair_to_error_flushes_it(void **state)
{
	struct ends *d = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	char in[16];
	struct ibv_mr *mr = rdma_reg_msgs(d->client, in, sizeof(in));

	assert_int_equal(rdma_post_recv(d->client, in, in, sizeof(in), mr), 0);
	assert_int_equal(ibv_modify_qp(d->client->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(rdma_get_recv_comp(d->client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_query_qp(d->client->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(d->client->qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

static void the_device_has_the_mark(void **state)
{
	struct ibv_context *ctx = end_open_device();
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	assert_int_equal(ibv_query_device(ctx, &attr), 0);
	assert_int_equal(attr.vendor_id, MARK);
	assert_int_equal(ibv_get_device_guid(ctx->device), attr.node_guid);
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(ibv_query_gid(ctx, 1, port.gid_tbl_len, &gid), -1);
	assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* The interposer's queue pairs can be connected only by rdma_cm. */
static void what_the_device_lacks_is_refused(void **state)
{
	struct ends *d = *state;
	struct ibv_context *ctx = d->client->verbs;
	struct ibv_xrcd_init_attr xrcd = {0};
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010101)};

	errno = 0;
	assert_null(ibv_open_xrcd(ctx, &xrcd));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_join_multicast(d->client, (struct sockaddr *)&group, NULL), -1);
	assert_int_equal(errno, ENOSYS);
}

/* Servers of perftest and qperf send their port number to the client before they listen on this
 * port. */
static void a_connect_may_be_a_little_too_early(void **state)
{
	struct ends d = {.listener = end_make(RAI_PASSIVE, 0)};

	d.client = end_make(0, rdma_get_src_port(d.listener));
	assert_int_equal(pthread_create(&d.thread, NULL, ends_connect, &d), 0);
	usleep(100000);
	assert_int_equal(rdma_listen(d.listener, 1), 0);
	assert_int_equal(rdma_get_request(d.listener, &d.server), 0);
	assert_int_equal(rdma_accept(d.server, NULL), 0);
	pthread_join(d.thread, NULL);
	rdma_destroy_ep(d.client);
	rdma_destroy_ep(d.server);
	rdma_destroy_ep(d.listener);
}

static void a_connect_without_a_listener_is_refused_in_the_end(void **state)
{
	struct rdma_cm_id *nobody = end_make(RAI_PASSIVE, 0);
	struct rdma_cm_id *client = end_make(0, rdma_get_src_port(nobody));

	assert_int_equal(rdma_connect(client, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(client->event->event, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(client);
	rdma_destroy_ep(nobody);
}

static struct rdma_cm_id *unbound(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, ps), 0);
	return id;
}

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(9)};
}

static bool is_iwarp(void)
{
	const char *identity = getenv("SOFTRNIC_IDENTITY");

	return identity && strcmp(identity, "iwarp") == 0;
}

static void datagram_queue_pairs_need_a_roce_device(void **state)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id = unbound(RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = end_qp_attr();

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	attr.qp_type = IBV_QPT_UD;
	if (is_iwarp()) {
		assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
		assert_int_equal(errno, EOPNOTSUPP);
		assert_null(id->send_cq);
	} else {
		assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
		assert_int_equal(id->qp->qp_type, IBV_QPT_UD);
		rdma_destroy_qp(id);
	}
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* The port space of an id determines the type of its queue pair. */
static void queue_pairs_of_another_type_than_the_ids_are_refused(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		enum ibv_qp_type type;
		int err;
	} wrong[] = {{RDMA_PS_TCP, IBV_QPT_UD, EOPNOTSUPP}, {RDMA_PS_UDP, IBV_QPT_RC, EINVAL}};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rdma_cm_id *id = unbound(wrong[i].ps);
		struct ibv_qp_init_attr attr = end_qp_attr();

		assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
		attr.qp_type = wrong[i].type;
		assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
		assert_int_equal(errno, wrong[i].err);
		assert_null(id->send_cq);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void a_bound_id_keeps_its_address_when_resolved_with_a_source(void **state)
{
	struct sockaddr_in dst = loopback(), src = loopback();
	struct rdma_cm_id *id = unbound(RDMA_PS_TCP);
	__be16 port;

	src.sin_port = 0;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&src), 0);
	port = rdma_get_src_port(id);
	assert_int_equal(
		rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000), 0);
	assert_int_equal(rdma_get_src_port(id), port);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void hints_alone_may_have_the_address(void **state)
{
	struct sockaddr_in dst = loopback();
	struct rdma_addrinfo hints = {.ai_family = AF_INET,
				      .ai_port_space = RDMA_PS_TCP,
				      .ai_dst_addr = (struct sockaddr *)&dst,
				      .ai_dst_len = sizeof(dst)};
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_int_equal(res->ai_dst_len, sizeof(dst));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(dst));
	rdma_freeaddrinfo(res);
	hints.ai_dst_len = 0;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), -1);
	assert_int_equal(errno, EINVAL);
}

/* libfabric makes this queue pair only to query the granted limits, and never connects it. */
static void a_queue_pair_without_an_id_can_be_asked_but_not_connected(void **state)
{
	struct ends *d = *state;
	struct ibv_cq *cq = ibv_create_cq(d->client->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = end_qp_attr();
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(d->client->pd, &attr);
	assert_non_null(qp);
	assert_true(attr.cap.max_inline_data > 0);
	assert_int_equal(ibv_query_qp(qp, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(now.qp_state, IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* rping destroys the id first. In rdma-core an id and its queue pair are separate objects. */
static void a_queue_pair_may_be_destroyed_after_its_id(void **state)
{
	struct sockaddr_in addr = loopback();
	struct rdma_cm_id *id = unbound(RDMA_PS_TCP), *other = unbound(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = end_qp_attr();
	struct ibv_qp *qp;

	addr.sin_port = 0;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	qp = id->qp;
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	/* A new queue pair works, even if it has the address of the old one. */
	attr = end_qp_attr();
	assert_int_equal(rdma_bind_addr(other, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_create_qp(other, NULL, &attr), 0);
	assert_int_equal(ibv_destroy_qp(other->qp), 0);
	assert_null(other->qp);
	assert_int_equal(rdma_destroy_id(other), 0);
}

/* As in rdma-core, a program can read from the id the queues that the library made. */
static void queues_made_for_the_program_are_reported(void **state)
{
	struct ibv_qp_init_attr attr = end_qp_attr();
	struct rdma_cm_id *id = unbound(RDMA_PS_TCP);
	struct sockaddr_in addr = loopback();

	addr.sin_port = 0;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_non_null(attr.send_cq);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	assert_ptr_equal(attr.recv_cq, id->qp->recv_cq);
	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void queue_pairs_with_more_than_there_is_are_refused(void **state)
{
	struct ibv_qp_init_attr_ex ex = {.cap = end_qp_attr().cap, .qp_type = IBV_QPT_RC};
	struct rdma_cm_id *id = unbound(RDMA_PS_TCP);
	struct sockaddr_in addr = loopback();

	addr.sin_port = 0;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	ex.comp_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	assert_int_equal(rdma_create_qp_ex(id, &ex), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	/* create_flags is present, and none of its flags is set */
	ex.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
	assert_int_equal(rdma_create_qp_ex(id, &ex), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* --- Send with Invalidate ------------------------------------------------------------------- */

/* Send with Invalidate, and return the completion of the server's receive. */
static struct ibv_wc invalidate(struct ends *d, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey};
	struct ibv_recv_wr *bad_recv, empty = {0};
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(d->server->qp, &empty, &bad_recv), 0);
	assert_int_equal(ibv_post_send(d->client->qp, &wr, &bad), 0);
	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	return wc;
}

static enum ibv_wc_status read_from(struct ends *d, struct ibv_mr *mr)
{
	char in[16];
	struct ibv_mr *sink = ibv_reg_mr(d->client->pd, in, sizeof(in),
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_wc wc = {0};

	assert_non_null(sink);
	if (!rdma_post_read(d->client, NULL, in, sizeof(in), sink, 0, (uintptr_t)mr->addr,
			    mr->rkey)) {
		do {
			assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
		} while (wc.opcode != IBV_WC_RDMA_READ && wc.status == IBV_WC_SUCCESS);
	}
	assert_int_equal(rdma_dereg_mr(sink), 0);
	return wc.status;
}

static void what_was_registered_for_it_is_invalidated_by_the_peer(void **state)
{
	struct ends *d = *state;
	char lent[16] = "";
	struct ibv_mr *mr = ibv_reg_mr(d->server->pd, lent, sizeof(lent),
				       IBV_ACCESS_REMOTE_READ | REMOTE_INVALIDATE);
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_int_equal(read_from(d, mr), IBV_WC_SUCCESS);
	wc = invalidate(d, mr->rkey);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mr->rkey);
	assert_int_not_equal(read_from(d, mr), IBV_WC_SUCCESS);
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

static void what_was_not_stays_for_other_connections(void **state)
{
	struct ends *d = *state, other;
	char shared[16] = "";
	struct ibv_mr *mr =
		ibv_reg_mr(d->server->pd, shared, sizeof(shared), IBV_ACCESS_REMOTE_READ);

	assert_non_null(mr);
	assert_int_equal(invalidate(d, mr->rkey).status, IBV_WC_WR_FLUSH_ERR);
	ends_open(&other);
	assert_ptr_equal(other.server->pd, d->server->pd);
	assert_int_equal(read_from(&other, mr), IBV_WC_SUCCESS);
	ends_close(&other);
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(synchronous_endpoints_exchange_a_message, setup,
						teardown),
		cmocka_unit_test_setup_teardown(disconnecting_waits_for_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(moving_a_queue_pair_to_error_flushes_it, setup,
						teardown),
		cmocka_unit_test(the_device_has_the_mark),
		cmocka_unit_test_setup_teardown(what_the_device_lacks_is_refused, setup, teardown),
		cmocka_unit_test(a_connect_may_be_a_little_too_early),
		cmocka_unit_test(a_connect_without_a_listener_is_refused_in_the_end),
		cmocka_unit_test(datagram_queue_pairs_need_a_roce_device),
		cmocka_unit_test(queue_pairs_of_another_type_than_the_ids_are_refused),
		cmocka_unit_test(a_bound_id_keeps_its_address_when_resolved_with_a_source),
		cmocka_unit_test(hints_alone_may_have_the_address),
		cmocka_unit_test(queues_made_for_the_program_are_reported),
		cmocka_unit_test(queue_pairs_with_more_than_there_is_are_refused),
		cmocka_unit_test_setup_teardown(
			a_queue_pair_without_an_id_can_be_asked_but_not_connected, setup, teardown),
		cmocka_unit_test(a_queue_pair_may_be_destroyed_after_its_id),
		cmocka_unit_test_setup_teardown(
			what_was_registered_for_it_is_invalidated_by_the_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_stays_for_other_connections, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
