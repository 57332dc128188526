/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_built.c -- work requests that a program of libibverbs builds with the calls ibv_wr_...().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "ends.h"

#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define OPS                                                                                        \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                                 \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                 \
	 IBV_QP_EX_WITH_ATOMIC_WRITE)
#define DEPTH 8

/* The words come first, so that they are aligned. */
static struct {
	uint64_t word[4];
	char bytes[64];
} here, there;
static struct ibv_mr *local, *remote;

static int make_qp_with(struct rdma_cm_id *id, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = id->pd,
		.send_ops_flags = ops,
	};

	return rdma_create_qp_ex(id, &attr);
}

static void make_qp(struct rdma_cm_id *id)
{
	assert_int_equal(make_qp_with(id, OPS), 0);
}

static int setup(void **state)
{
	static struct ends d;

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	ends_open_with(&d, make_qp);
	local = ibv_reg_mr(d.client->pd, &here, sizeof(here), RIGHTS);
	remote = ibv_reg_mr(d.server->pd, &there, sizeof(there), RIGHTS);
	assert_non_null(local);
	assert_non_null(remote);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(local), 0);
	assert_int_equal(ibv_dereg_mr(remote), 0);
	ends_close(*state);
	return 0;
}

/* Begin a list of requests on the client's queue pair. Requests are signalled from now on. */
static struct ibv_qp_ex *begin(struct ends *d)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(d->client->qp);

	assert_non_null(qpx);
	ibv_wr_start(qpx);
	qpx->wr_id = 0;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	return qpx;
}

static void expect(struct ends *d, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
}

static struct ibv_wc received(struct ends *d)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void set_sge(struct ibv_qp_ex *qpx, void *at, uint32_t len)
{
	ibv_wr_set_sge(qpx, local->lkey, (uintptr_t)at, len);
}

static void messages_arrive_in_the_order_in_which_they_were_built(void **state)
{
	struct ends *d = *state;
	struct ibv_qp_ex *qpx;
	struct ibv_sge two[2] = {
		{.addr = (uintptr_t)here.bytes, .length = 2, .lkey = local->lkey},
		{.addr = (uintptr_t)here.bytes + 2, .length = 2, .lkey = local->lkey}};
	struct ibv_wc wc;

	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(
			rdma_post_recv(d->server, (void *)i, there.bytes + 8 * i, 8, remote), 0);
	strcpy(here.bytes, "abc");
	qpx = begin(d);
	qpx->wr_id = 1;
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 2, two);
	qpx->wr_id = 2;
	qpx->wr_flags = 0;
	ibv_wr_send_imm(qpx, htonl(7));
	qpx->wr_id = 3;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write_imm(qpx, remote->rkey, (uintptr_t)there.bytes + 32, 0);
	set_sge(qpx, here.bytes, 4);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	assert_int_equal(received(d).byte_len, 4);
	wc = received(d);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(ntohl(wc.imm_data), 7);
	wc = received(d);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_string_equal(there.bytes, "abc");
	assert_string_equal(there.bytes + 32, "abc");
	expect(d, 1, IBV_WC_SEND);
	expect(d, 3, IBV_WC_RDMA_WRITE);
}

static void words_and_reads_come_back(void **state)
{
	struct ends *d = *state;
	struct ibv_qp_ex *qpx;
	uint64_t last = 99;

	there.word[0] = 5;
	qpx = begin(d);
	ibv_wr_atomic_fetch_add(qpx, remote->rkey, (uintptr_t)&there.word[0], 2);
	set_sge(qpx, &here.word[0], 8);
	qpx->wr_id = 1;
	ibv_wr_atomic_cmp_swp(qpx, remote->rkey, (uintptr_t)&there.word[0], 7, 8);
	set_sge(qpx, &here.word[1], 8);
	qpx->wr_id = 2;
	ibv_wr_atomic_write(qpx, remote->rkey, (uintptr_t)&there.word[1], &last);
	last = 0; /* the post has copied the inline data */
	qpx->wr_id = 3;
	ibv_wr_rdma_read(qpx, remote->rkey, (uintptr_t)&there.word[0]);
	set_sge(qpx, &here.word[2], 16);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect(d, 0, IBV_WC_FETCH_ADD);
	expect(d, 1, IBV_WC_COMP_SWAP);
	expect(d, 2, IBV_WC_ATOMIC_WRITE);
	expect(d, 3, IBV_WC_RDMA_READ);
	assert_int_equal(here.word[0], 5);
	assert_int_equal(here.word[1], 7);
	assert_int_equal(here.word[2], 8);
	assert_int_equal(here.word[3], 99);
}

static void inline_data_are_copied_at_once(void **state)
{
	struct ends *d = *state;
	char part[2][8] = {"one", "two"}, none;
	struct ibv_data_buf bufs[2] = {{.addr = part[0], .length = 3},
				       {.addr = part[1], .length = 4}};
	struct ibv_qp_ex *qpx = begin(d);

	ibv_wr_rdma_write(qpx, remote->rkey, (uintptr_t)there.bytes);
	ibv_wr_set_inline_data_list(qpx, 2, bufs);
	ibv_wr_rdma_write(qpx, remote->rkey, (uintptr_t)there.bytes + 16);
	ibv_wr_set_inline_data(qpx, part[1], 4);
	ibv_wr_rdma_write(qpx, remote->rkey, (uintptr_t)there.bytes);
	ibv_wr_set_inline_data(qpx, &none, 0);
	memset(part, 'x', sizeof(part));
	ibv_wr_rdma_read(qpx, remote->rkey, (uintptr_t)there.bytes);
	set_sge(qpx, here.bytes, 32);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	for (int i = 0; i < 3; i++)
		expect(d, 0, IBV_WC_RDMA_WRITE);
	expect(d, 0, IBV_WC_RDMA_READ);
	assert_string_equal(here.bytes, "onetwo");
	assert_string_equal(here.bytes + 16, "two");
}

/* If a list has an error, none of its requests is posted. The next list is posted as usual. */
static void assert_refused(struct ends *d, struct ibv_qp_ex *qpx, int err)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_wr_complete(qpx), err);
	qpx = begin(d);
	qpx->wr_id = 42;
	ibv_wr_rdma_read(qpx, remote->rkey, (uintptr_t)there.bytes);
	set_sge(qpx, here.bytes, 8);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect(d, 42, IBV_WC_RDMA_READ);
	assert_int_equal(ibv_poll_cq(d->client->send_cq, 1, &wc), 0);
	assert_int_equal(there.bytes[0], 0);
}

/* Begin a list with a Write, which must not be posted if the list has an error. */
static struct ibv_qp_ex *begin_with_a_write(struct ends *d)
{
	struct ibv_qp_ex *qpx = begin(d);
	char x = 'x';

	ibv_wr_rdma_write(qpx, remote->rkey, (uintptr_t)there.bytes);
	ibv_wr_set_inline_data(qpx, &x, 1);
	return qpx;
}

static void a_list_with_an_error_is_not_posted(void **state)
{
	struct ends *d = *state;
	struct ibv_sge three[3] = {{0}};
	char long_data[65] = "";
	struct ibv_qp_ex *qpx = begin_with_a_write(d);

	ibv_wr_send_inv(qpx, 1); /* the queue pair was made without this operation */
	set_sge(qpx, here.bytes, 1);
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	ibv_wr_local_inv(qpx, 1);
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 3, three);
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, long_data, sizeof(long_data));
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	set_sge(qpx, here.bytes, 1); /* a request with a second payload */
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	ibv_wr_rdma_read(qpx, remote->rkey, (uintptr_t)there.bytes);
	ibv_wr_set_inline_data(qpx, long_data, 1);
	assert_refused(d, qpx, EINVAL);
	qpx = begin_with_a_write(d);
	for (int i = 0; i < DEPTH; i++)
		ibv_wr_send(qpx);
	assert_refused(d, qpx, ENOMEM);
}

static void a_list_that_is_given_up_is_forgotten(void **state)
{
	struct ends *d = *state;
	struct ibv_qp_ex *qpx = begin_with_a_write(d);

	ibv_wr_local_inv(qpx, 1);
	ibv_wr_abort(qpx);
	qpx = begin(d);
	set_sge(qpx, here.bytes, 1); /* a segment before any request */
	assert_refused(d, qpx, EINVAL);
	qpx = begin(d);
	assert_int_equal(ibv_wr_complete(qpx), 0);
}

static void queue_pairs_for_what_the_device_lacks_are_refused(void **state)
{
	const uint64_t lacked[] = {IBV_QP_EX_WITH_TSO, 1ull << 40};
	struct rdma_cm_id *other;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ibv_qp_init_attr attr = end_qp_attr();

	assert_int_equal(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(other, (struct sockaddr *)&any), 0);
	for (size_t i = 0; i < sizeof(lacked) / sizeof(*lacked); i++) {
		errno = 0;
		assert_int_equal(make_qp_with(other, lacked[i]), -1);
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_int_equal(rdma_create_qp(other, NULL, &attr), 0);
	/* this queue pair was made without send_ops_flags */
	assert_null(ibv_qp_to_qp_ex(other->qp));
	rdma_destroy_qp(other);
	assert_int_equal(rdma_destroy_id(other), 0);
}

/* The queue pair is made by verbs alone. A built request is refused until the queue pair's state
 * permits posts. */
static void a_queue_pair_without_an_id_has_builders_too(void **state)
{
	struct ends *d = *state;
	struct ibv_cq *cq = ibv_create_cq(d->client->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = d->client->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(d->client->verbs, &attr);
	struct ibv_qp_ex *qpx;

	assert_non_null(qp);
	assert_true(attr.cap.max_inline_data > 0);
	qpx = ibv_qp_to_qp_ex(qp);
	assert_ptr_equal(&qpx->qp_base, qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL); /* the queue pair is in RESET */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	errno = 0;
	assert_null(ibv_create_qp_ex(d->client->verbs, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(messages_arrive_in_the_order_in_which_they_were_built),
		CASE(words_and_reads_come_back),
		CASE(inline_data_are_copied_at_once),
		CASE(a_list_with_an_error_is_not_posted),
		CASE(a_list_that_is_given_up_is_forgotten),
		cmocka_unit_test(queue_pairs_for_what_the_device_lacks_are_refused),
		CASE(a_queue_pair_without_an_id_has_builders_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
