/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the peer: the order, bounds and rights of Reads, and every outcome of a Flush. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/rnic.h"

#define LEN (1u << 20)

/* --- Reads -------------------------------------------------------------------------------- */

static void read_fails(struct mr *(*source)(struct bench *t), size_t off, unsigned error)
{
	struct pair_options o = pair_defaults();
	const struct terminate *term;
	struct bench t;
	struct mr *mr, copy;

	bench_open(&t, &o, LEN);
	mr = source(&t);
	copy = *mr;
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 64, &copy, off), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t.b, true, error);
	expect_terminated(t.a, false, error);
	assert_int_equal(t.b->async, IBV_EVENT_QP_ACCESS_ERR);
	term = qp_terminate(t.a->qp, NULL);
	assert_true(term->has_ddp && term->has_read_req);
	assert_int_equal(term->read_req.size, 64);
	assert_int_equal(term->read_req.src_to, copy.iova + off);
	if (mr != t.mrb)
		bench_dereg(t.b, &mr);
	bench_close(&t);
}

static struct mr *whole(struct bench *t)
{
	return t->mrb;
}

static struct mr *write_only(struct bench *t)
{
	return end_reg(t->b, t->mb, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static struct ibv_pd other_pd;

static struct mr *foreign(struct bench *t)
{
	struct mr *mr;

	assert_int_equal(mr_new(t->b->mrs, &other_pd, t->mb, LEN, 0, REMOTE_ALL, NULL, &mr), 0);
	return mr;
}

static void a_read_is_checked(void **state)
{
	read_fails(whole, LEN - 63, TERM_RDMAP_BASE_BOUNDS);
	read_fails(whole, (size_t)-1, TERM_RDMAP_BASE_BOUNDS);
	read_fails(write_only, 0, TERM_RDMAP_ACCESS);
	read_fails(foreign, 0, TERM_RDMAP_STAG_NOT_ASSOCIATED);
}

static void a_bad_read_does_not_spoil_the_one_before_it(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_read(t->a, 1, t->mra, 0, 60000, t->mrb, 0), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 0, 8, t->mrb, LEN), 0);
	assert_int_equal(end_read(t->a, 3, t->mra, 0, 8, t->mrb, 0), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_wc(&t->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_memory_equal(t->ma, t->mb, 60000);
}

static void a_read_sees_what_was_written_before_it(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 50000, t->mrb, 0), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 100000, 50000, t->mrb, 0), 0);
	pair_run_chunked(&t->p, 3333);
	assert_memory_equal(t->ma + 100000, t->ma, 50000);
}

static void more_requests_than_ird_are_refused(void **state)
{
	struct bench *t = *state;

	/* the write-back for the first Read does not end, and the others wait for it */
	t->b->wb_hold = true;
	for (uint32_t msn = 1; msn <= 5; msn++) {
		struct ext_range req = {.word = {EXT_FLUSH, EXT_FLUSH_PERSIST},
					.stag = t->mrb->ibv.rkey,
					.to = t->mrb->iova,
					.len = 8};
		struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, 1, msn, 0, true);
		uint8_t bytes[EXT_RANGE_LEN];

		assert_false(qp_is_failed(t->b->qp));
		ext_range_encode(bytes, sizeof(bytes), &req);
		end_inject_fpdu(t->b, &hdr, bytes, sizeof(bytes));
		end_run_writebacks(t->b);
	}
	expect_terminated(t->b, true, TERM_DDP_NO_BUFFER);
	end_finish_writeback(t->b, 0); /* the write-back ends late, and does no harm */
}

/* --- Flushes ------------------------------------------------------------------------------ */

static void a_flush_asks_for_exactly_its_range(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_flush(t->a, 1, t->mrb, 4000, 5000, true), 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1);
	assert_ptr_equal(t->b->wb.mr, t->mrb);
	assert_ptr_equal(t->b->wb.addr, t->mb + 4000);
	assert_int_equal(t->b->wb.len, 5000);
	assert_false(t->b->wb.strict);
	assert_int_equal(qp_counters(t->b->qp)->writebacks, 1);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 5000, false), 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1); /* a flush for visibility needs no write-back */
}

static void strictness_travels_with_the_request(void **state)
{
	struct bench *t = *state;

	assert_int_equal(
		qp_flush(t->a->qp, 1, 0, t->mrb->ibv.rkey, t->mrb->iova, 8, VEXT_FLUSH_STRICT), 0);
	pair_run(&t->p);
	assert_true(t->b->wb.strict);
}

static void while_a_write_back_runs_writes_go_on_and_requests_wait(void **state)
{
	struct bench *t = *state;

	t->b->wb_hold = true;
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 100, true), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 500, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 3, t->mra, 200, 100, t->mrb, 200), 0);
	pair_run(&t->p);
	expect_no_wc(&t->a->scq);
	assert_memory_equal(t->mb + 200, t->ma + 200, 100);
	end_finish_writeback(t->b, 0);
	pair_run(&t->p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
}

static void a_failed_flush_tells_why(void **state)
{
	static const struct {
		int status;
		enum vext_reason reason;
	} cases[] = {{-EIO, VEXT_REASON_WRITE_BACK},
		     {-ENOSPC, VEXT_REASON_WRITE_BACK},
		     {-ENOTSUP, VEXT_REASON_VOLATILE},
		     {-EFAULT, VEXT_REASON_GONE}};
	struct pair_options o = pair_defaults();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ibv_wc wc;
		struct bench t;

		bench_open(&t, &o, LEN);
		t.b->wb_status = cases[i].status;
		assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 100, true), 0);
		assert_int_equal(end_flush(t.a, 2, t.mrb, 0, 100, true), 0);
		pair_run(&t.p);
		wc = next_wc(&t.a->scq);
		assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
		assert_int_equal(wc.vendor_err,
				 vext_vendor_err(cases[i].reason, (uint32_t)-cases[i].status));
		assert_int_equal(wc.opcode, VEXT_WC_FLUSH);
		expect_wc(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		assert_true(qp_is_failed(t.a->qp));
		/* no rule was broken, so there is no Terminate */
		assert_null(qp_terminate(t.a->qp, NULL));
		assert_false(qp_is_failed(t.b->qp));
		assert_int_equal(qp_counters(t.b->qp)->writeback_failures, 2);
		bench_close(&t);
	}
}

static void flush_rights(int access, bool persistent, bool granted)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.b, t.mb, 4096, access);
	assert_int_equal(end_flush(t.a, 1, mr, 0, 100, persistent), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (!granted)
		expect_terminated(t.b, true, TERM_RDMAP_ACCESS);
	bench_dereg(t.b, &mr);
	bench_close(&t);
}

static void a_flush_needs_a_right(void **state)
{
	int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	flush_rights(IBV_ACCESS_REMOTE_READ, true, true);
	flush_rights(IBV_ACCESS_REMOTE_READ, false, true);
	flush_rights(write | VEXT_ACCESS_FLUSH_PERSISTENT, true, true);
	flush_rights(write | VEXT_ACCESS_FLUSH_PERSISTENT, false, false);
	flush_rights(write | VEXT_ACCESS_FLUSH_GLOBAL, false, true);
	flush_rights(write | VEXT_ACCESS_FLUSH_GLOBAL, true, false);
	flush_rights(write, true, false);
}

static void a_flush_is_bounded(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_flush(t->a, 1, t->mrb, 1, LEN, true), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t->b, true, TERM_RDMAP_BASE_BOUNDS);
	assert_int_equal(t->b->wb_count, 0);
}

static void a_region_may_go_before_its_write_back_is_fetched(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 8, true), 0);
	end_send_all(t->a);
	while (end_take(t->b, SIZE_MAX) > 0)
		;
	bench_dereg(t->b, &t->mrb);
	pair_run(&t->p);
	expect_terminated(t->b, true, TERM_RDMAP_INVALID_STAG);
}

static void a_write_back_may_end_after_the_qp_has(void **state)
{
	struct bench *t = *state;

	t->b->wb_hold = true;
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 8, true), 0);
	pair_run(&t->p);
	assert_true(t->b->wb_running);
	qp_fail(t->b->qp, IBV_WC_GENERAL_ERR);
	end_finish_writeback(t->b, -EIO);
	assert_int_equal(end_gather(t->b, SIZE_MAX, NULL), 0);
}

/* --- Reads that flush --------------------------------------------------------------------- */

static struct pair_options plain_peer(void)
{
	struct pair_options o = pair_defaults();

	o.stream.consent = o.stream.peer_flushes = false;
	return o;
}

static void a_read_first_writes_back_what_was_placed(void **state)
{
	struct pair_options o = plain_peer();
	struct bench t;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 0); /* no byte is dirty, so nothing is written back */
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 100, t.mrb, 5000), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 50000, t.mrb, 1000), 0);
	assert_int_equal(end_read(t.a, 4, t.mra, 0, 8, t.mrb, 70000), 0);
	assert_int_equal(end_read(t.a, 5, t.mra, 0, 8, t.mrb, 70000), 0);
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 1);
	assert_ptr_equal(t.b->wb.addr, t.mb + 1000);
	assert_int_equal(t.b->wb.len, 50000);
	for (uint64_t id = 1; id <= 5; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void what_comes_while_a_write_back_runs_is_for_the_next_read(void **state)
{
	struct pair_options o = plain_peer();
	struct bench t;

	bench_open(&t, &o, LEN);
	t.b->wb_hold = true;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 800), 0);
	assert_int_equal(end_read(t.a, 4, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(t.b->wb.len, 8);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	assert_ptr_equal(t.b->wb.addr, t.mb + 800);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_read_whose_write_back_fails_is_never_answered_by_data(void **state)
{
	struct pair_options o = plain_peer();
	struct bench t;

	bench_open(&t, &o, LEN);
	t.b->wb_status = -EIO;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 64, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_REM_OP_ERR);
	expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	assert_memory_not_equal(t.ma + 64, t.mb, 8);
	bench_close(&t);
}

/* Bytes of one file may have been placed through any of several registrations. */
static void a_read_of_one_region_writes_back_what_was_placed_in_all(void **state)
{
	struct pair_options o = plain_peer();
	struct mr *mr[10];
	struct bench t;

	bench_open(&t, &o, LEN);
	for (size_t i = 0; i < ARRAY_LEN(mr); i++) {
		mr[i] = end_reg(t.b, t.mb + 4096 * i, 4096, REMOTE_ALL);
		assert_int_equal(end_write(t.a, i, t.mra, 0, 8, mr[i], i), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	}
	t.b->wb_hold = true;
	assert_int_equal(end_read(t.a, 20, t.mra, 0, 8, t.mrb, 70000), 0);
	for (size_t i = 0, seen = 0; i < ARRAY_LEN(mr); i++) {
		pair_run(&t.p);
		assert_int_equal(cq_poll(&t.a->scq, 1, &(struct ibv_wc){0}), 0);
		assert_int_equal(t.b->wb.len, 8);
		seen |= (size_t)1 << (((uint8_t *)t.b->wb.addr - t.mb) / 4097);
		assert_int_equal(__builtin_popcountl(seen), i + 1);
		end_finish_writeback(t.b, 0);
	}
	pair_run(&t.p);
	expect_wc(&t.a->scq, 20, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, ARRAY_LEN(mr));
	for (size_t i = 0; i < ARRAY_LEN(mr); i++)
		bench_dereg(t.b, &mr[i]);
	bench_close(&t);
}

/* Volatile memory cannot be made persistent, so a Read does not wait for a write-back. */
static void a_read_does_not_write_back_volatile_memory(void **state)
{
	struct pair_options o = plain_peer();
	struct bench t;

	bench_open(&t, &o, LEN);
	t.mrb->backing.durable = false;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 0);
	bench_close(&t);
}

static unsigned drops;

static void count_drop(void *persist)
{
	drops++;
}

static struct mr *reg_lasting(struct bench *t)
{
	struct mr *mr = end_reg(t->b, t->mb, 4096, REMOTE_ALL);

	mr->backing.lasting = true;
	mr->backing.drop = count_drop;
	drops = 0;
	return mr;
}

/* The region of the placed bytes was deregistered, for instance because the program registers the
 * memory again. The bytes are still written back. */
static void a_read_writes_back_what_was_placed_in_a_region_that_is_gone(void **state)
{
	struct pair_options o = plain_peer();
	struct mr *mr;
	struct bench t;

	bench_open(&t, &o, LEN);
	mr = reg_lasting(&t);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, mr, 8), 0);
	pair_run(&t.p);
	bench_dereg(t.b, &mr);
	assert_int_equal(drops, 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 1);
	assert_ptr_equal(t.b->wb.addr, t.mb + 8);
	assert_int_equal(t.b->wb.len, 100);
	assert_int_equal(drops, 1);
	bench_close(&t);
}

static void a_region_may_go_while_its_lasting_write_back_runs(void **state)
{
	struct pair_options o = plain_peer();
	struct mr *mr;
	struct bench t;

	bench_open(&t, &o, LEN);
	mr = reg_lasting(&t);
	t.b->wb_hold = true;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, mr, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_true(t.b->wb_running);
	bench_dereg(t.b, &mr); /* the deregistration does not wait for the write-back */
	assert_int_equal(drops, 0);
	end_finish_writeback(t.b, 0);
	assert_int_equal(drops, 1);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	bench_close(&t);
}

/*
 * If a write-back needs the registration, a deregistration leaves bytes that can no longer be made
 * durable. A later Read of persistent memory must then fail.
 */
static void a_read_is_refused_when_placed_bytes_are_lost(void **state)
{
	struct pair_options o = plain_peer();
	struct mr *mr;
	struct bench t;

	for (int durable = 0; durable < 2; durable++) {
		bench_open(&t, &o, LEN);
		mr = end_reg(t.b, t.mb, 4096, REMOTE_ALL);
		mr->backing.durable = durable;
		assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, mr, 0), 0);
		pair_run(&t.p);
		bench_dereg(t.b, &mr);
		assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 2, durable ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
		assert_int_equal(t.b->wb_count, 0);
		bench_close(&t);
	}
}

/*
 * The list of regions is limited: a stream whose user never reads must not use more and more
 * memory.
 */
static void regions_that_are_gone_are_given_up_when_they_are_many(void **state)
{
	struct pair_options o = plain_peer();
	struct bench t;

	bench_open(&t, &o, LEN);
	for (unsigned i = 0; i < 5000; i++) {
		struct mr *mr = reg_lasting(&t);

		assert_int_equal(end_write(t.a, i, t.mra, 0, 8, mr, 0), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
		bench_dereg(t.b, &mr);
	}
	assert_int_equal(end_read(t.a, 7000, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 7000, IBV_WC_REM_OP_ERR);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_checked),
		BENCH_TEST(a_bad_read_does_not_spoil_the_one_before_it, LEN),
		BENCH_TEST(a_read_sees_what_was_written_before_it, LEN),
		BENCH_TEST(more_requests_than_ird_are_refused, LEN),
		BENCH_TEST(a_flush_asks_for_exactly_its_range, LEN),
		BENCH_TEST(strictness_travels_with_the_request, LEN),
		BENCH_TEST(while_a_write_back_runs_writes_go_on_and_requests_wait, LEN),
		cmocka_unit_test(a_failed_flush_tells_why),
		cmocka_unit_test(a_flush_needs_a_right),
		BENCH_TEST(a_flush_is_bounded, LEN),
		BENCH_TEST(a_region_may_go_before_its_write_back_is_fetched, LEN),
		BENCH_TEST(a_write_back_may_end_after_the_qp_has, LEN),
		cmocka_unit_test(a_read_first_writes_back_what_was_placed),
		cmocka_unit_test(what_comes_while_a_write_back_runs_is_for_the_next_read),
		cmocka_unit_test(a_read_whose_write_back_fails_is_never_answered_by_data),
		cmocka_unit_test(a_read_of_one_region_writes_back_what_was_placed_in_all),
		cmocka_unit_test(a_read_does_not_write_back_volatile_memory),
		cmocka_unit_test(a_read_writes_back_what_was_placed_in_a_region_that_is_gone),
		cmocka_unit_test(a_region_may_go_while_its_lasting_write_back_runs),
		cmocka_unit_test(a_read_is_refused_when_placed_bytes_are_lost),
		cmocka_unit_test(regions_that_are_gone_are_given_up_when_they_are_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
