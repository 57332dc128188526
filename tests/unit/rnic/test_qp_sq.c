/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue: which posts are refused, in which order requests complete, fences, the ORD limit,
 * and reclaimed slots. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/rnic.h"

#define LEN 65536

static int post(struct qp_end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = qp_post_send(e->qp, wr, &bad);

	assert_true(err ? bad == wr : bad == NULL);
	return err;
}

static void impossible_requests_are_refused_at_once(void **state)
{
	struct bench *t = *state;
	struct ibv_sge sge[5] = {{0}};
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 1};

	/* A bind without a window, and opcodes for other types of queue pairs. */
	for (int op = IBV_WR_BIND_MW; op <= IBV_WR_DRIVER1; op++) {
		wr.opcode = (enum ibv_wr_opcode)op;
		if (op != IBV_WR_SEND_WITH_INV)
			assert_int_equal(post(t->a, &wr), EINVAL);
	}
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.num_sge = 5;
	assert_int_equal(post(t->a, &wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post(t->a, &wr), EINVAL);
	wr.num_sge = 2; /* two segments of 2^32 bytes together */
	sge[0].length = sge[1].length = 1u << 31;
	assert_int_equal(post(t->a, &wr), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	sge[0].length = 65;
	assert_int_equal(post(t->a, &wr), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	sge[0].length = 8;
	assert_int_equal(post(t->a, &wr), EINVAL);
	wr.send_flags = 1u << 20;
	assert_int_equal(post(t->a, &wr), EINVAL);
	assert_int_equal(qp_flush(t->a->qp, 1, IBV_SEND_INLINE, 0, 0, 0, VEXT_FLUSH_STRICT),
			 EINVAL);
	assert_true(qp_is_idle(t->a->qp));
}

static void posting_follows_the_state(void **state)
{
	struct bench *t = *state;

	qp_drain(t->a->qp);
	assert_int_equal(qp_state(t->a->qp), IBV_QPS_SQD);
	assert_int_equal(end_write(t->a, 1, t->mra, 0, 8, t->mrb, 0), EINVAL);
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 8, true), EINVAL);
	qp_fail(t->a->qp, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_flush(t->a, 3, t->mrb, 0, 8, true), 0);
	assert_int_equal(end_recv(t->a, 4, t->mra, 0, 8), 0);
	expect_wc(&t->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t->a->rcq, 4, IBV_WC_WR_FLUSH_ERR);
}

static void before_the_start_only_receives_are_accepted(void **state)
{
	struct bench *t = *state;
	struct qp_config cfg;
	struct qp *qp;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr rwr = {0}, *rbad;

	cfg = (struct qp_config){.mrs = t->a->mrs,
				 .pd = &t->a->pd,
				 .send_cq = &t->a->scq,
				 .recv_cq = &t->a->rcq,
				 .qp_num = 9,
				 .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	assert_int_equal(qp_new(&cfg, &qp), 0);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(qp_post_send(qp, &wr, &bad), EINVAL);
	assert_int_equal(qp_post_recv(qp, &rwr, &rbad), 0);
	assert_int_equal(qp_post_recv(qp, &rwr, &rbad), ENOMEM);
	assert_false(qp_tx_needs_buf(qp) || qp_rx_needs_buf(qp));
	qp_delete(qp);
}

static void a_chain_is_taken_up_to_the_first_bad_one(void **state)
{
	struct bench *t = *state;
	struct ibv_send_wr wr[3] = {
		{.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
		{.wr_id = 2, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP},
		{.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE},
	};
	struct ibv_send_wr *bad = NULL;

	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	assert_int_equal(qp_post_send(t->a->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq);
}

/* As on a card, a slot is free only after its completion was polled. Programs rely on this. */
static void a_full_queue_refuses_until_something_is_collected(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.depth = 2;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_flush(t.a, 2, t.mrb, 0, 8, true), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 0), ENOMEM);
	assert_int_equal(end_flush(t.a, 3, t.mrb, 0, 8, true), ENOMEM);
	pair_run(&t.p);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 0), ENOMEM);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 4, t.mra, 0, 8, t.mrb, 0), ENOMEM);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(end_write(t.a, 4, t.mra, 0, 8, t.mrb, 0), 0);
	bench_close(&t);
}

static void unsignalled_slots_are_reclaimed_without_a_signalled_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.depth = 4;
	bench_open(&t, &o, LEN);
	for (unsigned i = 0; i < 10000; i++) {
		unsigned flags = NOSIG | (i % 3 ? 0 : IBV_SEND_FENCE);
		enum ibv_wr_opcode op = i % 5 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;

		assert_int_equal(end_post(t.a, op, i, t.mra, 0, 8, t.mrb, 8, flags), 0);
		if (i % 4 == 3)
			pair_run(&t.p);
	}
	pair_run(&t.p);
	assert_true(qp_is_idle(t.a->qp));
	expect_no_wc(&t.a->scq);
	bench_close(&t);
}

static void every_request_completes_if_the_qp_was_made_so(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.sq_sig_all = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_post(t.a, IBV_WR_RDMA_WRITE, 1, t.mra, 0, 8, t.mrb, 8, NOSIG), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void completions_come_in_the_order_of_posting(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 8, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 3, t->mra, 0, 8, t->mrb, 0), 0);
	end_send_all(t->a);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq); /* the second Write has been sent, but the Read has no answer */
	pair_run(&t->p);
	expect_wc(&t->a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 3, IBV_WC_SUCCESS);
}

static void a_write_ends_when_its_last_byte_is_taken(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 1000, t->mrb, 0), 0);
	/* An FPDU of 2 + 14 + 1000 + 4 = 1020 bytes is cut before its last byte. */
	assert_int_equal(end_gather(t->a, 1019, NULL), 1019);
	expect_no_wc(&t->a->scq);
	assert_int_equal(end_gather(t->a, 1019, NULL), 1);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
}

static void at_most_ord_requests_are_outstanding(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.ord = 2;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(i % 2 ? end_read(t.a, i, t.mra, 0, 8, t.mrb, 0)
				       : end_flush(t.a, i, t.mrb, 0, 8, false),
				 0);
	assert_int_equal(end_write(t.a, 6, t.mra, 0, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	assert_int_equal(qp_counters(t.a->qp)->tx_fpdus,
			 /* completions come in order, so the Write waits for the request before
			  * it */
			 PAIR_HELLO + 2);
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.b->qp)->reads_in, 3);
	assert_int_equal(qp_counters(t.b->qp)->flushes_in, 2);
	for (uint64_t i = 1; i <= 6; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void without_ord_a_read_is_refused(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.ord = 0;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 8, t.mrb, 0), EINVAL);
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 8, false), EINVAL);
	assert_int_equal(qp_caps(t.a->qp), VEXT_CAP_SOFTRNIC | VEXT_CAP_IMM);
	bench_close(&t);
}

static void without_consent_a_flush_is_refused(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.consent = false;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 8, false), EINVAL);
	bench_close(&t);
}

static void a_fence_waits_for_all_earlier_requests(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_read(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 8, false), 0);
	assert_int_equal(
		end_post(t->a, IBV_WR_RDMA_WRITE, 3, t->mra, 8, 8, t->mrb, 0, IBV_SEND_FENCE), 0);
	end_send_all(t->a);
	assert_int_equal(qp_counters(t->a->qp)->tx_fpdus, PAIR_HELLO + 2);
	while (end_take(t->b, SIZE_MAX))
		;
	assert_int_equal(end_gather(t->b, 20 + 8 + 4, NULL), 20 + 8 + 4);
	while (end_take(t->a, SIZE_MAX))
		;
	end_send_all(t->a);
	assert_int_equal(qp_counters(t->a->qp)->tx_fpdus,
			 PAIR_HELLO + 2); /* the flush has no answer yet */
	pair_run(&t->p);
	assert_int_equal(qp_counters(t->a->qp)->tx_fpdus, PAIR_HELLO + 3);
	assert_memory_equal(t->mb, t->ma + 8, 8);
}

static void inline_data_is_copied_when_posted(void **state)
{
	struct bench *t = *state;
	uint8_t text[64];
	struct ibv_sge sge[2] = {{.addr = (uintptr_t)text, .length = 40},
				 {.addr = (uintptr_t)text + 40, .length = 24}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = sge,
				 .num_sge = 2,
				 .send_flags = IBV_SEND_INLINE};
	uint8_t expected[64];

	memset(text, 0x5a, sizeof(text));
	memcpy(expected, text, sizeof(text));
	wr.wr.rdma.rkey = t->mrb->ibv.rkey;
	wr.wr.rdma.remote_addr = t->mrb->iova + 100;
	assert_int_equal(post(t->a, &wr), 0);
	memset(text, 0, sizeof(text));
	pair_run(&t->p);
	assert_memory_equal(t->mb + 100, expected, sizeof(expected));
}

static void several_segments_become_one_message(void **state)
{
	struct bench *t = *state;
	struct ibv_sge sge[4];
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 4};
	static const uint32_t lens[4] = {3, 0, 2000, 9000};
	size_t at = 0;

	for (int i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){.addr = t->mra->iova + 10000u * (unsigned)i,
					  .length = lens[i],
					  .lkey = t->mra->ibv.lkey};
	wr.wr.rdma.rkey = t->mrb->ibv.rkey;
	wr.wr.rdma.remote_addr = t->mrb->iova + 5;
	assert_int_equal(post(t->a, &wr), 0);
	pair_run_chunked(&t->p, 777);
	for (unsigned i = 0; i < 4; at += lens[i], i++)
		assert_memory_equal(t->mb + 5 + at, t->ma + 10000u * i, lens[i]);
}

static void a_bad_lkey_fails_the_qp_but_not_what_was_before(void **state)
{
	struct bench *t = *state;
	struct mr nobody = {.ibv = {.lkey = 12345}};

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 2, &nobody, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 3, t->mra, 0, 8, t->mrb, 0), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(&t->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_memory_equal(t->mb, t->ma, 8);
	expect_terminated(t->a, true, TERM_RDMAP_LOCAL_CATASTROPHIC);
	expect_terminated(t->b, false, TERM_RDMAP_LOCAL_CATASTROPHIC);
}

static void a_read_needs_a_writable_sink(void **state)
{
	struct bench *t = *state;
	struct mr *ro;

	ro = end_reg(t->a, t->ma, 4096, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(end_read(t->a, 1, ro, 0, 8, t->mrb, 0), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_counters(t->b->qp)->reads_in, 0);
	bench_dereg(t->a, &ro);
}

static void a_drained_queue_finishes_what_was_posted(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 50000, t->mrb, 0), 0);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 50000, true), 0);
	qp_drain(t->a->qp);
	assert_false(qp_is_idle(t->a->qp));
	pair_run(&t->p);
	assert_true(qp_is_idle(t->a->qp));
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_SUCCESS);
}

static void a_full_completion_queue_fails_the_qp(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.cq_size = 2;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(end_write(t.a, i, t.mra, 0, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	assert_true(qp_is_failed(t.a->qp));
	assert_int_equal(t.a->async, IBV_EVENT_QP_FATAL);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(impossible_requests_are_refused_at_once, LEN),
		BENCH_TEST(posting_follows_the_state, LEN),
		BENCH_TEST(before_the_start_only_receives_are_accepted, LEN),
		BENCH_TEST(a_chain_is_taken_up_to_the_first_bad_one, LEN),
		cmocka_unit_test(a_full_queue_refuses_until_something_is_collected),
		cmocka_unit_test(unsignalled_slots_are_reclaimed_without_a_signalled_one),
		cmocka_unit_test(every_request_completes_if_the_qp_was_made_so),
		BENCH_TEST(completions_come_in_the_order_of_posting, LEN),
		BENCH_TEST(a_write_ends_when_its_last_byte_is_taken, LEN),
		cmocka_unit_test(at_most_ord_requests_are_outstanding),
		cmocka_unit_test(without_ord_a_read_is_refused),
		cmocka_unit_test(without_consent_a_flush_is_refused),
		BENCH_TEST(a_fence_waits_for_all_earlier_requests, LEN),
		BENCH_TEST(inline_data_is_copied_when_posted, LEN),
		BENCH_TEST(several_segments_become_one_message, LEN),
		BENCH_TEST(a_bad_lkey_fails_the_qp_but_not_what_was_before, LEN),
		BENCH_TEST(a_read_needs_a_writable_sink, LEN),
		BENCH_TEST(a_drained_queue_finishes_what_was_posted, LEN),
		cmocka_unit_test(a_full_completion_queue_fails_the_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
