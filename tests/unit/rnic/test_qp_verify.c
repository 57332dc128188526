/* SPDX-License-Identifier: BSD-3-Clause */
/* test_qp_verify.c -- requests for digests and durability classes, and hostile peers. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/rnic.h"

#define LEN 65536u

static const struct vext_digest answer = {.alg = VEXT_DIGEST_BLAKE2B,
					  .source = VEXT_DIGEST_FROM_MEDIUM,
					  .durability = VEXT_DURABILITY_FILE,
					  .len = 4096,
					  .bytes = {1, 2, [31] = 32}};

/* --- verify ------------------------------------------------------------------------------- */

static void a_digest_comes_back_after_the_write_back(void **state)
{
	struct pair_options o = pair_defaults();
	struct vext_digest got = {.alg = 77};
	struct ibv_wc wc;
	struct bench t;

	o.stream.crc = true;
	bench_open(&t, &o, LEN);
	t.b->wb_answer = answer;
	t.b->wb_hold = true;
	bench_write(&t, 1, t.mrb, 0);
	assert_int_equal(qp_verify(t.a->qp, 2, t.mrb->ibv.rkey, t.mrb->iova, 4096,
				   VEXT_DIGEST_BLAKE2B, &got),
			 0);
	pair_run(&t.p);
	assert_int_equal(got.alg, 77); /* the digest must not change before the answer arrives */
	assert_int_equal(t.b->wb.kind, QP_JOB_DIGEST);
	assert_int_equal(t.b->wb.alg, VEXT_DIGEST_BLAKE2B);
	bench_expect_wb(t.b, 0, t.mb, 4096);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, VEXT_WC_VERIFY);
	assert_memory_equal(&got, &answer, sizeof(got));
	/* the Verify also wrote the bytes back, so this flush writes nothing back */
	bench_flush_all(&t, 3);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 1);
	bench_close(&t);
}

static void a_digest_needs_the_right_to_read(void **state)
{
	struct bench *t = *state;
	struct vext_digest got = {.alg = 77};
	struct mr *mr;

	mr = end_reg(t->b, t->mb, 4096,
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     VEXT_ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(end_flush(t->a, 1, mr, 0, 4096, true), 0);
	assert_int_equal(
		qp_verify(t->a->qp, 2, mr->ibv.rkey, mr->iova, 4096, VEXT_DIGEST_CRC32C, &got), 0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t->b, true, TERM_RDMAP_ACCESS);
	assert_int_equal(got.alg, 77);
	bench_dereg(t->b, &mr);
}

static void a_failed_verify_tells_why_and_leaves_the_result_alone(void **state)
{
	struct bench *t = *state;
	struct vext_digest got = {.alg = 77};

	*(uint64_t *)(void *)(t->mb + 8192) = 0;
	t->b->wb_status = -EIO;
	assert_int_equal(qp_verify(t->a->qp, 1, t->mrb->ibv.rkey, t->mrb->iova, 4096,
				   VEXT_DIGEST_CRC32C, &got),
			 0);
	assert_int_equal(qp_atomic_write(t->a->qp, 2, IBV_SEND_SIGNALED, t->mrb->ibv.rkey,
					 t->mrb->iova + 8192, "commit!!"),
			 0);
	pair_run(&t->p);
	bench_expect_failed(t, 1, VEXT_REASON_WRITE_BACK, EIO);
	assert_int_equal(got.alg, 77);
	assert_int_equal(*(uint64_t *)(void *)(t->mb + 8192), 0);
}

/* --- query -------------------------------------------------------------------------------- */

static void the_class_is_asked_for_and_nothing_is_flushed(void **state)
{
	struct bench *t = *state;
	uint32_t durability = 77;
	struct ibv_wc wc;

	t->b->wb_answer.durability = VEXT_DURABILITY_DAX;
	bench_write(t, 1, t->mrb, 0);
	assert_int_equal(
		qp_query_class(t->a->qp, 2, t->mrb->ibv.rkey, t->mrb->iova + 8, 100, &durability),
		0);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t->a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, VEXT_WC_QUERY);
	assert_int_equal(durability, VEXT_DURABILITY_DAX);
	assert_int_equal(t->b->wb.kind, QP_JOB_CLASS);
	assert_int_equal(qp_counters(t->b->qp)->writebacks, 0);
	bench_flush_all(t, 3);
	pair_run(&t->p);
	assert_int_equal(qp_counters(t->b->qp)->writebacks, 1);
}

/* --- hostile peers ------------------------------------------------------------------------ */

static void a_malformed_request_is_refused(void **state)
{
	static const struct ext_range bad[] = {
		{.word = {EXT_FLUSH, 0x41}, .len = 8},
		{.word = {EXT_FLUSH, 0}, .len = 8},
		{.word = {EXT_FLUSH, 0x101}, .len = 8},
		{.word = {EXT_FLUSH, 4}, .len = 0},
		{.word = {EXT_VERIFY, 0x101}, .len = 0},
		{.word = {EXT_VERIFY, 0x301}, .len = 8},
		{.word = {EXT_VERIFY, 0x001}, .len = 8},
		{.word = {EXT_VERIFY, 0x102}, .len = 8},
		{.word = {EXT_VERIFY, 0x201}, .len = 1ull << 32},
		{.word = {EXT_QUERY, 1}, .len = 8},
		{.word = {EXT_QUERY, 0}, .len = 0},
		{.word = {EXT_FLUSH_ALL, 0}},
		{.word = {EXT_FLUSH_ALL, 0x21}},
		{.word = {EXT_ATOMIC_WRITE, 1}},
	};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_REQUEST, 1, 0, true);
	struct pair_options o = pair_defaults();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ext_range req = bad[i];
		uint8_t bytes[EXT_RANGE_LEN];
		struct bench t;

		bench_open(&t, &o, LEN);
		req.stag = t.mrb->ibv.rkey;
		req.to = t.mrb->iova;
		ext_range_encode(bytes, sizeof(bytes), &req);
		end_inject_fpdu(t.b, &hdr, bytes, ext_row(req.word.kind)->request);
		expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
		assert_int_equal(t.b->wb_count, 0);
		bench_close(&t);
	}
}

enum asked { ASKED_FLUSH, ASKED_VERIFY, ASKED_QUERY, ASKED_ATOMIC_WRITE };

struct reply {
	const char *what;
	enum asked asked;
	unsigned error; /* 0: the message must be accepted */
	bool has_digest;
	uint8_t kind;
	uint32_t status, detail;
	struct vext_digest digest;
};

#define GOOD .source = 2, .durability = 2, .alg = 1, .len = 64

#define WRONG TERM_RDMAP_STREAM_CATASTROPHIC

static const struct reply replies[] = {
	{"digest", ASKED_VERIFY, 0, true, EXT_VERIFY, 0, 0, {GOOD}},
	{"digest to a plain flush", ASKED_FLUSH, TERM_DDP_TOO_LONG, true, EXT_FLUSH, 0, 0, {GOOD}},
	{"digest to a query", ASKED_QUERY, TERM_DDP_TOO_LONG, true, EXT_QUERY, 0, 2, {GOOD}},
	{"no digest", ASKED_VERIFY, WRONG, false, EXT_VERIFY, 0, 0, {0}},
	{"digest of a failure", ASKED_VERIFY, TERM_DDP_TOO_LONG, true, EXT_VERIFY, 1, 5, {GOOD}},
	{"other algorithm",
	 ASKED_VERIFY,
	 WRONG,
	 true,
	 EXT_VERIFY,
	 0,
	 0,
	 {.source = 2, .durability = 2, .alg = 2, .len = 64}},
	{"of more than asked",
	 ASKED_VERIFY,
	 WRONG,
	 true,
	 EXT_VERIFY,
	 0,
	 0,
	 {.source = 2, .durability = 2, .alg = 1, .len = 65}},
	{"unknown source",
	 ASKED_VERIFY,
	 WRONG,
	 true,
	 EXT_VERIFY,
	 0,
	 0,
	 {.source = 4, .durability = 2, .alg = 1, .len = 64}},
	{"unknown class",
	 ASKED_VERIFY,
	 WRONG,
	 true,
	 EXT_VERIFY,
	 0,
	 0,
	 {.source = 2, .durability = 0, .alg = 1, .len = 64}},
	{"class", ASKED_QUERY, 0, false, EXT_QUERY, 0, 3, {0}},
	{"class 0", ASKED_QUERY, WRONG, false, EXT_QUERY, 0, 0, {0}},
	{"class 4", ASKED_QUERY, WRONG, false, EXT_QUERY, 0, 4, {0}},
	{"flush", ASKED_FLUSH, 0, false, EXT_FLUSH, 0, 0, {0}},
	{"atomic write", ASKED_ATOMIC_WRITE, 0, false, EXT_ATOMIC_WRITE, 0, 0, {0}},
	{"a query's to a flush", ASKED_FLUSH, WRONG, false, EXT_QUERY, 0, 2, {0}},
	{"a flush's to a query", ASKED_QUERY, WRONG, false, EXT_FLUSH, 0, 0, {0}},
	{"of everything to a range", ASKED_FLUSH, WRONG, false, EXT_FLUSH_ALL, 0, 0, {0}},
	{"a flush's to a verify", ASKED_VERIFY, WRONG, false, EXT_FLUSH, 0, 0, {0}},
	{"a flush's to an atomic write", ASKED_ATOMIC_WRITE, WRONG, false, EXT_FLUSH, 0, 0, {0}},
	{"a failure of another kind", ASKED_FLUSH, WRONG, false, EXT_VERIFY, 1, 5, {0}},
	{"an unknown kind", ASKED_FLUSH, WRONG, false, 99, 0, 0, {0}},
	{"a heartbeat's", ASKED_FLUSH, WRONG, false, EXT_HEARTBEAT, 0, 0, {0}},
};

static void ask(struct bench *t, enum asked what, struct vext_digest *digest, uint32_t *durability)
{
	uint32_t rkey = t->mrb->ibv.rkey;
	uint64_t at = t->mrb->iova;
	int err = -1;

	switch (what) {
	case ASKED_FLUSH:
		err = end_flush(t->a, 1, t->mrb, 0, 64, true);
		break;
	case ASKED_VERIFY:
		err = qp_verify(t->a->qp, 1, rkey, at, 64, VEXT_DIGEST_CRC32C, digest);
		break;
	case ASKED_QUERY:
		err = qp_query_class(t->a->qp, 1, rkey, at, 64, durability);
		break;
	case ASKED_ATOMIC_WRITE:
		err = qp_atomic_write(t->a->qp, 1, IBV_SEND_SIGNALED, rkey, at, "12345678");
		break;
	}
	assert_int_equal(err, 0);
	end_send_all(t->a);
}

static void try_reply(const struct reply *r)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_RESP, DDP_QN_RESPONSE, 1, 0, true);
	struct pair_options o = pair_defaults();
	struct ext_answer reply = {{r->kind, r->status}, r->detail};
	struct vext_digest digest = {.alg = 77};
	uint8_t bytes[EXT_ANSWER_LEN + EXT_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));
	uint32_t durability = 77;
	struct bench t;

	bench_open(&t, &o, LEN);
	ask(&t, r->asked, &digest, &durability);
	ext_answer_put(&c, &reply);
	if (r->has_digest)
		ext_digest_put(&c, &r->digest);
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
		cmocka_unit_test(a_digest_comes_back_after_the_write_back),
		BENCH_TEST(a_digest_needs_the_right_to_read, LEN),
		BENCH_TEST(a_failed_verify_tells_why_and_leaves_the_result_alone, LEN),
		BENCH_TEST(the_class_is_asked_for_and_nothing_is_flushed, LEN),
		cmocka_unit_test(a_malformed_request_is_refused),
		cmocka_unit_test(a_reply_that_is_none_to_the_question_is_refused),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
