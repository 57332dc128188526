/* SPDX-License-Identifier: BSD-3-Clause */
/* test_qp_flush.c -- flushes of everything, verified ones, and the question for the class. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/rnic.h"

#define LEN  (1u << 20)
#define FAR  (256u << 10) /* too far for one interval */
#define REST 100          /* bytes of a Write */

static const struct softrnic_digest answer = {.alg = SOFTRNIC_DIGEST_BLAKE2B,
					      .source = SOFTRNIC_DIGEST_FROM_MEDIUM,
					      .durability = SOFTRNIC_DURABILITY_FILE,
					      .len = 4096,
					      .bytes = {1, 2, [31] = 32}};

static void write_at(struct bench *t, uint64_t id, struct mr *remote, size_t at)
{
	assert_int_equal(end_write(t->a, id, t->mra, 0, REST, remote, at), 0);
}

static void flush_all(struct bench *t, uint64_t id)
{
	assert_int_equal(qp_flush_all(t->a->qp, id, SOFTRNIC_FLUSH_PERSISTENT), 0);
}

static void expect_failed(struct bench *t, uint64_t id, enum softrnic_reason reason, int err)
{
	struct ibv_wc wc = next_wc(&t->a->scq);

	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(wc.vendor_err, softrnic_vendor_err(reason, (uint32_t)err));
}

static void expect_wb(const struct qp_end *e, int i, const void *addr, uint64_t len)
{
	assert_true(i < e->wb_count);
	assert_ptr_equal(e->wb_log[i].addr, addr);
	assert_int_equal(e->wb_log[i].len, len);
}

/* --- of everything ------------------------------------------------------------------------ */

static void everything_is_written_back_one_region_after_the_other(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct mr *other;

	bench_open(&t, &o, LEN);
	other = end_reg(t.b, t.mb + 8192, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	write_at(&t, 1, t.mrb, 0);
	write_at(&t, 2, other, 50);
	write_at(&t, 3, t.mrb, FAR);
	flush_all(&t, 4);
	t.b->wb_hold = true;
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(t.b->wb_count, i + 1);
		expect_no_wc(&t.a->scq);
		end_finish_writeback(t.b, 0);
		pair_run(&t.p);
	}
	expect_wc(&t.a->scq, 4, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 3);
	expect_wb(t.b, 0, t.mb + 8192 + 50, REST);
	expect_wb(t.b, 1, t.mb + FAR, REST);
	expect_wb(t.b, 2, t.mb, REST);
	flush_all(&t, 5); /* nothing is left */
	pair_run(&t.p);
	expect_wc(&t.a->scq, 5, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 3);
	bench_dereg(t.b, &other);
	bench_close(&t);
}

static void its_completion_is_that_of_a_flush(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_wc wc;
	struct bench t;

	bench_open(&t, &o, LEN);
	write_at(&t, 1, t.mrb, 0);
	assert_int_equal(qp_flush_all(t.a->qp, 2, SOFTRNIC_FLUSH_VISIBLE), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.opcode, RNIC_WC_FLUSH);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(t.b->wb_count, 0); /* placed is visible */
	flush_all(&t, 3);                   /* and is not forgotten */
	pair_run(&t.p);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 1);
	bench_close(&t);
}

static void what_comes_later_is_for_the_next_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	t.b->wb_hold = true;
	write_at(&t, 1, t.mrb, 0);
	flush_all(&t, 2);
	write_at(&t, 3, t.mrb, FAR);
	pair_run(&t.p);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 1);
	flush_all(&t, 4);
	pair_run(&t.p);
	expect_wb(t.b, 1, t.mb + FAR, REST);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_flush_of_the_range_takes_it_off_the_list(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	write_at(&t, 1, t.mrb, 0);
	write_at(&t, 2, t.mrb, FAR);
	assert_int_equal(end_flush(t.a, 3, t.mrb, 0, 4096, true), 0);
	assert_int_equal(end_flush(t.a, 4, t.mrb, FAR, 40, true), 0);       /* the beginning */
	assert_int_equal(end_flush(t.a, 5, t.mrb, FAR + 60, 100, true), 0); /* the end */
	assert_int_equal(end_flush(t.a, 6, t.mrb, FAR, 100, false), 0);
	pair_run(&t.p);
	flush_all(&t, 7);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 4);
	expect_wb(t.b, 3, t.mb + FAR + 40, 20);
	for (uint64_t id = 1; id <= 7; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void what_is_placed_while_it_is_flushed_stays_on_the_list(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	t.b->wb_hold = true;
	write_at(&t, 1, t.mrb, 0);
	assert_int_equal(end_flush(t.a, 2, t.mrb, 0, 4096, true), 0);
	write_at(&t, 3, t.mrb, 8);
	flush_all(&t, 4);
	pair_run(&t.p);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	expect_wb(t.b, 1, t.mb + 8, REST);
	bench_close(&t);
}

/* However it was scattered: all of it is in what is written back. */
static void many_places_become_a_few_intervals(void **state)
{
	struct pair_options o = pair_defaults();
	bool covered[LEN / 1024] = {false};
	uint64_t seed = 7;
	struct bench t;
	size_t at[24];

	o.depth = 64;
	bench_open(&t, &o, LEN);
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		at[i] = test_random(&seed) % (LEN / 1024);
		write_at(&t, i, t.mrb, at[i] * 1024);
	}
	flush_all(&t, 100);
	pair_run(&t.p);
	assert_in_range(t.b->wb_count, 1, 4);
	for (int i = 0; i < t.b->wb_count; i++) {
		size_t lo = (size_t)((uint8_t *)t.b->wb_log[i].addr - t.mb);

		for (size_t k = lo / 1024; k * 1024 + REST <= lo + t.b->wb_log[i].len; k++)
			covered[k] = true;
	}
	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		assert_true(covered[at[i]]);
	bench_close(&t);
}

static void a_region_that_went_with_bytes_in_it_makes_it_fail(void **state)
{
	struct pair_options o = pair_defaults();

	for (int when = 0; when < 3; when++) {
		struct bench t;
		struct mr *other;

		bench_open(&t, &o, LEN);
		other = end_reg(t.b, t.mb, 4096, REMOTE_ALL);
		write_at(&t, 1, other, 0);
		write_at(&t, 2, t.mrb, FAR);
		pair_run(&t.p);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
		if (when == 0)
			bench_dereg(t.b, &other);
		if (when == 1) /* its STag is invalidated */
			assert_int_equal(mr_invalidate(t.b->mrs, &t.b->pd, other->ibv.rkey), MR_OK);
		t.b->wb_hold = when == 2;
		flush_all(&t, 3);
		pair_run(&t.p);
		if (when == 2) { /* while the other one is written back */
			assert_ptr_equal(t.b->wb.mr, t.mrb);
			bench_dereg(t.b, &other);
			end_finish_writeback(t.b, 0);
			pair_run(&t.p);
		}
		expect_failed(&t, 3, SOFTRNIC_REASON_GONE, EFAULT);
		bench_dereg(t.b, &other);
		bench_close(&t);
	}
}

static void a_region_may_go_before_its_write_back_is_fetched(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	write_at(&t, 1, t.mrb, 0);
	flush_all(&t, 2);
	end_send_all(t.a);
	while (end_take(t.b, SIZE_MAX) > 0)
		;
	bench_dereg(t.b, &t.mrb); /* would hang if the request held it */
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_failed(&t, 2, SOFTRNIC_REASON_GONE, EFAULT);
	assert_int_equal(t.b->wb_count, 0);
	bench_close(&t);
}

static void a_clean_region_may_go(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct mr *other;

	bench_open(&t, &o, LEN);
	other = end_reg(t.b, t.mb, 4096, REMOTE_ALL);
	write_at(&t, 1, other, 0);
	assert_int_equal(end_flush(t.a, 2, other, 0, REST, true), 0);
	pair_run(&t.p);
	bench_dereg(t.b, &other);
	flush_all(&t, 3);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* A buffer for messages that nobody can reach otherwise and that cannot persist. */
static void messages_count_only_where_they_can_persist(void **state)
{
	struct pair_options o = pair_defaults();

	for (int durable = 0; durable < 2; durable++) {
		struct bench t;
		struct mr *inbox;

		bench_open(&t, &o, LEN);
		inbox = end_reg(t.b, t.mb, 4096, IBV_ACCESS_LOCAL_WRITE);
		inbox->durable = durable;
		assert_int_equal(end_recv(t.b, 9, inbox, 0, 4096), 0);
		assert_int_equal(end_send(t.a, 1, t.mra, 0, REST), 0);
		assert_int_equal(qp_flush_all(t.a->qp, 2, SOFTRNIC_FLUSH_STRICT), 0);
		pair_run(&t.p);
		assert_int_equal(t.b->wb_count, durable);
		if (durable)
			assert_false(t.b->wb.strict); /* the peer did not choose the memory */
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
		bench_dereg(t.b, &inbox);
		bench_close(&t);
	}
}

static void what_this_end_read_itself_is_not_the_peers(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.b, 1, t.mrb, 0, 50000, t.mra, 0), 0);
	pair_run(&t.p);
	flush_all(&t, 2);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 0);
	bench_close(&t);
}

static void its_failure_ends_it_and_whatever_is_behind(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	*(uint64_t *)(void *)(t.mb + 4096) = 0;
	write_at(&t, 1, t.mrb, 0);
	write_at(&t, 2, t.mrb, FAR);
	t.b->wb_status = -EIO;
	flush_all(&t, 3);
	assert_int_equal(qp_atomic_write(t.a->qp, 4, IBV_SEND_SIGNALED, t.mrb->ibv.rkey,
					 t.mrb->iova + 4096, "commit!!"),
			 0);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 1);
	assert_int_equal(*(uint64_t *)(void *)(t.mb + 4096), 0);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_failed(&t, 3, SOFTRNIC_REASON_WRITE_BACK, EIO);
	bench_close(&t);
}

/* The bytes of the first one are lost, whatever its file does with those that come later. */
static void behind_a_flush_that_failed_it_fails_too(void **state)
{
	struct pair_options o = pair_defaults();
	struct rdmap_flush_resp resp;
	struct bench t;

	bench_open(&t, &o, LEN);
	write_at(&t, 1, t.mrb, 0);
	t.b->wb_hold = true;
	assert_int_equal(end_flush(t.a, 2, t.mrb, 0, 4096, true), 0);
	flush_all(&t, 3);
	pair_run(&t.p);
	end_finish_writeback(t.b, -ENOSPC);
	t.b->wb_hold = false;
	end_run_writebacks(t.b);
	end_send_all(t.b);
	/* length, DDP header, 8 bytes, CRC: the second response is as long as the first */
	assert_int_equal(t.b->wire_len, 2 * 32);
	assert_true(rdmap_flush_resp_decode(t.b->wire + 32 + 20, 8, &resp) > 0);
	assert_int_equal(resp.status, RDMAP_FLUSH_FAILED);
	assert_int_equal(resp.detail, ENOSPC);
	assert_int_equal(t.b->wb_count, 1);
	bench_close(&t);
}

static void strictness_is_for_what_the_peer_chose(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	write_at(&t, 1, t.mrb, 0);
	assert_int_equal(qp_flush_all(t.a->qp, 2, SOFTRNIC_FLUSH_STRICT), 0);
	pair_run(&t.p);
	assert_true(t.b->wb.strict);
	bench_close(&t);
}

/* --- verify ------------------------------------------------------------------------------- */

static void a_digest_comes_back_after_the_write_back(void **state)
{
	struct pair_options o = pair_defaults();
	struct softrnic_digest got = {.alg = 77};
	struct ibv_wc wc;
	struct bench t;

	o.stream.crc = true;
	bench_open(&t, &o, LEN);
	t.b->wb_answer = answer;
	t.b->wb_hold = true;
	write_at(&t, 1, t.mrb, 0);
	assert_int_equal(qp_verify(t.a->qp, 2, t.mrb->ibv.rkey, t.mrb->iova, 4096,
				   SOFTRNIC_DIGEST_BLAKE2B, &got),
			 0);
	pair_run(&t.p);
	assert_int_equal(got.alg, 77); /* not before it is known */
	assert_int_equal(t.b->wb.want, QP_DIGEST);
	assert_int_equal(t.b->wb.alg, SOFTRNIC_DIGEST_BLAKE2B);
	expect_wb(t.b, 0, t.mb, 4096);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, RNIC_WC_VERIFY);
	assert_memory_equal(&got, &answer, sizeof(got));
	flush_all(&t, 3); /* it was a flush, too */
	pair_run(&t.p);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 1);
	bench_close(&t);
}

static void a_digest_needs_the_right_to_read(void **state)
{
	struct pair_options o = pair_defaults();
	struct softrnic_digest got = {.alg = 77};
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.b, t.mb, 4096,
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     RNIC_ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(end_flush(t.a, 1, mr, 0, 4096, true), 0);
	assert_int_equal(
		qp_verify(t.a->qp, 2, mr->ibv.rkey, mr->iova, 4096, SOFTRNIC_DIGEST_CRC32C, &got),
		0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t.b, true, TERM_RDMAP_ACCESS);
	assert_int_equal(got.alg, 77);
	bench_dereg(t.b, &mr);
	bench_close(&t);
}

static void a_failed_verify_tells_why_and_leaves_the_result_alone(void **state)
{
	struct pair_options o = pair_defaults();
	struct softrnic_digest got = {.alg = 77};
	struct bench t;

	bench_open(&t, &o, LEN);
	*(uint64_t *)(void *)(t.mb + 8192) = 0;
	t.b->wb_status = -EIO;
	assert_int_equal(qp_verify(t.a->qp, 1, t.mrb->ibv.rkey, t.mrb->iova, 4096,
				   SOFTRNIC_DIGEST_CRC32C, &got),
			 0);
	assert_int_equal(qp_atomic_write(t.a->qp, 2, IBV_SEND_SIGNALED, t.mrb->ibv.rkey,
					 t.mrb->iova + 8192, "commit!!"),
			 0);
	pair_run(&t.p);
	expect_failed(&t, 1, SOFTRNIC_REASON_WRITE_BACK, EIO);
	assert_int_equal(got.alg, 77);
	assert_int_equal(*(uint64_t *)(void *)(t.mb + 8192), 0);
	bench_close(&t);
}

/* --- query -------------------------------------------------------------------------------- */

static void the_class_is_asked_for_and_nothing_is_flushed(void **state)
{
	struct pair_options o = pair_defaults();
	uint32_t durability = 77;
	struct ibv_wc wc;
	struct bench t;

	bench_open(&t, &o, LEN);
	t.b->wb_answer.durability = SOFTRNIC_DURABILITY_DAX;
	write_at(&t, 1, t.mrb, 0);
	assert_int_equal(
		qp_query_class(t.a->qp, 2, t.mrb->ibv.rkey, t.mrb->iova + 8, 100, &durability), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, RNIC_WC_QUERY);
	assert_int_equal(durability, SOFTRNIC_DURABILITY_DAX);
	assert_int_equal(t.b->wb.want, QP_CLASS);
	assert_int_equal(qp_counters(t.b->qp)->writebacks, 0);
	flush_all(&t, 3);
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.b->qp)->writebacks, 1);
	bench_close(&t);
}

/* --- posting ------------------------------------------------------------------------------ */

static void a_list_is_taken_as_a_whole_or_not_at_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct softrnic_wr list[17];
	struct bench t;
	int posted = 99;

	bench_open(&t, &o, LEN);
	for (int i = 0; i < 17; i++)
		list[i] = own_wr(SOFTRNIC_OP_ATOMIC_WRITE, (uint64_t)i, 0, t.mrb->ibv.rkey,
				 t.mrb->iova);
	assert_int_equal(qp_post_list(t.a->qp, list, 17, &posted), ENOMEM);
	assert_int_equal(posted, 0);
	list[15].wr.wr.rdma.remote_addr++;
	assert_int_equal(qp_post_list(t.a->qp, list, 16, &posted), EINVAL);
	assert_int_equal(posted, 0);
	list[15] = (struct softrnic_wr){.op = SOFTRNIC_OP_VERBS,
					.wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 99}};
	assert_int_equal(qp_post_list(t.a->qp, list, 16, &posted), EINVAL);
	assert_true(qp_is_idle(t.a->qp));
	assert_int_equal(qp_post_list(t.a->qp, list, -1, &posted), EINVAL);
	assert_int_equal(qp_post_list(t.a->qp, list, 0, &posted), 0);
	assert_int_equal(qp_post_list(t.a->qp, list, 15, &posted), 0);
	assert_int_equal(posted, 15);
	assert_int_equal(qp_post_list(t.a->qp, list, 2, &posted), ENOMEM);
	assert_int_equal(qp_post_list(t.a->qp, list, 1, &posted), 0);
	bench_close(&t);
}

static void a_list_mixes_verbs_and_others_in_order(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_sge sge = {.length = REST};
	struct softrnic_wr list[3];
	struct bench t;
	int posted;

	bench_open(&t, &o, LEN);
	sge.addr = t.mra->iova;
	sge.lkey = t.mra->ibv.lkey;
	for (int i = 0; i < 3; i++)
		list[i] = own_wr(SOFTRNIC_OP_VERBS, (uint64_t)i, IBV_SEND_SIGNALED, t.mrb->ibv.rkey,
				 t.mrb->iova);
	list[0].wr.opcode = IBV_WR_RDMA_WRITE;
	list[0].wr.sg_list = &sge;
	list[0].wr.num_sge = 1;
	list[0].wr.next = &list[0].wr; /* not looked at */
	list[1].op = SOFTRNIC_OP_FLUSH_ALL;
	list[1].type = SOFTRNIC_FLUSH_PERSISTENT;
	list[2].op = SOFTRNIC_OP_ATOMIC_WRITE;
	list[2].wr.wr.rdma.remote_addr += 4096;
	memcpy(list[2].bytes, "commit!!", 8);
	assert_int_equal(qp_post_list(t.a->qp, list, 3, &posted), 0);
	assert_int_equal(posted, 3);
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.a->qp)->tx_gathers, 1);
	for (uint64_t id = 0; id < 3; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb, t.ma, REST);
	assert_memory_equal(t.mb + 4096, "commit!!", 8);
	bench_close(&t);
}

static void incomplete_questions_are_refused_at_once(void **state)
{
	struct pair_options o = pair_defaults();
	struct softrnic_digest digest;
	uint32_t durability;
	struct bench t;
	struct qp *qp;

	bench_open(&t, &o, LEN);
	qp = t.a->qp;
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 1, NULL), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 0, 1, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 1ull << 32, 1, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 0, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 3, &digest), EINVAL);
	assert_int_equal(qp_query_class(qp, 1, 1, 0, 8, NULL), EINVAL);
	assert_int_equal(qp_query_class(qp, 1, 1, 0, 0, &durability), EINVAL);
	assert_int_equal(qp_flush_all(qp, 1, (enum softrnic_flush_type)0), EINVAL);
	assert_int_equal(qp_flush_all(qp, 1, (enum softrnic_flush_type)4), EINVAL);
	assert_int_equal(qp_caps(qp), SOFTRNIC_CAP_ATOMICS * 2 - 1); /* all of them */
	bench_close(&t);
	o.stream.consent = false;
	o.peer_rfc7306 = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(qp_flush_all(t.a->qp, 1, SOFTRNIC_FLUSH_PERSISTENT), EINVAL);
	assert_int_equal(qp_verify(t.a->qp, 1, 1, 0, 8, 1, &digest), EINVAL);
	assert_int_equal(qp_query_class(t.a->qp, 1, 1, 0, 8, &durability), EINVAL);
	bench_close(&t);
}

/* --- hostile peers ------------------------------------------------------------------------ */

static void a_malformed_request_is_refused(void **state)
{
	static const struct rdmap_flush_req bad[] = {
		{.flags = 0x41, .len = 8},  {.flags = 0, .len = 8},
		{.flags = 0x111, .len = 0}, {.flags = 0x311, .len = 8},
		{.flags = 0x09, .len = 8},  {.flags = 0x08, .len = 0},
		{.flags = 0x21, .stag = 1}, {.flags = 0x21, .len = 1},
		{.flags = 0x21, .to = 1},   {.flags = 0x211, .len = 1ull << 32},
	};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_FLUSH_REQ, DDP_QN_REQUEST, 1, 0, true);
	struct pair_options o = pair_defaults();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rdmap_flush_req req = bad[i];
		uint8_t bytes[RDMAP_FLUSH_REQ_LEN];
		struct bench t;

		bench_open(&t, &o, LEN);
		if (!(req.flags & RDMAP_FLUSH_ALL)) {
			req.stag = t.mrb->ibv.rkey;
			req.to = t.mrb->iova;
		}
		rdmap_flush_req_encode(bytes, sizeof(bytes), &req);
		end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
		expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
		assert_int_equal(t.b->wb_count, 0);
		bench_close(&t);
	}
}

enum asked { ASKED_FLUSH, ASKED_VERIFY, ASKED_QUERY };

struct reply {
	const char *what;
	enum asked asked;
	unsigned error; /* 0: it is taken */
	bool has_digest;
	uint32_t status, detail;
	struct rdmap_flush_digest digest;
};

#define GOOD .source = 2, .durability = 2, .alg = 1, .len = 64

static const struct reply replies[] = {
	{"digest", ASKED_VERIFY, 0, true, 0, 0, {GOOD}},
	{"digest to a plain flush", ASKED_FLUSH, TERM_DDP_TOO_LONG, true, 0, 0, {GOOD}},
	{"digest to a query", ASKED_QUERY, TERM_DDP_TOO_LONG, true, 0, 2, {GOOD}},
	{"no digest", ASKED_VERIFY, TERM_RDMAP_STREAM_CATASTROPHIC, false, 0, 0, {0}},
	{"digest of a failure", ASKED_VERIFY, TERM_RDMAP_STREAM_CATASTROPHIC, true, 1, 5, {GOOD}},
	{"other algorithm",
	 ASKED_VERIFY,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 true,
	 0,
	 0,
	 {.source = 2, .durability = 2, .alg = 2, .len = 64}},
	{"of more than asked",
	 ASKED_VERIFY,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 true,
	 0,
	 0,
	 {.source = 2, .durability = 2, .alg = 1, .len = 65}},
	{"unknown source",
	 ASKED_VERIFY,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 true,
	 0,
	 0,
	 {.source = 4, .durability = 2, .alg = 1, .len = 64}},
	{"unknown class",
	 ASKED_VERIFY,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 true,
	 0,
	 0,
	 {.source = 2, .durability = 0, .alg = 1, .len = 64}},
	{"class", ASKED_QUERY, 0, false, 0, 3, {0}},
	{"class 0", ASKED_QUERY, TERM_RDMAP_STREAM_CATASTROPHIC, false, 0, 0, {0}},
	{"class 4", ASKED_QUERY, TERM_RDMAP_STREAM_CATASTROPHIC, false, 0, 4, {0}},
};

static void ask(struct bench *t, enum asked what, struct softrnic_digest *digest,
		uint32_t *durability)
{
	uint32_t rkey = t->mrb->ibv.rkey;
	uint64_t at = t->mrb->iova;
	int err = -1;

	switch (what) {
	case ASKED_FLUSH:
		err = end_flush(t->a, 1, t->mrb, 0, 64, true);
		break;
	case ASKED_VERIFY:
		err = qp_verify(t->a->qp, 1, rkey, at, 64, SOFTRNIC_DIGEST_CRC32C, digest);
		break;
	case ASKED_QUERY:
		err = qp_query_class(t->a->qp, 1, rkey, at, 64, durability);
		break;
	}
	assert_int_equal(err, 0);
	end_send_all(t->a);
}

static void try_reply(const struct reply *r)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_FLUSH_RESP, DDP_QN_RESPONSE, 1, 0, true);
	struct pair_options o = pair_defaults();
	struct rdmap_flush_resp resp = {r->status, r->detail};
	struct softrnic_digest digest = {.alg = 77};
	uint8_t bytes[RDMAP_FLUSH_RESP_LEN + RDMAP_FLUSH_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));
	uint32_t durability = 77;
	struct bench t;

	bench_open(&t, &o, LEN);
	ask(&t, r->asked, &digest, &durability);
	rdmap_flush_resp_put(&c, &resp);
	if (r->has_digest)
		rdmap_flush_digest_put(&c, &r->digest);
	end_inject_fpdu(t.a, &hdr, bytes, wcursor_len(&c));
	if (qp_is_failed(t.a->qp) != (r->error != 0))
		fail_msg("%s: %s", r->what, r->error ? "taken" : "refused");
	if (r->error)
		expect_terminated(t.a, true, r->error);
	expect_wc(&t.a->scq, 1, r->error ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	assert_int_equal(digest.alg, !r->error && r->asked == ASKED_VERIFY ? 1 : 77);
	assert_int_equal(durability, !r->error && r->asked == ASKED_QUERY ? r->detail : 77);
	bench_close(&t);
}

static void a_reply_that_is_none_to_the_question_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(replies); i++)
		try_reply(&replies[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_written_back_one_region_after_the_other),
		cmocka_unit_test(its_completion_is_that_of_a_flush),
		cmocka_unit_test(what_comes_later_is_for_the_next_one),
		cmocka_unit_test(a_flush_of_the_range_takes_it_off_the_list),
		cmocka_unit_test(what_is_placed_while_it_is_flushed_stays_on_the_list),
		cmocka_unit_test(many_places_become_a_few_intervals),
		cmocka_unit_test(a_region_that_went_with_bytes_in_it_makes_it_fail),
		cmocka_unit_test(a_region_may_go_before_its_write_back_is_fetched),
		cmocka_unit_test(a_clean_region_may_go),
		cmocka_unit_test(messages_count_only_where_they_can_persist),
		cmocka_unit_test(what_this_end_read_itself_is_not_the_peers),
		cmocka_unit_test(its_failure_ends_it_and_whatever_is_behind),
		cmocka_unit_test(behind_a_flush_that_failed_it_fails_too),
		cmocka_unit_test(strictness_is_for_what_the_peer_chose),
		cmocka_unit_test(a_digest_comes_back_after_the_write_back),
		cmocka_unit_test(a_digest_needs_the_right_to_read),
		cmocka_unit_test(a_failed_verify_tells_why_and_leaves_the_result_alone),
		cmocka_unit_test(the_class_is_asked_for_and_nothing_is_flushed),
		cmocka_unit_test(a_list_is_taken_as_a_whole_or_not_at_all),
		cmocka_unit_test(a_list_mixes_verbs_and_others_in_order),
		cmocka_unit_test(incomplete_questions_are_refused_at_once),
		cmocka_unit_test(a_malformed_request_is_refused),
		cmocka_unit_test(a_reply_that_is_none_to_the_question_is_refused),
	};

	return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
