/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct ibv_context *end_open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	assert_non_null(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "softrnic0"))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

struct ibv_qp_init_attr end_qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *ends_address(int flags, __be16 port)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP,
				      .ai_qp_type = IBV_QPT_RC};
	struct rdma_addrinfo *res;
	char service[8];

	snprintf(service, sizeof(service), "%u", ntohs(port));
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", service, &hints, &res), 0);
	return res;
}

static struct rdma_cm_id *ends_make(int flags, __be16 port, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo *res = ends_address(flags, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, res, NULL, attr), 0);
	rdma_freeaddrinfo(res);
	return id;
}

struct rdma_cm_id *end_make_with(int flags, __be16 port, struct ibv_qp_init_attr attr)
{
	return ends_make(flags, port, &attr);
}

struct rdma_cm_id *end_make(int flags, __be16 port)
{
	return end_make_with(flags, port, end_qp_attr());
}

/* --- both ends -------------------------------------------------------------------------- */

void *ends_connect(void *arg)
{
	struct ends *d = arg;

	assert_int_equal(rdma_connect(d->client, NULL), 0);
	return NULL;
}

static void ends_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = end_qp_attr();

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

void ends_open_with(struct ends *d, void (*make_qp)(struct rdma_cm_id *id))
{
	d->listener = ends_make(RAI_PASSIVE, 0, NULL);
	assert_int_equal(rdma_listen(d->listener, 1), 0);
	d->client = ends_make(0, rdma_get_src_port(d->listener), NULL);
	make_qp(d->client);
	assert_int_equal(pthread_create(&d->thread, NULL, ends_connect, d), 0);
	assert_int_equal(rdma_get_request(d->listener, &d->server), 0);
	make_qp(d->server);
	assert_int_equal(rdma_accept(d->server, NULL), 0);
	pthread_join(d->thread, NULL);
}

void ends_open(struct ends *d)
{
	ends_open_with(d, ends_make_qp);
}

void ends_close(struct ends *d)
{
	rdma_destroy_ep(d->client);
	rdma_destroy_ep(d->server);
	rdma_destroy_ep(d->listener);
}
