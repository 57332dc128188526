/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_qp_reasons.c -- vendor_err of a failed completion holds a reason and a code
 * (verbs_ext/values.h).
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"

#define LEN 65536u

#define WHY(reason, code) vext_vendor_err(VEXT_REASON_##reason, code)

static void expect_why(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status, uint32_t why)
{
	struct ibv_wc wc = next_wc(cq);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	if (wc.vendor_err != why)
		fail_msg("vendor_err of %d is %#x instead of %#x", (int)wr_id, wc.vendor_err, why);
}

/* Post requests of three kinds with wr_id 1 to 3, which stay unanswered, and a receive with wr_id
 * 9. */
static void post_some(struct bench *t)
{
	assert_int_equal(end_recv(t->a, 9, t->mra, 0, 8), 0);
	assert_int_equal(end_read(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 8, true), 0);
	assert_int_equal(end_write(t->a, 3, t->mra, 0, 8, t->mrb, 0), 0);
}

/* Expect that all requests and later posts fail for the same reason. */
static void expect_all(struct bench *t, enum ibv_wc_status first, uint32_t why)
{
	expect_why(&t->a->scq, 1, first, why);
	expect_why(&t->a->scq, 2, IBV_WC_WR_FLUSH_ERR, why);
	expect_why(&t->a->scq, 3, IBV_WC_WR_FLUSH_ERR, why);
	expect_why(&t->a->rcq, 9, IBV_WC_WR_FLUSH_ERR, why);
	assert_int_equal(end_write(t->a, 4, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_flush(t->a, 5, t->mrb, 0, 8, true), 0);
	assert_int_equal(end_recv(t->a, 10, t->mra, 0, 8), 0);
	expect_why(&t->a->scq, 4, IBV_WC_WR_FLUSH_ERR, why);
	expect_why(&t->a->scq, 5, IBV_WC_WR_FLUSH_ERR, why);
	expect_why(&t->a->rcq, 10, IBV_WC_WR_FLUSH_ERR, why);
}

static void the_peers_terminate_is_the_reason(void **state)
{
	struct bench *t = *state;
	struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, 2, 1, 0, true);
	static const uint8_t crc[4] = {0x20, 2};

	post_some(t);
	end_inject_fpdu(t->a, &hdr, crc, sizeof(crc));
	expect_all(t, IBV_WC_REM_OP_ERR, WHY(TERMINATE_IN, TERM_MPA_CRC));
}

static void our_terminate_is_the_reason(void **state)
{
	struct bench *t = *state;
	struct ddp_hdr hdr = hdr_tagged(RDMAP_WRITE, 0xbad, 0, true);

	post_some(t);
	end_inject_fpdu(t->a, &hdr, "12345678", 8);
	expect_all(t, IBV_WC_WR_FLUSH_ERR, WHY(TERMINATE_OUT, TERM_DDP_INVALID_STAG));
}

static void the_first_reason_why_the_link_ended_counts(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	post_some(&t);
	qp_set_link_cause(t.a->qp, ETIMEDOUT);
	qp_set_link_cause(t.a->qp, EIO);
	qp_fail(t.a->qp, IBV_WC_WR_FLUSH_ERR);
	expect_all(&t, IBV_WC_WR_FLUSH_ERR, WHY(LINK, ETIMEDOUT));
	bench_close(&t);
	bench_open(&t, &o, LEN);
	post_some(&t);
	qp_fail(t.a->qp, IBV_WC_WR_FLUSH_ERR);
	expect_all(&t, IBV_WC_WR_FLUSH_ERR, WHY(LINK, ECONNABORTED));
	bench_close(&t);
}

static void the_end_of_the_stream_is_an_error_only_inside_an_fpdu(void **state)
{
	struct pair_options o = pair_defaults();

	for (int inside = 0; inside < 2; inside++) {
		struct bench t;

		bench_open(&t, &o, LEN);
		post_some(&t);
		if (inside)
			end_inject(t.a, "\0\x16\xc1", 3);
		qp_on_eof(t.a->qp);
		expect_all(&t, IBV_WC_WR_FLUSH_ERR, WHY(LINK, inside ? ECONNRESET : ENOTCONN));
		bench_close(&t);
	}
}

static void a_failed_write_back_is_the_reason_of_all_later_ones(void **state)
{
	struct bench *t = *state;

	t->b->wb_status = -ENOSPC;
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 8, true), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_recv(t->a, 9, t->mra, 0, 8), 0);
	pair_run(&t->p);
	expect_why(&t->a->scq, 1, IBV_WC_REM_OP_ERR, WHY(WRITE_BACK, ENOSPC));
	expect_why(&t->a->scq, 2, IBV_WC_WR_FLUSH_ERR, WHY(WRITE_BACK, ENOSPC));
	expect_why(&t->a->rcq, 9, IBV_WC_WR_FLUSH_ERR, WHY(WRITE_BACK, ENOSPC));
}

static void our_own_memory_is_the_reason(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.a, t.ma, 64, IBV_ACCESS_REMOTE_READ); /* a region that cannot be a sink */
	assert_int_equal(end_read(t.a, 1, mr, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_why(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR, WHY(LOCAL, EACCES));
	expect_why(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EACCES));
	bench_dereg(t.a, &mr);
	bench_close(&t);
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, LEN - 4, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_why(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR, WHY(LOCAL, ERANGE));
	bench_close(&t);
}

/* A deregistered sink fails a Read with the status of a protection error, like a refusal by the
 * peer, but the cause is at this end. */
static void a_sink_that_went_is_this_ends_cause(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.a, t.ma, 64, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(end_read(t.a, 1, mr, 0, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	bench_dereg(t.a, &mr);
	pair_run(&t.p);
	expect_why(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR, WHY(LOCAL, EACCES));
	assert_int_equal(t.a->async, IBV_EVENT_QP_ACCESS_ERR);
	assert_true(qp_cause_is_local(t.a->qp));
	bench_close(&t);
	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 8, t.mrb, LEN), 0);
	pair_run(&t.p);
	assert_int_equal(t.b->async, IBV_EVENT_QP_ACCESS_ERR);
	assert_false(qp_cause_is_local(t.b->qp));
	bench_close(&t);
}

static void a_receive_that_is_too_short_says_so(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_recv(t->b, 1, t->mrb, 0, 8), 0);
	assert_int_equal(end_recv(t->b, 2, t->mrb, 0, 8), 0);
	assert_int_equal(end_send(t->a, 3, t->mra, 0, 9), 0);
	assert_int_equal(end_read(t->a, 4, t->mra, 0, 8, t->mrb, 0), 0);
	pair_run(&t->p);
	expect_why(&t->b->rcq, 1, IBV_WC_LOC_LEN_ERR, WHY(LOCAL, EMSGSIZE));
	expect_why(&t->b->rcq, 2, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EMSGSIZE));
	expect_why(&t->a->scq, 3, IBV_WC_SUCCESS, 0);
	expect_why(&t->a->scq, 4, IBV_WC_REM_INV_REQ_ERR, WHY(TERMINATE_IN, TERM_DDP_TOO_LONG));
}

static void a_full_completion_queue_is_the_reason(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.cq_size = 1;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.a, 9, t.mra, 0, 8), 0);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_why(&t.a->rcq, 9, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EOVERFLOW));
	bench_close(&t);
}

/* Map memory whose second half is no longer in the file: accessing that half raises SIGBUS. */
static uint8_t *half_vanished(size_t len)
{
	int fd = memfd_create("gone", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0 && ftruncate(fd, (off_t)len) == 0);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(ftruncate(fd, (off_t)len / 2), 0);
	close(fd);
	return p;
}

static void of_several_sources_the_one_that_vanished_is_the_cause(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t *half = half_vanished(8192);
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.a, half, 8192, REMOTE_ALL);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 5000, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, mr, 0, 4096, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 3, mr, 2048, 4096, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 4, t.mra, 0, 5000, t.mrb, 0), 0);
	assert_int_equal(end_gather(t.a, 0, NULL), 0);
	qp_tx_fault(t.a->qp);
	expect_why(&t.a->scq, 1, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EFAULT));
	expect_why(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EFAULT));
	expect_why(&t.a->scq, 3, IBV_WC_LOC_PROT_ERR, WHY(LOCAL, EFAULT));
	expect_why(&t.a->scq, 4, IBV_WC_WR_FLUSH_ERR, WHY(LOCAL, EFAULT));
	bench_dereg(t.a, &mr);
	bench_close(&t);
	munmap(half, 8192);
}

static void a_response_whose_memory_vanished_in_the_llp_is_a_protection_error(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t *half = half_vanished(8192);
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.b, half, 8192, REMOTE_ALL);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 4096, mr, 4096), 0);
	assert_int_equal(end_write(t.b, 2, t.mrb, 0, 5000, t.mra, 0), 0);
	end_send_all(t.a);
	while (end_take(t.b, SIZE_MAX) > 0)
		;
	assert_int_equal(end_gather(t.b, 0, NULL), 0);
	qp_tx_fault(t.b->qp);
	expect_why(&t.b->scq, 2, IBV_WC_WR_FLUSH_ERR, WHY(TERMINATE_OUT, TERM_RDMAP_BASE_BOUNDS));
	pair_run(&t.p);
	expect_why(&t.a->scq, 1, IBV_WC_REM_ACCESS_ERR, WHY(TERMINATE_IN, TERM_RDMAP_BASE_BOUNDS));
	bench_dereg(t.b, &mr);
	bench_close(&t);
	munmap(half, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(the_peers_terminate_is_the_reason, LEN),
		BENCH_TEST(our_terminate_is_the_reason, LEN),
		cmocka_unit_test(the_first_reason_why_the_link_ended_counts),
		cmocka_unit_test(the_end_of_the_stream_is_an_error_only_inside_an_fpdu),
		BENCH_TEST(a_failed_write_back_is_the_reason_of_all_later_ones, LEN),
		cmocka_unit_test(our_own_memory_is_the_reason),
		cmocka_unit_test(a_sink_that_went_is_this_ends_cause),
		BENCH_TEST(a_receive_that_is_too_short_says_so, LEN),
		cmocka_unit_test(a_full_completion_queue_is_the_reason),
		cmocka_unit_test(of_several_sources_the_one_that_vanished_is_the_cause),
		cmocka_unit_test(a_response_whose_memory_vanished_in_the_llp_is_a_protection_error),
	};

	return cmocka_run_group_tests_name("reasons", tests, NULL, NULL);
}
