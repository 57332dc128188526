/* SPDX-License-Identifier: BSD-3-Clause */
/* test_qp_flush_all.c -- a flush of all bytes that the stream placed, in all regions. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/rnic.h"

#define LEN (1u << 20)
#define FAR (256u << 10) /* distance of bytes that need two intervals */

static void everything_is_written_back_one_region_after_the_other(void **state)
{
	struct bench *t = *state;
	struct mr *other;

	other = end_reg(t->b, t->mb + 8192, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	bench_write(t, 1, t->mrb, 0);
	bench_write(t, 2, other, 50);
	bench_write(t, 3, t->mrb, FAR);
	bench_flush_all(t, 4);
	t->b->wb_hold = true;
	pair_run(&t->p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(t->b->wb_count, i + 1);
		expect_no_wc(&t->a->scq);
		end_finish_writeback(t->b, 0);
		pair_run(&t->p);
	}
	expect_wc(&t->a->scq, 4, IBV_WC_SUCCESS);
	assert_int_equal(t->b->wb_count, 3);
	bench_expect_wb(t->b, 0, t->mb + 8192 + 50, BENCH_REST);
	bench_expect_wb(t->b, 1, t->mb + FAR, BENCH_REST);
	bench_expect_wb(t->b, 2, t->mb, BENCH_REST);
	bench_flush_all(t, 5); /* no byte is left to write back */
	pair_run(&t->p);
	expect_wc(&t->a->scq, 5, IBV_WC_SUCCESS);
	assert_int_equal(t->b->wb_count, 3);
	bench_dereg(t->b, &other);
}

static void its_completion_is_that_of_a_flush(void **state)
{
	struct bench *t = *state;
	struct ibv_wc wc;

	bench_write(t, 1, t->mrb, 0);
	assert_int_equal(qp_flush_all(t->a->qp, 2, VEXT_FLUSH_VISIBLE), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t->a->scq);
	assert_int_equal(wc.opcode, VEXT_WC_FLUSH);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(t->b->wb_count, 0); /* visibility needs no write-back */
	/* the bytes are still recorded as not written back */
	bench_flush_all(t, 3);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(t->b->wb_count, 1);
}

static void what_comes_later_is_for_the_next_one(void **state)
{
	struct bench *t = *state;

	t->b->wb_hold = true;
	bench_write(t, 1, t->mrb, 0);
	bench_flush_all(t, 2);
	bench_write(t, 3, t->mrb, FAR);
	pair_run(&t->p);
	end_finish_writeback(t->b, 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1);
	bench_flush_all(t, 4);
	pair_run(&t->p);
	bench_expect_wb(t->b, 1, t->mb + FAR, BENCH_REST);
	end_finish_writeback(t->b, 0);
	pair_run(&t->p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
}

static void a_flush_of_the_range_takes_it_off_the_list(void **state)
{
	struct bench *t = *state;

	bench_write(t, 1, t->mrb, 0);
	bench_write(t, 2, t->mrb, FAR);
	assert_int_equal(end_flush(t->a, 3, t->mrb, 0, 4096, true), 0);
	/* a flush of the first bytes */
	assert_int_equal(end_flush(t->a, 4, t->mrb, FAR, 40, true), 0);
	/* a flush of the last bytes */
	assert_int_equal(end_flush(t->a, 5, t->mrb, FAR + 60, 100, true), 0);
	assert_int_equal(end_flush(t->a, 6, t->mrb, FAR, 100, false), 0);
	pair_run(&t->p);
	bench_flush_all(t, 7);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 3); /* the second write-back was for both Flushes */
	bench_expect_wb(t->b, 2, t->mb + FAR + 40, 20);
	for (uint64_t id = 1; id <= 7; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
}

static void what_is_placed_while_it_is_flushed_stays_on_the_list(void **state)
{
	struct bench *t = *state;

	t->b->wb_hold = true;
	bench_write(t, 1, t->mrb, 0);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 4096, true), 0);
	bench_write(t, 3, t->mrb, 8);
	bench_flush_all(t, 4);
	pair_run(&t->p);
	end_finish_writeback(t->b, 0);
	pair_run(&t->p);
	bench_expect_wb(t->b, 1, t->mb + 8, BENCH_REST);
}

/* However scattered the bytes are, the write-backs must include all of them. */
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
		bench_write(&t, i, t.mrb, at[i] * 1024);
	}
	bench_flush_all(&t, 100);
	pair_run(&t.p);
	assert_in_range(t.b->wb_count, 1, 4);
	for (int i = 0; i < t.b->wb_count; i++) {
		size_t lo = (size_t)((uint8_t *)t.b->wb_log[i].addr - t.mb);

		for (size_t k = lo / 1024; k * 1024 + BENCH_REST <= lo + t.b->wb_log[i].len; k++)
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
		other = end_reg(t.b, t.mb, 4096, REMOTE_ALL | VEXT_ACCESS_REMOTE_INVALIDATE);
		bench_write(&t, 1, other, 0);
		bench_write(&t, 2, t.mrb, FAR);
		pair_run(&t.p);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
		if (when == 0)
			bench_dereg(t.b, &other);
		if (when == 1) /* invalidate the region's STag */
			assert_int_equal(mr_invalidate(t.b->mrs, &t.b->pd, other->ibv.rkey), MR_OK);
		t.b->wb_hold = when == 2;
		bench_flush_all(&t, 3);
		pair_run(&t.p);
		if (when == 2) { /* deregister while the other region is written back */
			assert_ptr_equal(t.b->wb.mr, t.mrb);
			bench_dereg(t.b, &other);
			end_finish_writeback(t.b, 0);
			pair_run(&t.p);
		}
		bench_expect_failed(&t, 3, VEXT_REASON_GONE, EFAULT);
		bench_dereg(t.b, &other);
		bench_close(&t);
	}
}

static void a_region_may_go_before_its_write_back_is_fetched(void **state)
{
	struct bench *t = *state;

	bench_write(t, 1, t->mrb, 0);
	bench_flush_all(t, 2);
	end_send_all(t->a);
	while (end_take(t->b, SIZE_MAX) > 0)
		;
	bench_dereg(t->b, &t->mrb); /* this hangs if a request still holds the region */
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	bench_expect_failed(t, 2, VEXT_REASON_GONE, EFAULT);
	assert_int_equal(t->b->wb_count, 0);
}

static void a_clean_region_may_go(void **state)
{
	struct bench *t = *state;
	struct mr *other;

	other = end_reg(t->b, t->mb, 4096, REMOTE_ALL);
	bench_write(t, 1, other, 0);
	assert_int_equal(end_flush(t->a, 2, other, 0, BENCH_REST, true), 0);
	pair_run(&t->p);
	bench_dereg(t->b, &other);
	bench_flush_all(t, 3);
	pair_run(&t->p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
}

/* The peer's message is placed in a receive buffer that peers cannot write to otherwise. The bytes
 * are flushed only if the memory can persist. */
static void messages_count_only_where_they_can_persist(void **state)
{
	struct pair_options o = pair_defaults();

	for (int durable = 0; durable < 2; durable++) {
		struct bench t;
		struct mr *inbox;

		bench_open(&t, &o, LEN);
		inbox = end_reg(t.b, t.mb, 4096, IBV_ACCESS_LOCAL_WRITE);
		inbox->backing.durable = durable;
		assert_int_equal(end_recv(t.b, 9, inbox, 0, 4096), 0);
		assert_int_equal(end_send(t.a, 1, t.mra, 0, BENCH_REST), 0);
		assert_int_equal(qp_flush_all(t.a->qp, 2, VEXT_FLUSH_STRICT), 0);
		pair_run(&t.p);
		assert_int_equal(t.b->wb_count, durable);
		if (durable)
			/* not strict, because the peer did not choose the memory */
			assert_false(t.b->wb.strict);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
		bench_dereg(t.b, &inbox);
		bench_close(&t);
	}
}

static void what_this_end_read_itself_is_not_the_peers(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_read(t->b, 1, t->mrb, 0, 50000, t->mra, 0), 0);
	pair_run(&t->p);
	bench_flush_all(t, 2);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 0);
}

static void its_failure_ends_it_and_all_later_requests(void **state)
{
	struct bench *t = *state;

	*(uint64_t *)(void *)(t->mb + 4096) = 0;
	bench_write(t, 1, t->mrb, 0);
	bench_write(t, 2, t->mrb, FAR);
	t->b->wb_status = -EIO;
	bench_flush_all(t, 3);
	assert_int_equal(qp_atomic_write(t->a->qp, 4, IBV_SEND_SIGNALED, t->mrb->ibv.rkey,
					 t->mrb->iova + 4096, "commit!!"),
			 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1);
	assert_int_equal(*(uint64_t *)(void *)(t->mb + 4096), 0);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_SUCCESS);
	bench_expect_failed(t, 3, VEXT_REASON_WRITE_BACK, EIO);
}

/* The bytes of the first flush are lost, whatever happens to later bytes of the file. */
static void after_a_failed_flush_it_fails_too(void **state)
{
	struct bench *t = *state;
	struct ext_answer answer;

	bench_write(t, 1, t->mrb, 0);
	t->b->wb_hold = true;
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 4096, true), 0);
	bench_flush_all(t, 3);
	pair_run(&t->p);
	end_finish_writeback(t->b, -ENOSPC);
	t->b->wb_hold = false;
	end_run_writebacks(t->b);
	end_send_all(t->b);
	/* Length, DDP header, 8 bytes and CRC: the second response is as long as the first. */
	assert_int_equal(t->b->wire_len, 2 * 32);
	assert_true(ext_answer_decode(t->b->wire + 32 + 20, 8, &answer) > 0);
	assert_int_equal(answer.word.kind, EXT_FLUSH_ALL);
	assert_int_equal(answer.word.arg, EXT_FAILED);
	assert_int_equal(answer.detail, ENOSPC);
	assert_int_equal(t->b->wb_count, 1);
}

/*
 * The write-back for another stream's flush failed. The file works again, but this stream has not
 * reported the failure yet.
 */
static void a_flush_of_a_range_reports_bytes_lost_with_another_registration(void **state)
{
	struct bench *t = *state;
	struct mr *before, *anew;

	before = end_reg(t->b, t->mb, 4096, REMOTE_ALL);
	bench_write(t, 1, before, 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	bench_dereg(t->b, &before);
	anew = end_reg(t->b, t->mb, 4096, REMOTE_ALL);
	assert_int_equal(end_flush(t->a, 2, anew, 0, 4096, true), 0);
	pair_run(&t->p);
	bench_expect_failed(t, 2, VEXT_REASON_WRITE_BACK, EIO);
	assert_int_equal(t->b->wb_count, 0);
	bench_dereg(t->b, &anew);
}

static void strictness_is_for_what_the_peer_chose(void **state)
{
	struct bench *t = *state;

	bench_write(t, 1, t->mrb, 0);
	assert_int_equal(qp_flush_all(t->a->qp, 2, VEXT_FLUSH_STRICT), 0);
	pair_run(&t->p);
	assert_true(t->b->wb.strict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(everything_is_written_back_one_region_after_the_other, LEN),
		BENCH_TEST(its_completion_is_that_of_a_flush, LEN),
		BENCH_TEST(what_comes_later_is_for_the_next_one, LEN),
		BENCH_TEST(a_flush_of_the_range_takes_it_off_the_list, LEN),
		BENCH_TEST(what_is_placed_while_it_is_flushed_stays_on_the_list, LEN),
		cmocka_unit_test(many_places_become_a_few_intervals),
		cmocka_unit_test(a_region_that_went_with_bytes_in_it_makes_it_fail),
		BENCH_TEST(a_region_may_go_before_its_write_back_is_fetched, LEN),
		BENCH_TEST(a_clean_region_may_go, LEN),
		cmocka_unit_test(messages_count_only_where_they_can_persist),
		BENCH_TEST(what_this_end_read_itself_is_not_the_peers, LEN),
		BENCH_TEST(its_failure_ends_it_and_all_later_requests, LEN),
		BENCH_TEST(after_a_failed_flush_it_fails_too, LEN),
		BENCH_TEST(a_flush_of_a_range_reports_bytes_lost_with_another_registration, LEN),
		BENCH_TEST(strictness_is_for_what_the_peer_chose, LEN),
	};

	return cmocka_run_group_tests_name("flush all", tests, NULL, NULL);
}
