/* SPDX-License-Identifier: BSD-3-Clause */
/* With Acks, an error at the target fails exactly the work request that caused it. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"

#define LEN 65536

static struct bench t;

static void open_bench(void)
{
	struct pair_options o = pair_defaults();

	o.acks = true;
	bench_open(&t, &o, LEN);
}

/* Post requests that succeed, before the one that fails. */
static void post_good(void)
{
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 200, 100, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 100, t.mrb, 100), 0);
}

/* Expect that request 4 fails with this status, and that the request after it is flushed. */
static void expect_culprit(enum ibv_wc_status status)
{
	assert_int_equal(end_write(t.a, 5, t.mra, 0, 100, t.mrb, 0), 0);
	pair_run(&t.p);
	for (uint64_t i = 1; i <= 3; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 4, status);
	expect_wc(&t.a->scq, 5, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&t.a->scq);
	assert_memory_equal(t.ma, t.mb + 100, 100);
}

static void close_with_event(enum ibv_event_type event)
{
	assert_true(qp_is_failed(t.b->qp));
	assert_int_equal(t.b->asyncs, 1);
	assert_int_equal(t.b->async, event);
	bench_close(&t);
}

static int post_remote(enum ibv_wr_opcode op, uint32_t rkey, uint64_t to, uint32_t len)
{
	struct ibv_sge sge = {t.mra->iova + 1024, len, t.mra->ibv.lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 4,
				       .opcode = op,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = rkey;
	}
	return qp_post_send(t.a->qp, &wr, &bad);
}

static void memory_that_the_peer_does_not_grant(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		open_bench();
		post_good();
		assert_int_equal(post_remote(ops[i], t.mrb->ibv.rkey + 256, t.mrb->iova, 8), 0);
		expect_culprit(IBV_WC_REM_ACCESS_ERR);
		close_with_event(IBV_EVENT_QP_ACCESS_ERR);

		open_bench();
		post_good();
		assert_int_equal(post_remote(ops[i], t.mrb->ibv.rkey, t.mrb->iova + LEN, 8), 0);
		expect_culprit(IBV_WC_REM_ACCESS_ERR);
		close_with_event(IBV_EVENT_QP_ACCESS_ERR);
	}
}

static void an_atomic_that_is_not_aligned(void **state)
{
	struct mr *words;

	open_bench();
	words = end_reg(t.b, t.mb, LEN, REMOTE_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	post_good();
	assert_int_equal(
		post_remote(IBV_WR_ATOMIC_FETCH_AND_ADD, words->ibv.rkey, words->iova + 4, 8), 0);
	expect_culprit(IBV_WC_REM_INV_REQ_ERR);
	end_dereg(words);
	close_with_event(IBV_EVENT_QP_REQ_ERR);
}

static void a_send_that_is_longer_than_its_receive(void **state)
{
	open_bench();
	assert_int_equal(end_recv(t.b, 9, t.mrb, 1024, 50), 0);
	post_good();
	assert_int_equal(end_send(t.a, 4, t.mra, 0, 51), 0);
	expect_culprit(IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&t.b->rcq, 9, IBV_WC_LOC_LEN_ERR);
	close_with_event(IBV_EVENT_QP_REQ_ERR);
}

static void a_receive_whose_region_is_gone(void **state)
{
	struct mr *mr;

	open_bench();
	mr = end_reg(t.b, t.mb, LEN, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(end_recv(t.b, 9, mr, 1024, 50), 0);
	bench_dereg(t.b, &mr);
	post_good();
	assert_int_equal(end_send(t.a, 4, t.mra, 0, 50), 0);
	expect_culprit(IBV_WC_REM_OP_ERR);
	expect_wc(&t.b->rcq, 9, IBV_WC_LOC_PROT_ERR);
	close_with_event(IBV_EVENT_QP_FATAL);
}

static void a_write_back_that_fails(void **state)
{
	open_bench();
	t.b->wb_status = -EIO;
	post_good();
	assert_int_equal(end_flush(t.a, 4, t.mrb, 0, 100, true), 0);
	expect_culprit(IBV_WC_REM_OP_ERR);
	bench_close(&t);
}

/* The request's source is not registered: no byte of it is sent, and earlier requests complete when
 * the peer acknowledges them. */
static void own_memory_that_is_not_registered(void **state)
{
	struct mr *mr;

	open_bench();
	mr = end_reg(t.a, t.ma, LEN, 0);
	post_good();
	assert_int_equal(end_write(t.a, 4, mr, 0, 100, t.mrb, 300), 0);
	bench_dereg(t.a, &mr);
	expect_culprit(IBV_WC_LOC_PROT_ERR);
	assert_true(qp_is_failed(t.b->qp));
	bench_close(&t);
}

static void the_peer_fails_by_itself(void **state)
{
	struct mr *mr;

	open_bench();
	mr = end_reg(t.b, t.mb, LEN, 0);
	post_good();
	assert_int_equal(end_send(t.a, 4, t.mra, 0, 50), 0); /* this Send finds no receive */
	pair_run(&t.p);
	assert_int_equal(end_write(t.b, 9, mr, 0, 100, t.mra, 0), 0);
	bench_dereg(t.b, &mr);
	expect_culprit(IBV_WC_RETRY_EXC_ERR);
	expect_wc(&t.b->scq, 9, IBV_WC_LOC_PROT_ERR);
	bench_close(&t);
}

static void fail_by_eof(void)
{
	qp_on_eof(t.a->qp);
}

static void fail_as_lost(void)
{
	qp_fail_lost(t.a->qp);
}

static void fail_by_user(void)
{
	qp_fail(t.a->qp, IBV_WC_WR_FLUSH_ERR);
}

static void expect_end(void (*end)(void), bool acks, enum ibv_wc_status status)
{
	struct pair_options o = pair_defaults();

	o.acks = acks;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 100), 0);
	end();
	expect_wc(&t.a->scq, 1, status);
	expect_wc(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static void the_peer_is_gone(void **state)
{
	expect_end(fail_by_eof, true, IBV_WC_RETRY_EXC_ERR);
	expect_end(fail_as_lost, true, IBV_WC_RETRY_EXC_ERR);
	expect_end(fail_by_user, true, IBV_WC_WR_FLUSH_ERR);
	expect_end(fail_by_eof, false, IBV_WC_WR_FLUSH_ERR);
	expect_end(fail_as_lost, false, IBV_WC_WR_FLUSH_ERR);
}

/* The target acknowledges placed requests before it reports the error. Otherwise the initiator
 * would fail an earlier request than the one that caused the error. */
static void what_was_placed_before_an_error_is_acknowledged_before_it(void **state)
{
	static const size_t chunks[] = {SIZE_MAX, 1000, 7};

	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		open_bench();
		assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
		assert_int_equal(post_remote(IBV_WR_RDMA_WRITE, 1, t.mrb->iova, 8), 0);
		pair_run_chunked(&t.p, chunks[i]);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 4, IBV_WC_REM_ACCESS_ERR);
		bench_close(&t);
	}
}

/* The Send waits for a receive, which is then too short. A Write after the Send is placed
 * meanwhile. */
static void a_send_that_finds_a_short_receive_late_is_to_blame(void **state)
{
	open_bench();
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 50), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 51), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 100, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_no_wc(&t.a->scq);
	/* the Ack is not built before this post */
	assert_int_equal(end_recv(t.b, 8, t.mrb, 1024, 50), 0);
	assert_int_equal(end_recv(t.b, 9, t.mrb, 1024, 50), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&t.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static int post_send_inv(uint64_t id, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .opcode = IBV_WR_SEND_WITH_INV,
				       .invalidate_rkey = rkey,
				       .send_flags = IBV_SEND_SIGNALED};

	return qp_post_send(t.a->qp, &wr, &bad);
}

/* The later Write must not be acknowledged instead of the Send. */
static void a_late_send_that_cannot_invalidate_is_to_blame(void **state)
{
	open_bench();
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 50), 0);
	assert_int_equal(post_send_inv(2, t.mrb->ibv.rkey + 256), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 100, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_no_wc(&t.a->scq);
	assert_int_equal(end_recv(t.b, 8, t.mrb, 1024, 50), 0);
	assert_int_equal(end_recv(t.b, 9, t.mrb, 1024, 50), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_wc(&t.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

/* The refusal also ends the Read, but the Read did not cause the error. */
static void a_read_that_is_not_answered_yet_is_not_to_blame(void **state)
{
	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 200, 100, t.mrb, 0), 0);
	/* this Send finds no receive, either */
	assert_int_equal(end_send(t.a, 3, t.mra, 0, 100), 0);
	assert_int_equal(post_remote(IBV_WR_RDMA_WRITE, 1, t.mrb->iova, 8), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.a->scq, 4, IBV_WC_REM_ACCESS_ERR);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_the_peer_does_not_grant),
		cmocka_unit_test(an_atomic_that_is_not_aligned),
		cmocka_unit_test(a_send_that_is_longer_than_its_receive),
		cmocka_unit_test(a_receive_whose_region_is_gone),
		cmocka_unit_test(a_write_back_that_fails),
		cmocka_unit_test(own_memory_that_is_not_registered),
		cmocka_unit_test(the_peer_fails_by_itself),
		cmocka_unit_test(the_peer_is_gone),
		cmocka_unit_test(a_send_that_finds_a_short_receive_late_is_to_blame),
		cmocka_unit_test(a_late_send_that_cannot_invalidate_is_to_blame),
		cmocka_unit_test(a_read_that_is_not_answered_yet_is_not_to_blame),
		cmocka_unit_test(what_was_placed_before_an_error_is_acknowledged_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
