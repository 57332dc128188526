/* SPDX-License-Identifier: BSD-3-Clause */
/* All operations in both directions, with and without CRC and consent, in pieces of any size. */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN (300u << 10)

static void close_quiet(struct bench *t)
{
	assert_false(qp_is_failed(t->a->qp));
	assert_false(qp_is_failed(t->b->qp));
	assert_true(qp_is_idle(t->a->qp) && qp_is_idle(t->b->qp));
	expect_no_wc(&t->a->scq);
	expect_no_wc(&t->b->scq);
	bench_close(t);
}

/* Post every kind of operation in both directions at the same time, and check all results. */
static void exchange(const struct pair_options *o, size_t chunk, size_t len)
{
	struct bench t;
	struct qp_end *a, *b;

	bench_open(&t, o, LEN);
	a = t.a;
	b = t.b;
	assert_int_equal(end_recv(a, 90, t.mra, 5 * len, len), 0);
	assert_int_equal(end_recv(b, 91, t.mrb, 5 * len, len), 0);
	assert_int_equal(end_write(a, 1, t.mra, 0, len, t.mrb, len), 0);
	assert_int_equal(end_write(b, 2, t.mrb, 0, len, t.mra, len), 0);
	assert_int_equal(end_read(a, 3, t.mra, 2 * len, len, t.mrb, 3 * len), 0);
	assert_int_equal(end_read(b, 4, t.mrb, 2 * len, len, t.mra, 3 * len), 0);
	assert_int_equal(end_send(a, 5, t.mra, 4 * len, len), 0);
	assert_int_equal(end_send(b, 6, t.mrb, 4 * len, len), 0);
	if (o->stream.consent) {
		assert_int_equal(end_flush(a, 7, t.mrb, len, len, true), 0);
		assert_int_equal(end_flush(b, 8, t.mra, len, len, false), 0);
	}
	pair_run_chunked(&t.p, chunk);
	assert_memory_equal(t.mb + len, t.ma, len);
	assert_memory_equal(t.ma + len, t.mb, len);
	assert_memory_equal(t.ma + 2 * len, t.mb + 3 * len, len);
	assert_memory_equal(t.mb + 2 * len, t.ma + 3 * len, len);
	assert_memory_equal(t.mb + 5 * len, t.ma + 4 * len, len);
	assert_memory_equal(t.ma + 5 * len, t.mb + 4 * len, len);
	for (uint64_t id = 1; id <= (o->stream.consent ? 8 : 6); id++)
		expect_wc(id % 2 ? &a->scq : &b->scq, id, IBV_WC_SUCCESS);
	expect_wc(&a->rcq, 90, IBV_WC_SUCCESS);
	expect_wc(&b->rcq, 91, IBV_WC_SUCCESS);
	/* from the Flush, or from the Read of a peer that cannot flush */
	assert_int_equal(b->wb_count, 1);
	close_quiet(&t);
}

static void over_sizes(const struct pair_options *o)
{
	static const size_t lens[] = {1, 8, 100, 4095, 50000};

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		exchange(o, SIZE_MAX, lens[i]);
		exchange(o, 1000, lens[i]);
	}
	exchange(o, 1, 3000);
	exchange(o, 17, 20000);
}

static void exchanges_between_consenting_ends(void **state)
{
	struct pair_options o = pair_defaults();

	over_sizes(&o);
}

static void exchanges_with_crc(void **state)
{
	struct pair_options o = pair_defaults();

	o.stream.crc = true;
	over_sizes(&o);
}

static void exchanges_with_standard_peers(void **state)
{
	struct pair_options o = pair_defaults();

	o.stream.consent = o.stream.peer_flushes = false;
	over_sizes(&o);
	o.stream.crc = true;
	o.stream.mss = 65483;
	over_sizes(&o);
}

static void empty_messages_move_nothing(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.b, 9, NULL, 0, 0), 0);
	assert_int_equal(end_write(t.a, 1, NULL, 0, 0, NULL, 0), 0);
	assert_int_equal(end_read(t.a, 2, NULL, 0, 0, NULL, 0), 0);
	assert_int_equal(end_send(t.a, 3, NULL, 0, 0), 0);
	assert_int_equal(end_flush(t.a, 4, t.mrb, 0, 0, true), 0);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	expect_wc(&t.b->rcq, 9, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 0);
	close_quiet(&t);
}

static void completions_tell_what_happened(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct ibv_wc wc;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.b, 9, t.mrb, 0, 100), 0);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 60), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 70, t.mrb, 0), 0);
	assert_int_equal(end_flush(t.a, 3, t.mrb, 0, 80, false), 0);
	pair_run(&t.p);
	wc = next_wc(&t.a->scq);
	assert_true(wc.opcode == IBV_WC_SEND && wc.qp_num == 1);
	wc = next_wc(&t.a->scq);
	assert_true(wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 70);
	wc = next_wc(&t.a->scq);
	assert_int_equal(wc.opcode, 8);
	wc = next_wc(&t.b->rcq);
	assert_true(wc.opcode == IBV_WC_RECV && wc.byte_len == 60 && wc.qp_num == 2);
	close_quiet(&t);
}

static void segments_are_cut_at_aligned_target_offsets(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct ddp_hdr hdr;

	o.stream.consent = o.stream.peer_flushes = false;
	o.stream.mss = 1001;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 3, 5000, t.mrb, 13), 0);
	end_send_all(t.a);
	for (size_t at = 0; at < t.a->wire_len;) {
		const uint8_t *p = t.a->wire + at;
		size_t ulpdu = (size_t)p[0] << 8 | p[1];

		assert_int_equal(ddp_decode(p + 2, ulpdu, &hdr), DDP_TAGGED_HDR);
		assert_true(mpa_fpdu_len(ulpdu) <= 1001);
		if (at > 0)
			assert_int_equal(hdr.to % 8, 0);
		at += mpa_fpdu_len(ulpdu);
		assert_int_equal(hdr.last, at == t.a->wire_len);
	}
	pair_run(&t.p);
	assert_memory_equal(t.mb + 13, t.ma + 3, 5000);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	close_quiet(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges_between_consenting_ends),
		cmocka_unit_test(exchanges_with_crc),
		cmocka_unit_test(exchanges_with_standard_peers),
		cmocka_unit_test(empty_messages_move_nothing),
		cmocka_unit_test(completions_tell_what_happened),
		cmocka_unit_test(segments_are_cut_at_aligned_target_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
