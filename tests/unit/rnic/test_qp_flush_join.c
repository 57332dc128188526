/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes that wait for a running write-back share the next one, with some exceptions. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/dirty.h"
#include "softrnic/rnic/rnic.h"

#define LEN  (1u << 20)
#define PAGE 4096u

/* Make a write-back run, for Flush 1 of the first bytes. */
static void bench_busy(struct bench *t)
{
	struct pair_options o = pair_defaults();

	o.stream.ird = o.stream.ord = 8;
	bench_open(t, &o, LEN);
	t->b->wb_hold = true;
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 64, true), 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1);
}

static void bench_flush(struct bench *t, uint64_t id, size_t off, size_t len)
{
	assert_int_equal(end_flush(t->a, id, t->mrb, off, len, true), 0);
}

/* End the running write-back; the next one then begins. */
static void bench_end_one(struct bench *t, int status)
{
	pair_run(&t->p);
	end_finish_writeback(t->b, status);
	pair_run(&t->p);
}

static void bench_expect(const struct bench *t, int count, size_t off, size_t len)
{
	assert_int_equal(t->b->wb_count, count);
	assert_ptr_equal(t->b->wb.addr, t->mb + off);
	assert_int_equal(t->b->wb.len, len);
}

static void bench_expect_answers(struct bench *t, uint64_t from, uint64_t to)
{
	for (uint64_t id = from; id <= to; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq);
}

static void those_that_wait_share_the_next_write_back(void **state)
{
	struct bench t;

	bench_busy(&t);
	for (uint64_t id = 2; id <= 8; id++)
		bench_flush(&t, id, (10 - id) * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 1);
	bench_expect(&t, 2, 2 * PAGE, 6 * PAGE + 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 2, 8);
	assert_int_equal(t.b->wb_count, 2);
	assert_int_equal(qp_counters(t.b->qp)->writebacks, 2);
	bench_close(&t);
}

static void one_that_comes_later_waits_for_the_one_after(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	bench_flush(&t, 3, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	assert_int_equal(end_write(t.a, 4, t.mra, 0, 100, t.mrb, PAGE), 0);
	bench_flush(&t, 5, PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 4);
	bench_expect(&t, 3, PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 5, 5);
	bench_close(&t);
}

/* The bytes that are placed during a shared write-back stay recorded for a Flush of all bytes. */
static void what_is_placed_during_a_shared_one_is_still_to_be_flushed(void **state)
{
	struct bench t;

	bench_busy(&t);
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 8, t.mrb, 2 * PAGE), 0);
	bench_flush(&t, 3, PAGE, 100);
	bench_flush(&t, 4, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	assert_int_equal(end_write(t.a, 5, t.mra, 0, 8, t.mrb, 2 * PAGE + 16), 0);
	assert_int_equal(qp_flush_all(t.a->qp, 6, VEXT_FLUSH_PERSISTENT), 0);
	bench_end_one(&t, 0);
	bench_expect(&t, 3, 2 * PAGE + 16, 8);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 6);
	bench_close(&t);
}

/* If the gap between two flushes is wide, writing its dirty bytes costs more than another
 * write-back. */
static void a_wide_gap_keeps_them_apart(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, 0, 64);
	bench_flush(&t, 3, 64 + DIRTY_NEAR + 1, 64);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, 0, 64);
	bench_end_one(&t, 0);
	bench_expect(&t, 3, 64 + DIRTY_NEAR + 1, 64);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 3);
	bench_close(&t);
}

/* Each flush that shares a write-back saves another one, so several flushes may bridge several
 * gaps. */
static void several_gaps_are_bridged_by_as_many(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, 0, 64);
	bench_flush(&t, 3, 2 * DIRTY_NEAR, 64);
	bench_flush(&t, 4, DIRTY_NEAR, 64);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, 0, 2 * DIRTY_NEAR + 64);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 4);
	bench_close(&t);
}

static void a_failure_is_looked_for_one_by_one(void **state)
{
	struct bench t;
	struct ibv_wc wc;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	bench_flush(&t, 3, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, PAGE, PAGE + 100);
	bench_end_one(&t, -EFAULT);
	bench_expect(&t, 3, PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 2);
	bench_expect(&t, 4, 2 * PAGE, 100);
	bench_end_one(&t, -EFAULT);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.vendor_err, vext_vendor_err(VEXT_REASON_GONE, EFAULT));
	bench_close(&t);
}

static void a_cancelled_one_answers_for_none_that_joined(void **state)
{
	struct bench t;
	struct ibv_wc wc;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	bench_flush(&t, 3, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 1);
	bench_end_one(&t, -ECANCELED);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	bench_expect(&t, 3, 2 * PAGE, 100);
	bench_close(&t);
}

static void another_request_ends_the_row(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	assert_int_equal(end_read(t.a, 3, t.mra, 0, 8, t.mrb, 0), 0);
	bench_flush(&t, 4, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect(&t, 3, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 4);
	bench_close(&t);
}

/* The bytes of this Flush are not in memory yet, so it must not share a write-back. */
static void one_after_a_waiting_send_does_not_join(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	assert_int_equal(end_send(t.a, 3, t.mra, 0, 8), 0);
	bench_flush(&t, 4, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, PAGE, 100);
	bench_end_one(&t, 0);
	assert_int_equal(t.b->wb_count, 2);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 2 * PAGE, 8), 0);
	pair_run(&t.p);
	bench_expect(&t, 3, 2 * PAGE, 100);
	bench_end_one(&t, 0);
	bench_expect_answers(&t, 1, 4);
	bench_close(&t);
}

static void one_that_is_out_of_bounds_is_refused_at_its_turn(void **state)
{
	struct bench t;

	bench_busy(&t);
	bench_flush(&t, 2, PAGE, 100);
	bench_flush(&t, 3, LEN - 99, 100);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, PAGE, 100);
	bench_end_one(&t, 0);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 3, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t.b, true, TERM_RDMAP_BASE_BOUNDS);
	bench_close(&t);
}

/* The flushes that joined look their region up again, and fail because it no longer exists. */
static void a_region_that_goes_takes_its_flushes_along(void **state)
{
	struct bench t;
	struct mr *mr;

	bench_busy(&t);
	mr = end_reg(t.b, t.mb, 8 * PAGE, REMOTE_ALL);
	assert_int_equal(end_flush(t.a, 2, mr, PAGE, 100, true), 0);
	assert_int_equal(end_flush(t.a, 3, mr, 2 * PAGE, 100, true), 0);
	bench_end_one(&t, 0);
	bench_expect(&t, 2, PAGE, PAGE + 100);
	qp_detach_mr(t.b->qp, mr, false);
	end_finish_writeback(t.b, -ECANCELED);
	bench_dereg(t.b, &mr);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_REM_OP_ERR);
	expect_terminated(t.b, true, TERM_RDMAP_INVALID_STAG);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_wait_share_the_next_write_back),
		cmocka_unit_test(one_that_comes_later_waits_for_the_one_after),
		cmocka_unit_test(what_is_placed_during_a_shared_one_is_still_to_be_flushed),
		cmocka_unit_test(a_wide_gap_keeps_them_apart),
		cmocka_unit_test(several_gaps_are_bridged_by_as_many),
		cmocka_unit_test(a_failure_is_looked_for_one_by_one),
		cmocka_unit_test(a_cancelled_one_answers_for_none_that_joined),
		cmocka_unit_test(another_request_ends_the_row),
		cmocka_unit_test(one_after_a_waiting_send_does_not_join),
		cmocka_unit_test(one_that_is_out_of_bounds_is_refused_at_its_turn),
		cmocka_unit_test(a_region_that_goes_takes_its_flushes_along),
	};

	return cmocka_run_group_tests_name("flushes that join", tests, NULL, NULL);
}
