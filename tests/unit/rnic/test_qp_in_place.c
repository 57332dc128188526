/* SPDX-License-Identifier: BSD-3-Clause */
/* FPDUs that are parsed in place, in memory to which the peer may write meanwhile. */
#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN (1u << 20)

static void open_in_place(struct bench *t, const struct pair_options *o)
{
	bench_open(t, o, LEN);
	t->a->in_place = t->b->in_place = true;
}

/* Pass all bytes of `a` to `b` in one piece. `b` takes them without its buffer. */
static void take_all(struct bench *t)
{
	end_send_all(t->a);
	assert_true(t->a->wire_len > 0);
	end_take_in_place(t->b, t->a->wire_len);
	assert_int_equal(t->a->wire_len, 0);
	assert_non_null(t->b->rxbuf);
}

static void writes_of_any_length_and_a_flush(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	open_in_place(&t, &o);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 64, LEN - 64, t.mrb, 64), 0);
	assert_int_equal(end_flush(t.a, 3, t.mrb, 0, LEN, false), 0);
	take_all(&t);
	assert_memory_equal(t.mb, t.ma, LEN);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* The bytes are cut anywhere. An FPDU that is cut passes through the buffer, and the next FPDU does
 * not. */
static void cuts_anywhere(void **state)
{
	static const size_t chunks[] = {1, 2, 3, 19, 20, 21, 90, 91, 4096, 5000, 65536, 70000};

	for (unsigned i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct pair_options o = pair_defaults();
		size_t len = chunks[i] < 100 ? 20000 : LEN;
		struct bench t;

		open_in_place(&t, &o);
		assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
		assert_int_equal(end_recv(t.b, 2, t.mrb, len / 2, len / 2), 0);
		assert_int_equal(end_write(t.a, 3, t.mra, 64, len / 2 - 64, t.mrb, 64), 0);
		assert_int_equal(end_send(t.a, 4, t.mra, len / 2, len / 2), 0);
		assert_int_equal(end_read(t.a, 5, t.mra, 0, len, t.mrb, 0), 0);
		pair_run_chunked(&t.p, chunks[i]);
		assert_memory_equal(t.mb, t.ma, len);
		expect_wc(&t.b->rcq, 2, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 4, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, 5, IBV_WC_SUCCESS);
		bench_close(&t);
	}
}

static void behind_an_fpdu_that_was_cut_nothing_stays_in_the_buffer(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	open_in_place(&t, &o);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 64, 64, t.mrb, 64), 0);
	end_send_all(t.a);
	/* the last bytes of the first FPDU are missing */
	assert_int_equal(end_take_in_place(t.b, 50), 0);
	assert_int_equal(end_take(t.b, 2), 2);
	while (!qp_rx_is_in_place(t.b->qp))
		assert_true(end_take(t.b, SIZE_MAX) > 0);
	assert_memory_equal(t.mb, t.ma, 64);
	take_all(&t);
	assert_memory_equal(t.mb, t.ma, 128);
	bench_close(&t);
}

/* Without a receive the bytes stay in the link. */
static void a_stall_leaves_the_bytes_in_the_link(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	size_t rest;

	o.depth = 512;
	o.cq_size = 1024;
	open_in_place(&t, &o);
	for (uint64_t i = 0; i < 300; i++)
		assert_int_equal(end_send(t.a, i, t.mra, 0, 1400), 0);
	end_send_all(t.a);
	end_take_in_place(t.b, t.a->wire_len);
	rest = t.a->wire_len;
	assert_true(rest > 0 && qp_rx_is_stalled(t.b->qp));
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(end_recv(t.b, i, t.mrb, 0, 1400), 0);
		qp_rx_resume(t.b->qp);
	}
	assert_false(qp_rx_is_stalled(t.b->qp));
	take_all(&t);
	for (uint64_t i = 0; i < 300; i++)
		expect_wc(&t.b->rcq, i, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void with_crc_nothing_is_parsed_in_place(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.crc = true;
	open_in_place(&t, &o);
	assert_false(qp_rx_is_in_place(t.b->qp));
	assert_int_equal(end_write(t.a, 1, t.mra, 0, LEN, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_memory_equal(t.mb, t.ma, LEN);
	bench_close(&t);
}

static void a_fault_takes_all_of_the_bytes(void **state)
{
	struct ddp_hdr hdr = hdr_tagged(0, 0x12345678, 0, true);
	struct pair_options o = pair_defaults();
	uint8_t wire[256] = {0}, payload[64] = {0};
	struct bench t;

	open_in_place(&t, &o);
	fpdu_make(wire, &hdr, payload, sizeof(payload), false);
	assert_int_equal(qp_rx_in_place(t.b->qp, wire, sizeof(wire)), sizeof(wire));
	pair_run(&t.p);
	expect_terminated(t.b, true, TERM_DDP_INVALID_STAG);
	assert_false(qp_rx_is_in_place(t.b->qp));
	bench_close(&t);
}

/* --- messages that are written straight into the link's memory ------------------------------- */

#define PUT_FEW 200u /* bytes of link memory, enough for one or two messages */

static void open_put(struct bench *t, size_t room)
{
	struct pair_options o = pair_defaults();

	open_in_place(t, &o);
	t->a->put_room = t->b->put_room = room;
}

static void short_messages_need_no_send_buffer(void **state)
{
	struct bench t;

	open_put(&t, 4096);
	assert_int_equal(end_recv(t.b, 9, t.mrb, 256, 64), 0);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 256, 64), 0);
	assert_int_equal(end_flush(t.a, 3, t.mrb, 0, 64, false), 0);
	pair_run(&t.p);
	assert_memory_equal(t.mb, t.ma, 64);
	assert_memory_equal((char *)t.mb + 256, (char *)t.ma + 256, 64);
	expect_wc(&t.b->rcq, 9, IBV_WC_SUCCESS);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	assert_int_equal(qp_counters(t.a->qp)->tx_fpdus, 1 + 3); /* this includes the HELLO */
	assert_int_equal(qp_counters(t.a->qp)->tx_bytes, qp_counters(t.b->qp)->rx_bytes);
	bench_close(&t);
}

/* If the link's memory is too small or the message is long, the rest goes through the buffer. */
static void what_does_not_fit_follows_in_order(void **state)
{
	static const size_t rooms[] = {1, 24, 50, 91, PUT_FEW, 4096};

	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct bench t;

		open_put(&t, rooms[i]);
		assert_int_equal(end_recv(t.b, 9, t.mrb, 100000, 70000), 0);
		for (uint64_t id = 0; id < 8; id++)
			assert_int_equal(end_write(t.a, id, t.mra, id * 64, 64, t.mrb, id * 64), 0);
		assert_int_equal(end_send(t.a, 8, t.mra, 100000, 70000), 0);
		assert_int_equal(end_read(t.a, 9, t.mra, 512, 64, t.mrb, 512), 0);
		assert_int_equal(end_flush(t.a, 10, t.mrb, 0, 512, false), 0);
		pair_run(&t.p);
		assert_memory_equal(t.mb, t.ma, 512 + 64);
		assert_memory_equal((char *)t.mb + 100000, (char *)t.ma + 100000, 70000);
		expect_wc(&t.b->rcq, 9, IBV_WC_SUCCESS);
		for (uint64_t id = 0; id <= 10; id++)
			expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
		bench_close(&t);
	}
}

/* Messages that were written before the error are sent, and complete. */
static void an_error_ends_only_what_is_behind_it(void **state)
{
	struct bench t;
	struct mr *gone;

	open_put(&t, 4096);
	gone = end_reg(t.a, t.ma, 64, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
	assert_int_equal(end_write(t.a, 2, gone, 0, 64, t.mrb, 64), 0);
	end_dereg(gone);
	pair_run(&t.p);
	assert_memory_equal(t.mb, t.ma, 64);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_LOC_PROT_ERR);
	bench_close(&t);
}

static void with_crc_nothing_is_put(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	uint8_t to[256];

	o.stream.crc = true;
	open_in_place(&t, &o);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 64, t.mrb, 0), 0);
	assert_int_equal(qp_tx_in_place(t.a->qp, to, sizeof(to)), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* --- completions that go straight to the polling thread -------------------------------------- */

/* A completion is not given directly to the polling thread if earlier completions are queued, or if
 * an event must be raised. */
static void a_taker_gets_completions_in_order(void **state)
{
	struct ibv_wc wc[2];
	struct cq_taker taker;
	struct bench t;

	open_put(&t, 4096);
	taker = (struct cq_taker){.cq = &t.a->scq, .wc = wc, .room = 2};
	qp_set_taker(t.a->qp, &taker);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(end_write(t.a, id, t.mra, 0, 64, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(taker.got, 2); /* the array had no slot for the third completion */
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[1].wr_id, 2);
	taker.got = 0;
	assert_int_equal(end_write(t.a, 4, t.mra, 0, 64, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(taker.got, 0);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 4, IBV_WC_SUCCESS);
	cq_arm(&t.a->scq, false);
	assert_int_equal(end_write(t.a, 5, t.mra, 0, 64, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(taker.got, 0);
	expect_wc(&t.a->scq, 5, IBV_WC_SUCCESS);
	assert_int_equal(end_write(t.a, 6, t.mra, 0, 64, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(taker.got, 1); /* an earlier completion has raised the event */
	qp_set_taker(t.a->qp, NULL);
	bench_close(&t);
}

/* Completions that do not fit the array follow in the queue. */
static void a_taker_gets_what_a_failed_qp_flushes(void **state)
{
	struct ibv_wc wc[2];
	struct cq_taker taker;
	struct bench t;

	open_put(&t, 4096);
	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(end_write(t.a, id, t.mra, 0, 64, t.mrb, 0), 0);
	taker = (struct cq_taker){.cq = &t.a->scq, .wc = wc, .room = 2};
	qp_set_taker(t.a->qp, &taker);
	qp_fail(t.a->qp, IBV_WC_WR_FLUSH_ERR);
	qp_set_taker(t.a->qp, NULL);
	assert_int_equal(taker.got, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].qp_num, qp_ibv(t.a->qp)->qp_num);
	}
	expect_wc(&t.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.a->scq, 4, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_of_any_length_and_a_flush),
		cmocka_unit_test(cuts_anywhere),
		cmocka_unit_test(behind_an_fpdu_that_was_cut_nothing_stays_in_the_buffer),
		cmocka_unit_test(a_stall_leaves_the_bytes_in_the_link),
		cmocka_unit_test(with_crc_nothing_is_parsed_in_place),
		cmocka_unit_test(a_fault_takes_all_of_the_bytes),
		cmocka_unit_test(short_messages_need_no_send_buffer),
		cmocka_unit_test(what_does_not_fit_follows_in_order),
		cmocka_unit_test(an_error_ends_only_what_is_behind_it),
		cmocka_unit_test(with_crc_nothing_is_put),
		cmocka_unit_test(a_taker_gets_completions_in_order),
		cmocka_unit_test(a_taker_gets_what_a_failed_qp_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
