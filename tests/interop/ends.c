/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

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

struct rdma_cm_id *end_make_with(int flags, __be16 port, struct ibv_qp_init_attr attr)
{
	struct rdma_addrinfo *res = ends_address(flags, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	return id;
}

struct rdma_cm_id *end_make(int flags, __be16 port)
{
	return end_make_with(flags, port, end_qp_attr());
}
