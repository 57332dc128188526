/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 20000

uint32_t end_host = INADDR_LOOPBACK;
int end_signals_all = 1;

struct sockaddr_in end_loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(end_host), .sin_port = htons(port)};
}

static void end_equip(struct end *e)
{
	struct ibv_context *ctx = softrnic_context();

	e->pd = softrnic_alloc_pd(ctx);
	e->completions = softrnic_create_comp_channel(ctx);
	assert_non_null(e->completions);
	e->cq = softrnic_create_cq(ctx, 4 * END_DEPTH, NULL, e->completions, 0);
	assert_non_null(e->pd);
	assert_non_null(e->cq);
	e->mr = softrnic_reg_mr(e->pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(e->mr);
}

void end_open(struct end *e)
{
	memset(e, 0, sizeof(*e));
	e->channel = softrnic_create_event_channel();
	assert_non_null(e->channel);
	assert_int_equal(softrnic_create_id(e->channel, &e->id, NULL, RDMA_PS_TCP), 0);
	end_equip(e);
}

void end_close(struct end *e)
{
	if (e->id)
		assert_int_equal(softrnic_destroy_id(e->id), 0);
	if (e->channel)
		softrnic_destroy_event_channel(e->channel);
	if (e->mr)
		assert_int_equal(softrnic_dereg_mr(e->mr), 0);
	if (e->cq)
		assert_int_equal(softrnic_destroy_cq(e->cq), 0);
	if (e->completions)
		assert_int_equal(softrnic_destroy_comp_channel(e->completions), 0);
	if (e->pd)
		assert_int_equal(softrnic_dealloc_pd(e->pd), 0);
	memset(e, 0, sizeof(*e));
}

uint16_t end_bind(struct end *e)
{
	struct sockaddr_in any = end_loopback(0);

	assert_int_equal(softrnic_bind_addr(e->id, (struct sockaddr *)&any), 0);
	return ntohs(e->id->route.addr.src_sin.sin_port);
}

struct ibv_qp_init_attr end_qp_attr(struct end *e)
{
	return (struct ibv_qp_init_attr){
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = END_DEPTH,
			.max_recv_wr = END_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = end_signals_all,
	};
}

int end_create_qp(struct end *e, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};
	int ret = softrnic_create_qp_ex(e->id, &ex);

	attr->cap = ex.cap;
	return ret;
}

static void end_make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = end_qp_attr(e);

	assert_int_equal(end_create_qp(e, &attr), 0);
}

void end_aim(struct end *e, uint16_t port)
{
	struct sockaddr_in dst = end_loopback(port);

	assert_int_equal(softrnic_resolve_addr(e->id, NULL, (struct sockaddr *)&dst, 1000), 0);
	end_expect(e, RDMA_CM_EVENT_ADDR_RESOLVED);
	end_make_qp(e);
}

int end_expect(struct end *e, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	int status;

	assert_int_equal(softrnic_wait_cm_event(e->channel, PATIENCE_MS, &ev), 0);
	assert_string_equal(softrnic_event_str(ev->event), softrnic_event_str(type));
	status = ev->status;
	softrnic_ack_cm_event(ev);
	return status;
}

bool end_hears_within(struct end *e, int ms)
{
	struct rdma_cm_event *ev;

	if (softrnic_wait_cm_event(e->channel, ms, &ev))
		return false;
	softrnic_ack_cm_event(ev);
	return true;
}

void end_take(struct end *listener, struct end *server)
{
	struct rdma_cm_event *ev;

	assert_int_equal(softrnic_wait_cm_event(listener->channel, PATIENCE_MS, &ev), 0);
	assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	memset(server, 0, sizeof(*server));
	server->id = ev->id;
	softrnic_ack_cm_event(ev);
	server->channel = softrnic_create_event_channel();
	assert_non_null(server->channel);
	assert_int_equal(softrnic_migrate_id(server->id, server->channel), 0);
	end_equip(server);
	end_make_qp(server);
}

void ends_open(struct ends *e)
{
	uint16_t port;

	end_open(&e->listener);
	end_open(&e->client);
	memset(&e->server, 0, sizeof(e->server));
	port = end_bind(&e->listener);
	end_aim(&e->client, port);
}

void ends_close(struct ends *e)
{
	end_close(&e->client);
	end_close(&e->server);
	end_close(&e->listener);
}

void ends_establish(struct ends *e)
{
	end_take(&e->listener, &e->server);
	assert_int_equal(softrnic_accept(e->server.id, NULL), 0);
	end_expect(&e->client, RDMA_CM_EVENT_ESTABLISHED);
	end_expect(&e->server, RDMA_CM_EVENT_ESTABLISHED);
}

int end_post_recv(struct end *e, uint64_t wr_id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf, .length = sizeof(e->buf), .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(e->id->qp, &wr, &bad);
}

int end_post_send(struct end *e, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	return ibv_post_send(e->id->qp, &wr, &bad);
}

struct ibv_wc end_wait_wc(struct end *e)
{
	struct ibv_wc wc;
	int n = 0;

	for (int ms = 0; n == 0 && ms < PATIENCE_MS; ms++) {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (n == 0)
			usleep(1000);
	}
	assert_int_equal(n, 1);
	return wc;
}
