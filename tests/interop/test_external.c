/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_external.c -- programs that make their queue pairs by ibv_create_qp(), and connect them by
 * rdma_cm: rdma_init_qp_attr(), conn_param.qp_num, CONNECT_RESPONSE and rdma_establish().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define RESOLVE_MS 2000
#define LEN        64

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_cm_event *event; /* the event that is not acknowledged yet */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t buf[LEN];
};

static struct end client, server;
static struct rdma_cm_id *listener;

/* --- events ----------------------------------------------------------------------------------- */

static void next(struct end *e, enum rdma_cm_event_type type)
{
	if (e->event)
		assert_int_equal(rdma_ack_cm_event(e->event), 0);
	assert_int_equal(rdma_get_cm_event(e->channel, &e->event), 0);
	assert_string_equal(rdma_event_str(e->event->event), rdma_event_str(type));
}

static void listen_and_resolve_in(enum rdma_port_space ps)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	server.channel = rdma_create_event_channel();
	client.channel = rdma_create_event_channel();
	assert_true(server.channel && client.channel);
	assert_int_equal(rdma_create_id(server.channel, &listener, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(rdma_create_id(client.channel, &client.id, NULL, ps), 0);
	any.sin_port = rdma_get_src_port(listener);
	assert_int_equal(rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&any, RESOLVE_MS),
			 0);
	next(&client, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(client.id, RESOLVE_MS), 0);
	next(&client, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void listen_and_resolve(void)
{
	listen_and_resolve_in(RDMA_PS_TCP);
}

/* --- queue pairs ------------------------------------------------------------------------------ */

static void make_queues(struct end *e)
{
	struct ibv_context *ctx = e->id->verbs;

	assert_non_null(ctx);
	e->pd = ibv_alloc_pd(ctx);
	e->cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	assert_true(e->pd && e->cq);
	e->mr = ibv_reg_mr(e->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(e->mr);
}

static struct ibv_qp_init_attr qp_attr(struct end *e)
{
	return (struct ibv_qp_init_attr){
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static void move(struct end *e, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};
	int mask;

	assert_int_equal(rdma_init_qp_attr(e->id, &attr, &mask), 0);
	assert_int_equal(attr.qp_state, to);
	assert_true(mask & IBV_QP_STATE);
	assert_int_equal(ibv_modify_qp(e->qp, &attr, mask), 0);
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr;

	make_queues(e);
	attr = qp_attr(e);
	e->qp = ibv_create_qp(e->pd, &attr);
	assert_non_null(e->qp);
	move(e, IBV_QPS_INIT);
}

static void post_recv(struct end *e)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = LEN, .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void send_text(struct end *e, const char *text)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf, .length = (uint32_t)strlen(text), .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	memcpy(e->buf, text, strlen(text));
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
}

/* Wait at most 10 s for a successful completion. */
static struct ibv_wc completion(struct end *e)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct ibv_wc wc = {0};
	int n = 0;

	for (int i = 0; i < 10000 && n == 0; i++) {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (n == 0)
			nanosleep(&pause, NULL);
	}
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void talk(struct end *from, struct end *to, const char *text)
{
	post_recv(to);
	send_text(from, text);
	assert_int_equal(completion(to).byte_len, strlen(text));
	assert_memory_equal(to->buf, text, strlen(text));
	assert_int_equal(completion(from).wr_id, 2);
}

/* --- connections ------------------------------------------------------------------------------ */

static struct rdma_conn_param params(const struct end *e, const char *text)
{
	return (struct rdma_conn_param){.private_data = text,
					.private_data_len = (uint8_t)strlen(text),
					.responder_resources = 4,
					.initiator_depth = 4,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = e->qp ? e->qp->qp_num : 0};
}

static void expect_peer(const struct end *e, const struct end *peer, const char *text)
{
	const struct rdma_conn_param *p = &e->event->param.conn;

	assert_int_equal(p->qp_num, peer->qp->qp_num);
	assert_int_equal(p->private_data_len, strlen(text));
	assert_memory_equal(p->private_data, text, strlen(text));
}

static void connect_client(void)
{
	struct rdma_conn_param param;

	make_qp(&client);
	param = params(&client, "request");
	assert_int_equal(rdma_connect(client.id, &param), 0);
	next(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
	server.id = server.event->id;
	expect_peer(&server, &client, "request");
}

static void accept_server(void)
{
	struct rdma_conn_param param;

	make_qp(&server);
	move(&server, IBV_QPS_RTR);
	move(&server, IBV_QPS_RTS);
	param = params(&server, "reply");
	assert_int_equal(rdma_accept(server.id, &param), 0);
}

static void close_end(struct end *e)
{
	if (e->event)
		assert_int_equal(rdma_ack_cm_event(e->event), 0);
	if (e->qp)
		assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(rdma_destroy_id(e->id), 0);
	if (e->mr)
		assert_int_equal(ibv_dereg_mr(e->mr), 0);
	if (e->cq)
		assert_int_equal(ibv_destroy_cq(e->cq), 0);
	if (e->pd)
		assert_int_equal(ibv_dealloc_pd(e->pd), 0);
}

static void close_all(void)
{
	close_end(&client);
	close_end(&server);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(client.channel);
	rdma_destroy_event_channel(server.channel);
	memset(&client, 0, sizeof(client));
	memset(&server, 0, sizeof(server));
}

static void queue_pairs_of_programs_are_connected_by_rdma_cm(void **state)
{
	listen_and_resolve();
	connect_client();
	accept_server();
	next(&client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	expect_peer(&client, &server, "reply");
	move(&client, IBV_QPS_RTR);
	move(&client, IBV_QPS_RTS);
	assert_int_equal(rdma_establish(client.id), 0);
	next(&server, RDMA_CM_EVENT_ESTABLISHED);
	talk(&client, &server, "to the server");
	talk(&server, &client, "to the client");
	assert_int_equal(rdma_disconnect(client.id), 0);
	next(&server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(server.id), 0);
	next(&client, RDMA_CM_EVENT_DISCONNECTED);
	close_all();
}

/* The server is allowed to send as soon as it is established, even before the client has moved its
 * queue pair to RTR. */
static void a_send_waits_for_the_peers_queue_pair(void **state)
{
	listen_and_resolve();
	connect_client();
	accept_server();
	next(&server, RDMA_CM_EVENT_ESTABLISHED);
	post_recv(&client);
	send_text(&server, "early");
	next(&client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	move(&client, IBV_QPS_RTR);
	move(&client, IBV_QPS_RTS);
	assert_int_equal(completion(&client).byte_len, 5);
	assert_memory_equal(client.buf, "early", 5);
	assert_int_equal(completion(&server).wr_id, 2);
	close_all();
}

static void a_rejected_request_names_no_queue_pair(void **state)
{
	listen_and_resolve();
	connect_client();
	assert_int_equal(rdma_reject(server.id, "no", 2), 0);
	next(&client, RDMA_CM_EVENT_REJECTED);
	assert_memory_equal(client.event->param.conn.private_data, "no", 2);
	close_all();
}

/* --- refusals --------------------------------------------------------------------------------- */

static void attributes_of_the_peer_are_unknown_before_its_answer(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	listen_and_resolve();
	assert_int_equal(rdma_init_qp_attr(client.id, &attr, &mask), -1);
	assert_int_equal(errno, EINVAL);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(rdma_init_qp_attr(client.id, &attr, &mask), -1);
	assert_int_equal(rdma_establish(client.id), -1);
	connect_client();
	close_all();
}

static void queue_pairs_of_both_kinds_are_not_connected(void **state)
{
	struct ibv_qp_init_attr attr;
	struct rdma_conn_param param;

	listen_and_resolve();
	connect_client();
	make_queues(&server);
	attr = qp_attr(&server);
	assert_int_equal(rdma_create_qp(server.id, server.pd, &attr), 0);
	param = params(&server, "reply");
	assert_int_equal(rdma_accept(server.id, &param), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_reject(server.id, NULL, 0), 0);
	next(&client, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_qp(server.id);
	close_all();
}

/* --- the timeout -------------------------------------------------------------------------------- */

static void the_ack_timeout_is_an_attribute_of_the_queue_pair(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint8_t timeout = 17, invalid = 32;

	listen_and_resolve();
	assert_int_equal(
		rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &invalid, 1),
		-1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		0);
	connect_client();
	accept_server();
	next(&client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	move(&client, IBV_QPS_RTR);
	move(&client, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(client.qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.timeout, 17);
	close_all();
}

static void the_ack_timeout_of_an_ids_queue_pair_is_reported(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 5;

	listen_and_resolve();
	assert_int_equal(
		rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		0);
	make_queues(&client);
	init = qp_attr(&client);
	assert_int_equal(rdma_create_qp(client.id, client.pd, &init), 0);
	assert_int_equal(ibv_query_qp(client.id->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.timeout, 5);
	timeout = 6;
	assert_int_equal(
		rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		0);
	assert_int_equal(ibv_query_qp(client.id->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.timeout, 6);
	rdma_destroy_qp(client.id);
	server.id = NULL;
	close_end(&client);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(client.channel);
	rdma_destroy_event_channel(server.channel);
	memset(&client, 0, sizeof(client));
}

/* --- datagrams -------------------------------------------------------------------------------- */

static void make_datagram_qp(struct end *e)
{
	struct ibv_qp_init_attr attr;

	make_queues(e);
	attr = qp_attr(e);
	attr.qp_type = IBV_QPT_UD;
	assert_int_equal(rdma_create_qp(e->id, e->pd, &attr), 0);
	assert_int_equal(e->id->qp->qp_type, IBV_QPT_UD);
}

static void connect_datagrams(void)
{
	struct rdma_conn_param param = {.private_data = "request", .private_data_len = 7};

	listen_and_resolve_in(RDMA_PS_UDP);
	make_datagram_qp(&client);
	assert_int_equal(rdma_connect(client.id, &param), 0);
	next(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
	server.id = server.event->id;
	assert_int_equal(server.event->param.ud.private_data_len, 7);
	assert_memory_equal(server.event->param.ud.private_data, "request", 7);
}

static void send_datagram(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = 5, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}},
			   *bad;

	memcpy(e->buf, "hello", 5);
	assert_int_equal(ibv_post_send(e->id->qp, &wr, &bad), 0);
	assert_int_equal(completion(e).wr_id, 2);
}

static void post_datagram_recv(struct end *e)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = LEN, .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(e->id->qp, &wr, &bad), 0);
}

/* The initiator gets the path, the queue pair number and the key from the event. The target answers
 * to the address in the header of the received datagram. */
static void ids_for_datagrams_exchange_their_queue_pairs(void **state)
{
	const struct rdma_ud_param *ud;
	struct ibv_ah *ah, *back;
	struct ibv_wc wc;

	connect_datagrams();
	make_datagram_qp(&server);
	post_datagram_recv(&server);
	assert_int_equal(
		rdma_accept(server.id, &(struct rdma_conn_param){.private_data = "reply",
								 .private_data_len = 5,
								 .qp_num = server.id->qp->qp_num}),
		0);
	next(&client, RDMA_CM_EVENT_ESTABLISHED);
	ud = &client.event->param.ud;
	assert_int_equal(ud->qp_num, server.id->qp->qp_num);
	assert_memory_equal(ud->private_data, "reply", 5);
	ah = ibv_create_ah(client.pd, &client.event->param.ud.ah_attr);
	assert_non_null(ah);
	send_datagram(&client, ah, ud->qp_num, ud->qkey);
	wc = completion(&server);
	assert_int_equal(wc.byte_len, 40 + 5);
	assert_int_equal(wc.src_qp, client.id->qp->qp_num);
	assert_memory_equal(server.buf + 40, "hello", 5);
	back = ibv_create_ah_from_wc(server.pd, &wc, (struct ibv_grh *)server.buf, 1);
	assert_non_null(back);
	post_datagram_recv(&client);
	send_datagram(&server, back, wc.src_qp, ud->qkey);
	assert_int_equal(completion(&client).byte_len, 40 + 5);
	assert_memory_equal(client.buf + 40, "hello", 5);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(back), 0);
	rdma_destroy_qp(client.id);
	rdma_destroy_qp(server.id);
	close_all();
}

static void connect_client_to_datagrams(void)
{
	struct rdma_conn_param param;

	make_qp(&client);
	param = params(&client, "request");
	assert_int_equal(rdma_connect(client.id, &param), 0);
	next(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
	server.id = server.event->id;
}

static void a_connected_id_is_not_accepted_for_datagrams(void **state)
{
	struct sockaddr_in to;
	struct rdma_conn_param param;

	listen_and_resolve_in(RDMA_PS_UDP);
	to = *(struct sockaddr_in *)rdma_get_peer_addr(client.id);
	assert_int_equal(rdma_ack_cm_event(client.event), 0);
	client.event = NULL;
	assert_int_equal(rdma_destroy_id(client.id), 0);
	assert_int_equal(rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&to, RESOLVE_MS), 0);
	next(&client, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(client.id, RESOLVE_MS), 0);
	next(&client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	connect_client_to_datagrams();
	make_datagram_qp(&server);
	param = params(&server, "reply");
	assert_int_equal(rdma_accept(server.id, &param), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	rdma_destroy_qp(server.id);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_pairs_of_programs_are_connected_by_rdma_cm),
		cmocka_unit_test(a_send_waits_for_the_peers_queue_pair),
		cmocka_unit_test(a_rejected_request_names_no_queue_pair),
		cmocka_unit_test(attributes_of_the_peer_are_unknown_before_its_answer),
		cmocka_unit_test(queue_pairs_of_both_kinds_are_not_connected),
		cmocka_unit_test(ids_for_datagrams_exchange_their_queue_pairs),
		cmocka_unit_test(a_connected_id_is_not_accepted_for_datagrams),
		cmocka_unit_test(the_ack_timeout_is_an_attribute_of_the_queue_pair),
		cmocka_unit_test(the_ack_timeout_of_an_ids_queue_pair_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
