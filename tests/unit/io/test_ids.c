/* SPDX-License-Identifier: BSD-3-Clause */
/* Behaviour of ids and queue pairs that foreign programs rely on, but that librpma does not use. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

static int connected(void **state)
{
	static struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	ends_establish(&e);
	*state = &e;
	return 0;
}

static int disconnected(void **state)
{
	ends_close(*state);
	return 0;
}

/* --- addresses ------------------------------------------------------------------------------- */

/* rping -b and ucmatose -b bind an id, and then resolve the address with the same source
 * address. */
static void what_is_bound_stays_so_when_resolved_with_a_source(void **state)
{
	struct sockaddr_in dst = end_loopback(9), src = end_loopback(0);
	struct end e;
	uint16_t port;

	end_open(&e);
	port = end_bind(&e);
	assert_int_equal(
		softrnic_resolve_addr(e.id, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000),
		0);
	end_expect(&e, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(ntohs(e.id->route.addr.src_sin.sin_port), port);
	end_close(&e);
}

static void an_unbound_id_is_bound_to_the_source(void **state)
{
	struct sockaddr_in dst = end_loopback(9), src = end_loopback(0);
	struct end e;

	end_open(&e);
	src.sin_addr.s_addr = htonl(0x7f000002);
	assert_int_equal(
		softrnic_resolve_addr(e.id, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000),
		0);
	end_expect(&e, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(e.id->route.addr.src_sin.sin_addr.s_addr, src.sin_addr.s_addr);
	assert_int_not_equal(e.id->route.addr.src_sin.sin_port, 0);
	end_close(&e);
}

static void a_bound_id_does_not_go_to_another_family(void **state)
{
	struct sockaddr_in6 dst = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct end e;

	end_open(&e);
	end_bind(&e);
	errno = 0;
	assert_int_equal(softrnic_resolve_addr(e.id, NULL, (struct sockaddr *)&dst, 1000), -1);
	assert_int_equal(errno, EINVAL);
	end_close(&e);
}

/* libfabric calls rdma_getaddrinfo() in this way. */
static void hints_alone_may_have_the_addresses(void **state)
{
	struct sockaddr_in dst = end_loopback(9), src = end_loopback(10);
	struct rdma_addrinfo hints = {.ai_family = AF_INET,
				      .ai_port_space = RDMA_PS_TCP,
				      .ai_src_addr = (struct sockaddr *)&src,
				      .ai_src_len = sizeof(src),
				      .ai_dst_addr = (struct sockaddr *)&dst,
				      .ai_dst_len = sizeof(dst)};
	struct rdma_addrinfo *res;

	assert_int_equal(softrnic_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_dst_len, sizeof(dst));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(dst));
	assert_int_equal(res->ai_src_len, sizeof(src));
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	softrnic_freeaddrinfo(res);
}

static void a_source_in_the_hints_is_enough_for_a_listener(void **state)
{
	struct sockaddr_in src = end_loopback(10);
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_family = AF_INET,
				      .ai_src_addr = (struct sockaddr *)&src,
				      .ai_src_len = sizeof(src)};
	struct rdma_addrinfo *res;

	assert_int_equal(softrnic_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	assert_null(res->ai_dst_addr);
	softrnic_freeaddrinfo(res);
}

static void without_any_address_nothing_is_found(void **state)
{
	struct rdma_addrinfo hints = {.ai_family = AF_INET}, *res;

	errno = 0;
	assert_int_equal(softrnic_getaddrinfo(NULL, NULL, &hints, &res), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(softrnic_getaddrinfo(NULL, NULL, NULL, &res), -1);
	assert_int_equal(errno, EINVAL);
}

/* --- what a new queue pair gets -------------------------------------------------------------- */

static struct end *resolved(void)
{
	static struct end e;
	struct sockaddr_in dst = end_loopback(9);

	end_open(&e);
	assert_int_equal(softrnic_resolve_addr(e.id, NULL, (struct sockaddr *)&dst, 1000), 0);
	end_expect(&e, RDMA_CM_EVENT_ADDR_RESOLVED);
	return &e;
}

static void release(struct end *e)
{
	softrnic_destroy_qp(e->id);
	end_close(e);
}

static void a_little_inline_data_is_granted_and_reported(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr attr = end_qp_attr(e), init;
	struct ibv_qp_attr now;

	assert_int_equal(end_create_qp(e, &attr), 0);
	assert_true(attr.cap.max_inline_data >= 64);
	assert_true(attr.cap.max_send_wr >= END_DEPTH);
	assert_int_equal(softrnic_query_qp(e->id->qp, &now, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&now.cap, &attr.cap, sizeof(now.cap));
	assert_memory_equal(&init.cap, &attr.cap, sizeof(now.cap));
	release(e);
}

static void a_request_for_more_inline_data_is_granted(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr attr = end_qp_attr(e);

	attr.cap.max_inline_data = 200;
	assert_int_equal(end_create_qp(e, &attr), 0);
	assert_int_equal(attr.cap.max_inline_data, 200);
	release(e);
}

static struct ibv_qp_init_attr_ex extended(struct end *e)
{
	struct ibv_qp_init_attr attr = end_qp_attr(e);

	return (struct ibv_qp_init_attr_ex){.send_cq = attr.send_cq,
					    .recv_cq = attr.recv_cq,
					    .cap = attr.cap,
					    .qp_type = attr.qp_type,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = e->pd};
}

static void the_extended_call_reports_it_too(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr_ex ex = extended(e);

	assert_int_equal(softrnic_create_qp_ex(e->id, &ex), 0);
	assert_true(ex.cap.max_inline_data >= 64);
	release(e);
}

static void what_is_refused_is_not_granted(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr attr = end_qp_attr(e);
	struct ibv_qp_init_attr_ex ex = extended(e);

	attr.cap.max_send_wr = UINT32_MAX;
	errno = 0;
	assert_int_equal(end_create_qp(e, &attr), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(attr.cap.max_inline_data, 0);
	ex.qp_type = IBV_QPT_UD;
	assert_int_equal(softrnic_create_qp_ex(e->id, &ex), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ex.cap.max_inline_data, 0);
	assert_null(e->id->qp);
	end_close(e);
}

/* A request for a feature that the device lacks is refused: otherwise the program would use the
 * feature. */
static void extended_attributes_that_the_device_lacks_are_refused(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr_ex ex = extended(e);

	ex.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE;
	errno = 0;
	assert_int_equal(softrnic_create_qp_ex(e->id, &ex), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(e->id->qp);
	end_close(e);
}

static void inline_data_can_be_sent_without_a_request_for_it(void **state)
{
	struct ends *e = *state;
	char out[64];
	struct ibv_sge sge = {.addr = (uintptr_t)out, .length = sizeof(out)};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE},
			   *bad;
	struct ibv_wc wc;

	memset(out, 'i', sizeof(out));
	assert_int_equal(end_post_recv(&e->server, 1), 0);
	assert_int_equal(ibv_post_send(e->client.id->qp, &wr, &bad), 0);
	memset(out, 'x', sizeof(out));
	wc = end_wait_wc(&e->server);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, sizeof(out));
	assert_int_equal(e->server.buf[0], 'i');
	assert_int_equal(e->server.buf[sizeof(out) - 1], 'i');
}

/* --- the end of a connection, and the messages before it ------------------------------------- */

static void client_sends_one_message_and_leaves(struct ends *e)
{
	assert_int_equal(end_post_recv(&e->server, 1), 0);
	assert_int_equal(end_post_recv(&e->server, 2), 0);
	assert_int_equal(end_post_send(&e->client, 3, 16), 0);
	assert_int_equal(softrnic_disconnect(e->client.id), 0);
	end_expect(&e->server, RDMA_CM_EVENT_DISCONNECTED);
}

/* A program that polls after the event of the end finds every completion. */
static void what_came_before_the_end_is_there_with_its_event(void **state)
{
	struct ends *e = *state;
	struct ibv_wc wc[3];

	client_sends_one_message_and_leaves(e);
	assert_int_equal(ibv_poll_cq(e->server.cq, 3, wc), 2);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
}

/* Destroying a queue pair also removes its completions, as on a card. The program may then free the
 * memory to which the wr_ids point. */
static void a_destroyed_queue_pair_takes_its_completions_along(void **state)
{
	struct ends *e = *state;
	struct ibv_wc wc;

	client_sends_one_message_and_leaves(e);
	softrnic_destroy_qp(e->server.id);
	assert_int_equal(ibv_poll_cq(e->server.cq, 1, &wc), 0);
}

/* --- moving a queue pair --------------------------------------------------------------------- */

static int move(struct end *e, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};

	return softrnic_modify_qp(e->id->qp, &attr, IBV_QP_STATE);
}

static enum ibv_qp_state where(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(softrnic_query_qp(e->id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* tgtd and many other programs end a connection by moving its queue pair to the error state. */
static void moving_to_error_flushes_and_ends_the_connection(void **state)
{
	struct ends *e = *state;
	struct ibv_wc wc;

	assert_int_equal(end_post_recv(&e->client, 7), 0);
	assert_int_equal(move(&e->client, IBV_QPS_ERR), 0);
	wc = end_wait_wc(&e->client);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(where(&e->client), IBV_QPS_ERR);
	end_expect(&e->client, RDMA_CM_EVENT_DISCONNECTED);
	end_expect(&e->server, RDMA_CM_EVENT_DISCONNECTED);
	/* the completion is in the queue when the call returns */
	assert_int_equal(move(&e->client, IBV_QPS_ERR), 0);
	assert_int_equal(end_post_recv(&e->client, 8), 0);
	assert_int_equal(end_wait_wc(&e->client).status, IBV_WC_WR_FLUSH_ERR);
}

/* A driver moves even a queue pair that was never connected to ERR before destroying it. */
static void moving_to_error_flushes_an_unconnected_one(void **state)
{
	struct end *e = resolved();
	struct ibv_qp_init_attr attr = end_qp_attr(e);

	assert_int_equal(end_create_qp(e, &attr), 0);
	assert_int_equal(end_post_recv(e, 7), 0);
	assert_int_equal(move(e, IBV_QPS_ERR), 0);
	assert_int_equal(end_wait_wc(e).status, IBV_WC_WR_FLUSH_ERR);
	release(e);
}

static void one_in_error_is_not_connected(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(move(&e.client, IBV_QPS_ERR), 0);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	end_take(&e.listener, &e.server);
	assert_int_equal(softrnic_accept(e.server.id, NULL), 0);
	end_expect(&e.client, RDMA_CM_EVENT_CONNECT_ERROR);
	ends_close(&e);
}

static void other_states_are_rdma_cms(void **state)
{
	struct ends *e = *state;

	/* the completion is in the queue when the call returns */
	assert_int_equal(move(&e->client, IBV_QPS_RTS), 0);
	assert_int_equal(move(&e->client, IBV_QPS_RTR), EINVAL);
	assert_int_equal(move(&e->client, IBV_QPS_RESET), EINVAL);
	assert_int_equal(where(&e->client), IBV_QPS_RTS);
}

/* In a child an inherited queue pair counts as removed: a thread that exists only in the parent may
 * hold the queue pair's lock. */
static void a_child_moves_nothing(void **state)
{
	struct ends *e = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(move(&e->client, IBV_QPS_ERR) == ENODEV ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(where(&e->client), IBV_QPS_RTS);
	assert_false(end_hears_within(&e->server, 50));
}

enum { CHILDREN = 200 };

static atomic_bool enough;

static void poll_one(struct end *e)
{
	struct ibv_wc wc;

	while (!atomic_load(&enough) && ibv_poll_cq(e->cq, 1, &wc) == 0)
		;
}

/* Run without a pause, so that a call on a connection is under way at most times. */
static void *send_and_receive(void *arg)
{
	struct ends *e = arg;

	for (uint64_t i = 0; !atomic_load(&enough); i++) {
		assert_int_equal(end_post_recv(&e->server, i), 0);
		assert_int_equal(end_post_send(&e->client, i, END_BUF), 0);
		poll_one(&e->server);
		poll_one(&e->client);
	}
	return NULL;
}

/* At the time of the fork the parent's other threads may be at any point of their calls. */
static void a_child_of_busy_connections_can_release_their_ids(void **state)
{
	struct ends *e = *state;
	pthread_t thread;
	int status = 0;

	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, send_and_receive, e), 0);
	for (int i = 0; i < CHILDREN && !status; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(softrnic_destroy_id(e->server.id) ||
			      softrnic_destroy_id(e->client.id));
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	assert_int_equal(status, 0);
}

/* --- the end of a connection ----------------------------------------------------------------- */

static void disconnecting_once_more_changes_nothing(void **state)
{
	struct ends *e = *state;

	assert_int_equal(softrnic_disconnect(e->client.id), 0);
	end_expect(&e->client, RDMA_CM_EVENT_DISCONNECTED);
	end_expect(&e->server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(softrnic_disconnect(e->server.id), 0);
	assert_int_equal(softrnic_disconnect(e->client.id), 0);
	assert_false(end_hears_within(&e->client, 50));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_bound_stays_so_when_resolved_with_a_source),
		cmocka_unit_test(an_unbound_id_is_bound_to_the_source),
		cmocka_unit_test(a_bound_id_does_not_go_to_another_family),
		cmocka_unit_test(hints_alone_may_have_the_addresses),
		cmocka_unit_test(a_source_in_the_hints_is_enough_for_a_listener),
		cmocka_unit_test(without_any_address_nothing_is_found),
		cmocka_unit_test(a_little_inline_data_is_granted_and_reported),
		cmocka_unit_test(a_request_for_more_inline_data_is_granted),
		cmocka_unit_test(the_extended_call_reports_it_too),
		cmocka_unit_test(what_is_refused_is_not_granted),
		cmocka_unit_test(extended_attributes_that_the_device_lacks_are_refused),
		cmocka_unit_test_setup_teardown(inline_data_can_be_sent_without_a_request_for_it,
						connected, disconnected),
		cmocka_unit_test_setup_teardown(what_came_before_the_end_is_there_with_its_event,
						connected, disconnected),
		cmocka_unit_test_setup_teardown(a_destroyed_queue_pair_takes_its_completions_along,
						connected, disconnected),
		cmocka_unit_test_setup_teardown(moving_to_error_flushes_and_ends_the_connection,
						connected, disconnected),
		cmocka_unit_test(moving_to_error_flushes_an_unconnected_one),
		cmocka_unit_test(one_in_error_is_not_connected),
		cmocka_unit_test_setup_teardown(other_states_are_rdma_cms, connected, disconnected),
		cmocka_unit_test_setup_teardown(a_child_moves_nothing, connected, disconnected),
		cmocka_unit_test_setup_teardown(a_child_of_busy_connections_can_release_their_ids,
						connected, disconnected),
		cmocka_unit_test_setup_teardown(disconnecting_once_more_changes_nothing, connected,
						disconnected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
