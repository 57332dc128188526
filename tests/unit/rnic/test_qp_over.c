/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer has given up its connection: of the bytes that it sent, only a Terminate counts. */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/rnic.h"

#define LEN   65536
#define LARGE 20000
#define ROOM  (LARGE + 1024)

/* `a` waits for the answer to a Read, and gets the bytes of the test instead. */
struct over {
	struct bench t;
	uint8_t before[LEN]; /* former content of a's memory */
	uint8_t bytes[ROOM];
	size_t len;
};

static void over_open(struct over *o, bool crc)
{
	struct pair_options options = pair_defaults();

	options.stream.crc = crc;
	bench_open(&o->t, &options, LEN);
	o->len = 0;
	assert_int_equal(end_read(o->t.a, 1, o->t.mra, 0, 8, o->t.mrb, 0), 0);
	end_send_all(o->t.a);
	memcpy(o->before, o->t.ma, LEN);
}

static void over_close(struct over *o)
{
	bench_close(&o->t);
}

static void add_write(struct over *o, size_t len)
{
	static const uint8_t payload[LARGE] = {0xab, 0xcd};
	struct mr *mr = o->t.mra;
	struct ddp_hdr hdr = hdr_tagged(RDMAP_WRITE, mr->ibv.rkey, mr->iova + 16, true);

	o->len += fpdu_make(o->bytes + o->len, &hdr, payload, len, true);
}

static void add_terminate(struct over *o, const struct ddp_hdr *hdr)
{
	static const uint8_t bytes[] = {0x11, 0, 0, 0}; /* Terminate: layer 1, type 1, code 0 */

	o->len += fpdu_make(o->bytes + o->len, hdr, bytes, sizeof(bytes), true);
}

static void add_right_terminate(struct over *o)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, 2, 1, 0, true);

	add_terminate(o, &hdr);
}

static void inject(struct over *o, size_t from, size_t to, size_t chunk)
{
	for (; from < to; from += chunk)
		end_inject(o->t.a, o->bytes + from, chunk < to - from ? chunk : to - from);
}

static void expect_the_terminate(struct over *o)
{
	struct ibv_wc wc;

	expect_terminated(o->t.a, false, TERM_DDP_INVALID_STAG);
	wc = next_wc(&o->t.a->scq);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.vendor_err,
			 vext_vendor_err(VEXT_REASON_TERMINATE_IN, TERM_DDP_INVALID_STAG));
	assert_memory_equal(o->t.ma, o->before, LEN);
	assert_int_equal(qp_counters(o->t.a->qp)->writes_in, 0);
}

static void writes_before_a_terminate_are_passed_over(void **state)
{
	static const size_t lens[] = {0, 8, LARGE}, chunks[] = {1, 7, 1000, ROOM};
	static struct over o;

	for (size_t i = 0; i < 2 * ARRAY_LEN(lens) * ARRAY_LEN(chunks); i++) {
		over_open(&o, i % 2);
		add_write(&o, lens[i / 2 % ARRAY_LEN(lens)]);
		add_write(&o, 8);
		add_right_terminate(&o);
		qp_rx_give_up(o.t.a->qp);
		inject(&o, 0, o.len, chunks[i / 2 / ARRAY_LEN(lens)]);
		expect_the_terminate(&o);
		over_close(&o);
	}
}

/* The first bytes of the Write were placed. The rest and all later bytes are not placed. */
static void a_begun_write_is_not_finished(void **state)
{
	static const size_t begun[] = {30, 5000, LARGE}, chunks[] = {1, 999, ROOM};
	static struct over o;

	for (size_t i = 0; i < ARRAY_LEN(begun) * ARRAY_LEN(chunks); i++) {
		size_t n = begun[i / ARRAY_LEN(chunks)];

		over_open(&o, false);
		add_write(&o, LARGE);
		add_right_terminate(&o);
		inject(&o, 0, n, ROOM);
		memcpy(o.before, o.t.ma, LEN);
		qp_rx_give_up(o.t.a->qp);
		inject(&o, n, o.len, chunks[i % ARRAY_LEN(chunks)]);
		expect_the_terminate(&o);
		over_close(&o);
	}
}

/* The peer's end is noticed while the bytes are being parsed. */
static void a_terminate_in_the_same_bytes_counts(void **state)
{
	static struct over o;
	atomic_uint word;

	atomic_init(&word, QP_GIVEN_UP);
	over_open(&o, true);
	add_write(&o, 8);
	add_right_terminate(&o);
	qp_watch_given_up(o.t.a->qp, &word);
	inject(&o, 0, o.len, ROOM);
	expect_the_terminate(&o);
	qp_watch_given_up(o.t.a->qp, NULL);
	over_close(&o);
}

static void expect_nothing(struct over *o)
{
	inject(o, 0, o->len, ROOM);
	assert_false(qp_is_failed(o->t.a->qp));
	expect_no_wc(&o->t.a->scq);
	assert_int_equal(o->t.a->asyncs, 0);
	assert_memory_equal(o->t.ma, o->before, LEN);
	qp_fail(o->t.a->qp, IBV_WC_WR_FLUSH_ERR); /* the owner calls this after the last byte */
	expect_wc(&o->t.a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	over_close(o);
}

static void what_is_no_right_terminate_does_not_count(void **state)
{
	const struct ddp_hdr wrong[] = {
		hdr_untagged(RDMAP_TERMINATE, 2, 2, 0, true),
		hdr_untagged(RDMAP_TERMINATE, 2, 1, 4, true),
		hdr_untagged(RDMAP_TERMINATE, 0, 1, 0, true),
		hdr_untagged(RDMAP_TERMINATE, 9, 1, 0, true),
		hdr_untagged(RDMAP_TERMINATE, 2, 1, 0, false),
		hdr_tagged(RDMAP_TERMINATE, 1, 0, true),
		hdr_untagged(RDMAP_SEND, 0, 1, 0, true),
	};
	static struct over o;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		over_open(&o, false);
		add_terminate(&o, &wrong[i]);
		qp_rx_give_up(o.t.a->qp);
		expect_nothing(&o);
	}
}

static void neither_does_one_with_a_wrong_crc_or_without_its_end(void **state)
{
	static struct over o;

	for (int cut = 0; cut < 2; cut++) {
		over_open(&o, true);
		add_right_terminate(&o);
		if (cut)
			o.len--;
		else
			o.bytes[o.len - 1] ^= 1;
		qp_rx_give_up(o.t.a->qp);
		expect_nothing(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_before_a_terminate_are_passed_over),
		cmocka_unit_test(a_begun_write_is_not_finished),
		cmocka_unit_test(a_terminate_in_the_same_bytes_counts),
		cmocka_unit_test(what_is_no_right_terminate_does_not_count),
		cmocka_unit_test(neither_does_one_with_a_wrong_crc_or_without_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
