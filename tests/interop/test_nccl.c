/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl.c -- the calls that NCCL's network module net_ib makes to send messages. NCCL itself
 * needs a GPU.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "nccl_end.h"

enum { PATIENCE_S = 30 };

static void every_call_is_found_under_its_version(void **state)
{
	nccl_load_verbs();
}

static void the_device_is_one_that_the_module_takes(void **state)
{
	struct ibv_device_attr attr;
	union ibv_gid gid, none = {0};
	struct device d;

	device_open(&d);
	assert_int_equal(verbs.ibv_query_device(d.ctx, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(d.port.state, IBV_PORT_ACTIVE);
	assert_int_equal(d.port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(d.port.active_speed && d.port.active_width);
	assert_int_equal(verbs.ibv_query_gid(d.ctx, 1, 0, &gid), 0);
	assert_memory_not_equal(&gid, &none, sizeof(gid));
	device_close(&d);
}

/* The module calls the function with an invalid descriptor to find out whether it is supported, and
 * accepts either of two errors. */
static void there_are_no_dma_buffers(void **state)
{
	struct device d;

	device_open(&d);
	errno = 0;
	assert_null(verbs.ibv_reg_dmabuf_mr(d.pd, 0, 0, 0, -1, 0));
	assert_true(errno == EOPNOTSUPP || errno == EPROTONOSUPPORT);
	device_close(&d);
}

static int setup(void **state)
{
	static struct pair p;

	p = (struct pair){0};
	pair_connect(&p);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	pair_close(*state);
	return 0;
}

/* --- messages ------------------------------------------------------------------------------- */

/* Poll like the module: repeatedly, with up to four completions for each call. */
static struct ibv_wc next_completion(struct end *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wcs[4];
	time_t end = time(NULL) + PATIENCE_S;
	int n;

	do {
		n = e->cq->context->ops.poll_cq(e->cq, 4, wcs);
		assert_true(n >= 0 && time(NULL) < end);
		for (int i = 0; i < n; i++) {
			if (wcs[i].status != IBV_WC_SUCCESS)
				fail_msg("completion with status %d", wcs[i].status);
			if (wcs[i].opcode == opcode)
				return wcs[i];
		}
	} while (true);
}

/* The module's irecv: post a receive for the last of the messages, and write an offer to the
 * sender. */
static void offer(struct pair *p, int count, uint32_t size)
{
	struct end *r = &p->receiver;
	uint64_t number = p->number + 1;
	struct slot *mine = r->slots[number % REQUESTS];
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = number};
	struct ibv_sge sge = {.addr = (uintptr_t)mine,
			      .length = (uint32_t)((unsigned)count * sizeof(*mine)),
			      .lkey = r->slots_mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = (uintptr_t)p->sender.slots[number % REQUESTS],
				    .rkey = p->sender.slots_mr->rkey},
		};

	assert_int_equal(r->qp->context->ops.post_recv(r->qp, &recv, &bad_recv), 0);
	for (int i = 0; i < count; i++)
		mine[i] = (struct slot){.addr = (uintptr_t)r->data + (unsigned)i * size,
					.rkey = r->data_mr->rkey,
					.size = size,
					.count = (uint32_t)count,
					.number = number};
	assert_int_equal(r->qp->context->ops.post_send(r->qp, &wr, &bad), 0);
	next_completion(r, IBV_WC_RDMA_WRITE);
}

static const struct slot *wait_for_offer(struct pair *p, int count)
{
	const struct slot *slots = p->sender.slots[(p->number + 1) % REQUESTS];
	time_t end = time(NULL) + PATIENCE_S;

	for (int i = 0; i < count; i++)
		while (slots[i].number != p->number + 1)
			assert_true(time(NULL) < end);
	return slots;
}

/*
 * The module's isend: send the messages; the last one carries the immediate data. If `alone`, an
 * additional empty message carries the immediate data, as the module does with adaptive routing or
 * with several messages.
 */
static void send_offered(struct pair *p, int count, bool alone, uint32_t imm)
{
	const struct slot *slots = wait_for_offer(p, count);
	struct end *s = &p->sender;
	struct ibv_send_wr *bad, wrs[AT_ONCE + 1] = {0};
	struct ibv_sge sges[AT_ONCE];
	int last = alone ? count : count - 1;

	for (int i = 0; i < count; i++) {
		sges[i] = (struct ibv_sge){.addr = (uintptr_t)s->data + (unsigned)i * slots[i].size,
					   .length = slots[i].size,
					   .lkey = s->data_mr->lkey};
		wrs[i] = (struct ibv_send_wr){
			.opcode = IBV_WR_RDMA_WRITE,
			.next = &wrs[i + 1],
			.sg_list = slots[i].size ? &sges[i] : NULL,
			.num_sge = slots[i].size ? 1 : 0,
			.wr.rdma = {.remote_addr = slots[i].addr, .rkey = slots[i].rkey}};
	}
	wrs[last].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wrs[last].imm_data = imm;
	wrs[last].send_flags = IBV_SEND_SIGNALED;
	wrs[last].next = NULL;
	assert_int_equal(s->qp->context->ops.post_send(s->qp, wrs, &bad), 0);
	next_completion(s, IBV_WC_RDMA_WRITE);
}

static void expect_received(struct pair *p, uint32_t imm)
{
	struct ibv_wc wc = next_completion(&p->receiver, IBV_WC_RECV_RDMA_WITH_IMM);

	p->number++;
	assert_int_equal(wc.wr_id, p->number);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, imm);
}

/* The module's iflush: read one byte of the message, on the queue pair that is connected to
 * itself. */
static void flush(struct pair *p)
{
	struct end *r = &p->receiver;
	struct ibv_sge sge = {
		.addr = (uintptr_t)&r->flush_word, .length = 1, .lkey = r->flush_mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.opcode = IBV_WR_RDMA_READ,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {.remote_addr = (uintptr_t)r->data, .rkey = r->data_mr->rkey}};

	assert_int_equal(r->flush_qp->context->ops.post_send(r->flush_qp, &wr, &bad), 0);
	next_completion(r, IBV_WC_RDMA_READ);
	assert_int_equal((char)r->flush_word, r->data[0]);
}

static void transfer(struct pair *p, int count, uint32_t size, bool alone)
{
	memset(p->sender.data, (int)(p->number * 7 + 1), MESSAGE);
	offer(p, count, size);
	send_offered(p, count, alone, size);
	expect_received(p, size);
	assert_memory_equal(p->sender.data, p->receiver.data, (size_t)count * size);
	flush(p);
}

static void messages_of_each_size_arrive(void **state)
{
	static const uint32_t sizes[] = {0, 1, 4096, 65536, MESSAGE};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int alone = 0; alone < 2; alone++)
			transfer(*state, 1, sizes[i], alone);
}

static void several_messages_are_sent_by_one_call(void **state)
{
	for (int i = 0; i < 2 * REQUESTS; i++)
		transfer(*state, AT_ONCE, 10000, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_found_under_its_version),
		cmocka_unit_test(the_device_is_one_that_the_module_takes),
		cmocka_unit_test(there_are_no_dma_buffers),
		cmocka_unit_test_setup_teardown(messages_of_each_size_arrive, setup, teardown),
		cmocka_unit_test_setup_teardown(several_messages_are_sent_by_one_call, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
