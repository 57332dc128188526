/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics (RFC 7306 s5) and the Atomic Write: what they do, in which order, and which are
 * refused. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/rnic.h"

#define LEN     65536
#define ALL     (REMOTE_ALL | IBV_ACCESS_REMOTE_ATOMIC)
#define WORD_AT 4096

struct atomics {
	struct bench t;
	struct mr *mr; /* region of B's memory that permits atomics */
};

static void open_with(struct atomics *a, const struct pair_options *o, int access)
{
	bench_open(&a->t, o, LEN);
	a->mr = end_reg(a->t.b, a->t.mb, LEN, access);
}

static void close_all(struct atomics *a)
{
	bench_dereg(a->t.b, &a->mr);
	bench_close(&a->t);
}

static uint64_t *word_of(struct atomics *a)
{
	return (uint64_t *)(void *)(a->t.mb + WORD_AT);
}

static uint64_t original(struct atomics *a)
{
	uint64_t v;

	memcpy(&v, a->t.ma, sizeof(v));
	return v;
}

static int post_at(struct atomics *a, enum ibv_wr_opcode op, uint64_t id, uint64_t compare_add,
		   uint64_t swap, size_t at)
{
	struct ibv_sge sge = {a->t.mra->iova, 8, a->t.mra->ibv.lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .opcode = op,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.atomic.remote_addr = a->mr->iova + at;
	wr.wr.atomic.rkey = a->mr->ibv.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return qp_post_send(a->t.a->qp, &wr, &bad);
}

static int post(struct atomics *a, enum ibv_wr_opcode op, uint64_t id, uint64_t compare_add,
		uint64_t swap)
{
	return post_at(a, op, id, compare_add, swap, WORD_AT);
}

static int atomic_write(struct atomics *a, uint64_t id, size_t at, const char bytes[8])
{
	return qp_atomic_write(a->t.a->qp, id, IBV_SEND_SIGNALED, a->mr->ibv.rkey, a->mr->iova + at,
			       bytes);
}

static void expect_done(struct atomics *a, int opcode, uint64_t was)
{
	struct ibv_wc wc;

	pair_run(&a->t.p);
	wc = next_wc(&a->t.a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.byte_len, 8);
	assert_true(original(a) == was);
}

static void both_operations_do_what_verbs_says(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	for (int consent = 0; consent < 2; consent++) {
		o.stream.consent = consent;
		o.stream.crc = consent;
		o.peer_rfc7306 = !consent;
		open_with(&a, &o, ALL);
		*word_of(&a) = UINT64_MAX - 1;
		assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 5, 0), 0);
		expect_done(&a, IBV_WC_FETCH_ADD, UINT64_MAX - 1);
		assert_true(*word_of(&a) == 3);
		assert_int_equal(post(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 3, 1ull << 63), 0);
		expect_done(&a, IBV_WC_COMP_SWAP, 3);
		assert_true(*word_of(&a) == 1ull << 63);
		assert_int_equal(post(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 3, 3, 9), 0);
		expect_done(&a, IBV_WC_COMP_SWAP, 1ull << 63);
		assert_true(*word_of(&a) == 1ull << 63);
		assert_int_equal(qp_counters(a.t.b->qp)->atomics_in, 3);
		close_all(&a);
	}
}

static void what_cannot_be_asked_is_refused_at_once(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_sge sge[2] = {{0}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge};
	struct atomics a;

	open_with(&a, &o, ALL);
	assert_true(qp_caps(a.t.a->qp) & VEXT_CAP_ATOMIC_WRITE);
	assert_int_equal(qp_post_send(a.t.a->qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	sge[0].length = 4;
	assert_int_equal(qp_post_send(a.t.a->qp, &wr, &bad), EINVAL);
	sge[1].length = 4;
	wr.num_sge = 2;
	assert_int_equal(qp_post_send(a.t.a->qp, &wr, &bad), EINVAL);
	sge[0].length = 8;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(qp_post_send(a.t.a->qp, &wr, &bad), EINVAL);
	assert_int_equal(atomic_write(&a, 1, 4, "12345678"), EINVAL);
	close_all(&a);
	for (int declared = 0; declared < 2; declared++) {
		o.stream.consent = false;
		o.peer_rfc7306 = declared;
		open_with(&a, &o, ALL);
		assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0),
				 declared ? 0 : EINVAL);
		assert_int_equal(qp_caps(a.t.a->qp),
				 declared ? VEXT_CAP_IMM | VEXT_CAP_ATOMICS : 0);
		assert_int_equal(atomic_write(&a, 1, 0, "12345678"), EINVAL);
		close_all(&a);
	}
	o = pair_defaults();
	o.stream.ord = 0;
	open_with(&a, &o, ALL);
	assert_int_equal(post(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 1, 0), EINVAL);
	close_all(&a);
}

static void refused(int access, size_t at, unsigned error, enum ibv_wc_status status)
{
	struct pair_options o = pair_defaults();
	uint8_t before[LEN];
	struct atomics a;

	open_with(&a, &o, access);
	memcpy(before, a.t.mb, LEN);
	assert_int_equal(post_at(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0, at), 0);
	pair_run(&a.t.p);
	expect_wc(&a.t.a->scq, 1, status);
	expect_terminated(a.t.b, true, error);
	assert_memory_equal(a.t.mb, before, LEN);
	close_all(&a);
}

static void the_target_checks_right_bounds_and_alignment(void **state)
{
	refused(REMOTE_ALL, 0, TERM_RDMAP_ACCESS, IBV_WC_REM_ACCESS_ERR);
	refused(ALL, LEN, TERM_RDMAP_BASE_BOUNDS, IBV_WC_REM_ACCESS_ERR);
	refused(ALL, LEN - 4, TERM_RDMAP_BASE_BOUNDS, IBV_WC_REM_ACCESS_ERR);
	refused(ALL, 4, TERM_RDMAP_STREAM_CATASTROPHIC, IBV_WC_REM_OP_ERR);
}

static void they_count_as_ord_and_end_in_order(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	open_with(&a, &o, ALL);
	*word_of(&a) = 0;
	for (uint64_t id = 0; id < 12; id += 3) {
		assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, id, 1, 0), 0);
		assert_int_equal(end_read(a.t.a, id + 1, a.t.mra, 64, 8, a.t.mrb, WORD_AT), 0);
		assert_int_equal(end_flush(a.t.a, id + 2, a.t.mrb, 0, 8, true), 0);
	}
	pair_run(&a.t.p);
	for (uint64_t id = 0; id < 12; id++)
		expect_wc(&a.t.a->scq, id, IBV_WC_SUCCESS);
	assert_true(*word_of(&a) == 4 && original(&a) == 3);
	close_all(&a);
}

/* --- requests that only other implementations send ---------------------------------------- */

static uint64_t masked(uint8_t op, uint64_t start, const struct rdmap_atomic_req *proto)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr = hdr_untagged(RDMAP_ATOMIC_REQ, DDP_QN_REQUEST, 1, 0, true);
	struct rdmap_atomic_req req = *proto;
	uint8_t bytes[RDMAP_ATOMIC_REQ_LEN];
	struct atomics a;
	uint64_t now;

	o.stream.consent = false;
	o.peer_rfc7306 = true;
	open_with(&a, &o, ALL);
	*word_of(&a) = start;
	req.op = op;
	req.stag = a.mr->ibv.rkey;
	req.to = a.mr->iova + WORD_AT;
	rdmap_atomic_req_encode(bytes, sizeof(bytes), &req);
	end_inject_fpdu(a.t.b, &hdr, bytes, sizeof(bytes));
	assert_false(qp_is_failed(a.t.b->qp));
	now = *word_of(&a);
	close_all(&a);
	return now;
}

static void masks_cut_the_word_into_fields(void **state)
{
	struct rdmap_atomic_req add = {.data = 0x00000001ffffffff, .data_mask = 0x80000000};
	struct rdmap_atomic_req swap = {.data = 0xaaaaaaaaaaaaaaaa,
					.data_mask = 0xff,
					.compare = 0x1200,
					.compare_mask = 0xff00};

	assert_true(masked(RDMAP_FETCH_ADD, 1, &add) == 1ull << 32);
	add.data_mask = 0;
	assert_true(masked(RDMAP_FETCH_ADD, 1, &add) == 2ull << 32);
	add.data_mask = UINT64_MAX; /* each bit is a field of its own */
	assert_true(masked(RDMAP_FETCH_ADD, 3, &add) == (3 ^ add.data));
	assert_true(masked(RDMAP_CMP_SWAP, 0x991234, &swap) == 0x9912aa);
	assert_true(masked(RDMAP_CMP_SWAP, 0x991334, &swap) == 0x991334);
}

static void unknown_operations_are_refused(void **state)
{
	for (uint8_t op = 0; op < 16; op++)
		for (int consent = 0; consent < 2; consent++) {
			struct pair_options o = pair_defaults();
			struct ddp_hdr hdr =
				hdr_untagged(RDMAP_ATOMIC_REQ, DDP_QN_REQUEST, 1, 0, true);
			struct rdmap_atomic_req req = {.op = op};
			uint8_t bytes[RDMAP_ATOMIC_REQ_LEN];
			bool known = op == RDMAP_FETCH_ADD || op == RDMAP_CMP_SWAP;
			struct atomics a;

			o.stream.consent = consent;
			o.peer_rfc7306 = true;
			open_with(&a, &o, ALL);
			rdmap_atomic_req_encode(bytes, sizeof(bytes), &req);
			end_inject_fpdu(a.t.b, &hdr, bytes, sizeof(bytes));
			expect_terminated(a.t.b, true,
					  known ? TERM_RDMAP_INVALID_STAG
						: TERM_RDMAP_UNEXPECTED_OPCODE);
			close_all(&a);
		}
}

static void an_answer_must_be_that_of_the_request(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr = hdr_untagged(RDMAP_ATOMIC_RESP, DDP_QN_RESPONSE, 1, 0, true);

	for (uint32_t id = 0; id < 2; id++) {
		struct rdmap_atomic_resp resp = {.id = id, .original = 77};
		uint8_t bytes[RDMAP_ATOMIC_RESP_LEN];
		struct atomics a;

		open_with(&a, &o, ALL);
		assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0), 0);
		end_send_all(a.t.a);
		a.t.a->wire_len = 0; /* lose the request */
		rdmap_atomic_resp_encode(bytes, sizeof(bytes), &resp);
		end_inject_fpdu(a.t.a, &hdr, bytes, sizeof(bytes));
		if (id == 0)
			expect_wc(&a.t.a->scq, 1, IBV_WC_SUCCESS);
		else
			expect_terminated(a.t.a, true, TERM_RDMAP_UNEXPECTED_OPCODE);
		close_all(&a);
	}
}

static void a_sink_that_is_gone_is_the_users_error(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	open_with(&a, &o, ALL);
	*word_of(&a) = 0;
	assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0), 0);
	end_send_all(a.t.a);
	bench_dereg(a.t.a, &a.t.mra);
	pair_run(&a.t.p);
	expect_wc(&a.t.a->scq, 1, IBV_WC_LOC_PROT_ERR);
	close_all(&a);
}

/* --- Atomic Write ------------------------------------------------------------------------- */

static void an_atomic_write_places_its_bytes_in_their_order(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_wc wc;
	struct atomics a;

	open_with(&a, &o, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(atomic_write(&a, 1, WORD_AT, "\1\2\3\4\5\6\7"), 0);
	pair_run(&a.t.p);
	wc = next_wc(&a.t.a->scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, VEXT_WC_ATOMIC_WRITE);
	assert_memory_equal(word_of(&a), "\1\2\3\4\5\6\7", 8);
	close_all(&a);
}

static void an_atomic_write_waits_for_the_flush_before_it(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	open_with(&a, &o, ALL);
	a.t.b->wb_hold = true;
	*word_of(&a) = 0;
	assert_int_equal(end_write(a.t.a, 1, a.t.mra, 0, 100, a.t.mrb, 0), 0);
	assert_int_equal(end_flush(a.t.a, 2, a.t.mrb, 0, 100, true), 0);
	assert_int_equal(atomic_write(&a, 3, WORD_AT, "commit!"), 0);
	pair_run(&a.t.p);
	expect_wc(&a.t.a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&a.t.a->scq);
	/* the request has arrived, and waits */
	assert_int_equal(qp_counters(a.t.b->qp)->atomics_in, 1);
	assert_true(*word_of(&a) == 0);
	end_finish_writeback(a.t.b, 0);
	pair_run(&a.t.p);
	expect_wc(&a.t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&a.t.a->scq, 3, IBV_WC_SUCCESS);
	assert_memory_equal(word_of(&a), "commit!", 8);
	close_all(&a);
}

static void nothing_is_published_after_a_failed_flush(void **state)
{
	struct pair_options o = pair_defaults();

	for (int kind = 0; kind < 2; kind++) {
		struct ibv_wc wc;
		struct atomics a;

		open_with(&a, &o, ALL);
		a.t.b->wb_status = -EIO;
		*word_of(&a) = 0;
		assert_int_equal(end_flush(a.t.a, 1, a.t.mrb, 0, 100, true), 0);
		if (kind == 0)
			assert_int_equal(atomic_write(&a, 2, WORD_AT, "commit!"), 0);
		else
			assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 1, 0), 0);
		pair_run(&a.t.p);
		assert_true(*word_of(&a) == 0);
		wc = next_wc(&a.t.a->scq);
		assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
		/* vendor_err names the cause, not the Terminate after it. */
		assert_int_equal(wc.vendor_err, vext_vendor_err(VEXT_REASON_WRITE_BACK, EIO));
		expect_wc(&a.t.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		close_all(&a);
	}
}

static void an_earlier_read_does_not_see_a_later_atomic(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	open_with(&a, &o, ALL);
	*word_of(&a) = 7;
	/* The Read is so long that its answer refers to the memory and does not copy it. */
	assert_int_equal(end_read(a.t.a, 1, a.t.mra, 1024, 8192, a.t.mrb, 0), 0);
	assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 1, 0), 0);
	end_send_all(a.t.a);
	while (end_take(a.t.b, SIZE_MAX) > 0)
		;
	end_gather(a.t.b, 1, NULL); /* both answers are gathered, but only one byte is sent */
	assert_true(*word_of(&a) == 8);
	pair_run(&a.t.p);
	assert_int_equal(a.t.ma[1024 + WORD_AT + (htole64(1) == 1 ? 0 : 7)], 7);
	expect_wc(&a.t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&a.t.a->scq, 2, IBV_WC_SUCCESS);
	close_all(&a);
}

static void an_atomic_is_written_back_before_a_read_that_flushes(void **state)
{
	struct pair_options o = pair_defaults();
	struct atomics a;

	o.stream.peer_flushes = false;
	open_with(&a, &o, ALL);
	*word_of(&a) = 0;
	assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0), 0);
	assert_int_equal(end_read(a.t.a, 2, a.t.mra, 64, 8, a.mr, 0), 0);
	pair_run(&a.t.p);
	assert_int_equal(a.t.b->wb_count, 1);
	assert_ptr_equal(a.t.b->wb.addr, word_of(&a));
	assert_int_equal(a.t.b->wb.len, 8);
	close_all(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_operations_do_what_verbs_says),
		cmocka_unit_test(what_cannot_be_asked_is_refused_at_once),
		cmocka_unit_test(the_target_checks_right_bounds_and_alignment),
		cmocka_unit_test(they_count_as_ord_and_end_in_order),
		cmocka_unit_test(masks_cut_the_word_into_fields),
		cmocka_unit_test(unknown_operations_are_refused),
		cmocka_unit_test(an_answer_must_be_that_of_the_request),
		cmocka_unit_test(a_sink_that_is_gone_is_the_users_error),
		cmocka_unit_test(an_atomic_write_places_its_bytes_in_their_order),
		cmocka_unit_test(an_atomic_write_waits_for_the_flush_before_it),
		cmocka_unit_test(nothing_is_published_after_a_failed_flush),
		cmocka_unit_test(an_earlier_read_does_not_see_a_later_atomic),
		cmocka_unit_test(an_atomic_is_written_back_before_a_read_that_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
