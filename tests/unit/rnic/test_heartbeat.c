/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heartbeat messages: they are sent on request, answered once, and sent between two other messages,
 * whatever else delays the QP.
 */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/rdmap.h"

#define LEN (1u << 20)

static struct bench t;

static void open_bench(void)
{
	struct pair_options o = pair_defaults();

	bench_open(&t, &o, LEN);
}

static uint64_t count_of_pings(const struct qp_end *e)
{
	return qp_counters(e->qp)->pings_in;
}

static uint64_t count_of_pongs(const struct qp_end *e)
{
	return qp_counters(e->qp)->pongs_in;
}

static void a_ping_is_answered_and_tells_the_limit(void **state)
{
	open_bench();
	assert_int_equal(qp_peer_limit_ms(t.b->qp), 0);
	qp_ping(t.a->qp, 1500);
	pair_run(&t.p);
	assert_int_equal(qp_peer_limit_ms(t.b->qp), 1500);
	assert_int_equal(count_of_pings(t.b), 1);
	assert_int_equal(count_of_pongs(t.a), 1);
	assert_int_equal(count_of_pings(t.a) + count_of_pongs(t.b), 0);
	expect_no_wc(&t.a->scq);
	expect_no_wc(&t.b->rcq);
	bench_close(&t);
}

#define FIRST 2u /* MSN; the HELLO was the first */

static void inject(struct qp_end *to, enum rdmap_opcode op, uint32_t msn, uint8_t kind,
		   uint64_t token, size_t len)
{
	struct ext_heartbeat msg = {.word = {.kind = kind}, .token = token};
	struct ddp_hdr hdr = hdr_untagged(op, DDP_QN_CONTROL, msn, 0, true);
	uint8_t bytes[EXT_MAX] = {0};

	ext_heartbeat_encode(bytes, sizeof(bytes), &msg);
	end_inject_fpdu(to, &hdr, bytes, len);
}

static void a_pong_returns_the_token(void **state)
{
	const uint8_t *ulpdu;
	struct ext_heartbeat pong;

	open_bench();
	inject(t.b, RDMAP_EXT_REQ, FIRST, EXT_HEARTBEAT, 0x0102030405060708, EXT_HEARTBEAT_LEN);
	end_send_all(t.b);
	assert_true(t.b->wire_len >= 2 + DDP_UNTAGGED_HDR + EXT_HEARTBEAT_LEN);
	ulpdu = t.b->wire + MPA_LENGTH_LEN;
	assert_int_equal(ulpdu[1], 0x4d);
	assert_int_equal(ext_heartbeat_decode(ulpdu + DDP_UNTAGGED_HDR, EXT_HEARTBEAT_LEN, &pong),
			 EXT_HEARTBEAT_LEN);
	assert_int_equal(pong.word.kind, EXT_HEARTBEAT);
	assert_true(pong.token == 0x0102030405060708);
	bench_close(&t);
}

static void a_flood_of_pings_owes_one_answer(void **state)
{
	open_bench();
	for (uint32_t n = 0; n < 500; n++)
		inject(t.b, RDMAP_EXT_REQ, FIRST + n, EXT_HEARTBEAT, 0, EXT_HEARTBEAT_LEN);
	pair_run(&t.p);
	assert_int_equal(count_of_pings(t.b), 500);
	assert_int_equal(count_of_pongs(t.a), 1);
	bench_close(&t);
}

/* The messages have a kind of another queue, are a response without a request, or are too long. */
static void what_later_versions_say_is_ignored(void **state)
{
	static const struct {
		enum rdmap_opcode op;
		uint8_t kind;
		size_t len;
	} cases[] = {
		{RDMAP_EXT_REQ, 77, EXT_WORD_LEN},
		{RDMAP_EXT_REQ, 255, EXT_MAX},
		{RDMAP_EXT_RESP, 77, EXT_MAX},
		{RDMAP_EXT_REQ, EXT_FLUSH, 24},
		{RDMAP_EXT_REQ, 0, 100},
		{RDMAP_EXT_RESP, EXT_HELLO, 40},
		{RDMAP_EXT_RESP, EXT_HEARTBEAT, EXT_MAX},
	};

	open_bench();
	for (uint32_t i = 0; i < ARRAY_LEN(cases); i++)
		inject(t.b, cases[i].op, FIRST + i, cases[i].kind, 0, cases[i].len);
	end_send_all(t.b);
	assert_int_equal(t.b->wire_len, 0);
	assert_false(qp_is_failed(t.b->qp));
	assert_int_equal(count_of_pongs(t.b), 1);
	/* the connection still works */
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_longer_ping_is_a_ping(void **state)
{
	open_bench();
	inject(t.b, RDMAP_EXT_REQ, FIRST, EXT_HEARTBEAT, 5, EXT_MAX);
	pair_run(&t.p);
	assert_int_equal(count_of_pings(t.b), 1);
	assert_int_equal(count_of_pongs(t.a), 1);
	bench_close(&t);
}

/* The FPDUs of a message are never interleaved with those of another message. */
static void a_ping_goes_between_two_messages(void **state)
{
	const struct qp_counters *b;
	int n;

	open_bench();
	b = qp_counters(t.b->qp);
	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(end_write(t.a, id, t.mra, 0, LEN, t.mrb, 0), 0);
	end_gather(t.a, 4096, &n);
	qp_ping(t.a->qp, 0);
	while (count_of_pings(t.b) == 0) {
		size_t moved = end_gather(t.a, 4096, &n) + end_take(t.b, 4096);

		assert_true(moved > 0);
	}
	assert_in_range(b->writes_in, 1, 3);
	/* The receiver got no bytes of the next message except those in the same piece. */
	assert_in_range(b->rx_copied_bytes + b->rx_direct_bytes - b->writes_in * LEN, 0, 4096);
	pair_run(&t.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	assert_memory_equal(t.ma, t.mb, LEN);
	bench_close(&t);
}

static void a_write_back_does_not_hold_up_the_answer(void **state)
{
	open_bench();
	t.b->wb_hold = true;
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 64, true), 0);
	pair_run(&t.p);
	assert_true(t.b->wb_running);
	qp_ping(t.a->qp, 0);
	pair_run(&t.p);
	assert_int_equal(count_of_pongs(t.a), 1);
	expect_no_wc(&t.a->scq);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void parked_sends_do_not_hold_up_the_answer(void **state)
{
	open_bench();
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 64), 0);
	/* the Read waits behind the message */
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 64, t.mrb, 0), 0);
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.b->qp)->parked_sends, 1);
	qp_ping(t.a->qp, 0);
	pair_run(&t.p);
	assert_int_equal(count_of_pongs(t.a), 1);
	bench_close(&t);
}

static void who_does_not_read_can_still_speak(void **state)
{
	open_bench();
	for (uint64_t id = 0; !qp_rx_is_stalled(t.b->qp); id++) {
		assert_true(id < 1000);
		assert_int_equal(end_send(t.a, id, t.mra, 0, 64), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, id, IBV_WC_SUCCESS);
	}
	qp_ping(t.a->qp, 0);
	pair_run(&t.p);
	assert_int_equal(count_of_pings(t.b), 0);
	assert_int_equal(count_of_pongs(t.a), 0);
	qp_pong(t.b->qp);
	pair_run(&t.p);
	assert_int_equal(count_of_pongs(t.a), 1);
	bench_close(&t);
}

static void a_peer_without_consent_is_sent_nothing(void **state)
{
	struct pair_options o = pair_defaults();

	o.stream.consent = false;
	bench_open(&t, &o, LEN);
	qp_ping(t.a->qp, 0);
	qp_pong(t.a->qp);
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, 0);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ping_is_answered_and_tells_the_limit),
		cmocka_unit_test(a_pong_returns_the_token),
		cmocka_unit_test(a_flood_of_pings_owes_one_answer),
		cmocka_unit_test(what_later_versions_say_is_ignored),
		cmocka_unit_test(a_longer_ping_is_a_ping),
		cmocka_unit_test(a_ping_goes_between_two_messages),
		cmocka_unit_test(a_write_back_does_not_hold_up_the_answer),
		cmocka_unit_test(parked_sends_do_not_hold_up_the_answer),
		cmocka_unit_test(who_does_not_read_can_still_speak),
		cmocka_unit_test(a_peer_without_consent_is_sent_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
