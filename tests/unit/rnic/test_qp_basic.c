/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations, both ways, with and without CRC and consent, in pieces of any size. */
#include <stdlib.h>
#include <string.h>

#include "lib/qp_pair.h"
#include "lib/unit.h"

#define LEN (300u << 10)

struct ends {
	struct qp_pair p;
	uint8_t *a, *b;
	struct mr *mra, *mrb;
};

static void open_ends(struct ends *t, const struct pair_options *o)
{
	pair_open(&t->p, o);
	assert_non_null(t->a = malloc(LEN));
	assert_non_null(t->b = malloc(LEN));
	for (unsigned i = 0; i < LEN; i++) {
		t->a[i] = (uint8_t)(i * 7 + i / 251);
		t->b[i] = (uint8_t)(i * 11 + i / 239);
	}
	t->mra = end_reg(&t->p.a, t->a, LEN, REMOTE_ALL);
	t->mrb = end_reg(&t->p.b, t->b, LEN, REMOTE_ALL);
}

static void close_ends(struct ends *t)
{
	assert_false(qp_is_failed(t->p.a.qp));
	assert_false(qp_is_failed(t->p.b.qp));
	assert_true(qp_is_idle(t->p.a.qp) && qp_is_idle(t->p.b.qp));
	expect_no_wc(&t->p.a.scq);
	expect_no_wc(&t->p.b.scq);
	end_dereg(t->mra);
	end_dereg(t->mrb);
	pair_close(&t->p);
	free(t->a);
	free(t->b);
}

/* Every kind of operation in both directions at once; then all of it must be true. */
static void exchange(const struct pair_options *o, size_t chunk, size_t len)
{
	struct ends t;
	struct qp_end *a = &t.p.a, *b = &t.p.b;

	open_ends(&t, o);
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
	assert_memory_equal(t.b + len, t.a, len);
	assert_memory_equal(t.a + len, t.b, len);
	assert_memory_equal(t.a + 2 * len, t.b + 3 * len, len);
	assert_memory_equal(t.b + 2 * len, t.a + 3 * len, len);
	assert_memory_equal(t.b + 5 * len, t.a + 4 * len, len);
	assert_memory_equal(t.a + 5 * len, t.b + 4 * len, len);
	for (uint64_t id = 1; id <= (o->stream.consent ? 8 : 6); id++)
		expect_wc(id % 2 ? &a->scq : &b->scq, id, IBV_WC_SUCCESS);
	expect_wc(&a->rcq, 90, IBV_WC_SUCCESS);
	expect_wc(&b->rcq, 91, IBV_WC_SUCCESS);
	assert_int_equal(b->wb_count, 1); /* the Flush, or the Read of a peer that knows no Flush */
	close_ends(&t);
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
	struct ends t;

	open_ends(&t, &o);
	assert_int_equal(end_recv(&t.p.b, 9, NULL, 0, 0), 0);
	assert_int_equal(end_write(&t.p.a, 1, NULL, 0, 0, NULL, 0), 0);
	assert_int_equal(end_read(&t.p.a, 2, NULL, 0, 0, NULL, 0), 0);
	assert_int_equal(end_send(&t.p.a, 3, NULL, 0, 0), 0);
	assert_int_equal(end_flush(&t.p.a, 4, t.mrb, 0, 0, true), 0);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t.p.a.scq, id, IBV_WC_SUCCESS);
	expect_wc(&t.p.b.rcq, 9, IBV_WC_SUCCESS);
	assert_int_equal(t.p.b.wb_count, 0);
	close_ends(&t);
}

static void completions_tell_what_happened(void **state)
{
	struct pair_options o = pair_defaults();
	struct ends t;
	struct ibv_wc wc;

	open_ends(&t, &o);
	assert_int_equal(end_recv(&t.p.b, 9, t.mrb, 0, 100), 0);
	assert_int_equal(end_send(&t.p.a, 1, t.mra, 0, 60), 0);
	assert_int_equal(end_read(&t.p.a, 2, t.mra, 0, 70, t.mrb, 0), 0);
	assert_int_equal(end_flush(&t.p.a, 3, t.mrb, 0, 80, false), 0);
	pair_run(&t.p);
	wc = next_wc(&t.p.a.scq);
	assert_true(wc.opcode == IBV_WC_SEND && wc.qp_num == 1);
	wc = next_wc(&t.p.a.scq);
	assert_true(wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 70);
	wc = next_wc(&t.p.a.scq);
	assert_int_equal(wc.opcode, 8);
	wc = next_wc(&t.p.b.rcq);
	assert_true(wc.opcode == IBV_WC_RECV && wc.byte_len == 60 && wc.qp_num == 2);
	close_ends(&t);
}

static void segments_are_cut_at_aligned_target_offsets(void **state)
{
	struct pair_options o = pair_defaults();
	struct ends t;
	struct ddp_hdr hdr;

	o.stream.consent = o.stream.peer_flushes = false;
	o.stream.mss = 1001;
	open_ends(&t, &o);
	assert_int_equal(end_write(&t.p.a, 1, t.mra, 3, 5000, t.mrb, 13), 0);
	end_send_all(&t.p.a);
	for (size_t at = 0; at < t.p.a.wire_len;) {
		const uint8_t *p = t.p.a.wire + at;
		size_t ulpdu = (size_t)p[0] << 8 | p[1];

		assert_int_equal(ddp_decode(p + 2, ulpdu, &hdr), DDP_TAGGED_HDR);
		assert_true(mpa_fpdu_len(ulpdu) <= 1001);
		if (at > 0)
			assert_int_equal(hdr.to % 8, 0);
		at += mpa_fpdu_len(ulpdu);
		assert_int_equal(hdr.last, at == t.p.a.wire_len);
	}
	pair_run(&t.p);
	assert_memory_equal(t.b + 13, t.a + 3, 5000);
	expect_wc(&t.p.a.scq, 1, IBV_WC_SUCCESS);
	close_ends(&t);
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
