/* SPDX-License-Identifier: BSD-3-Clause */
/* The heartbeat's messages: asked, answered once, between messages, whatever else holds the QP up.
 */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
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

static void a_pong_returns_the_token(void **state)
{
	struct rdmap_engine ping = {.kind = RDMAP_ENGINE_PING, .token = 0x0102030405060708};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_ENGINE, DDP_QN_ENGINE, 1, 0, true);
	uint8_t bytes[RDMAP_ENGINE_LEN];
	struct rdmap_engine pong;

	open_bench();
	rdmap_engine_encode(bytes, sizeof(bytes), &ping);
	end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
	end_send_all(t.b);
	assert_true(t.b->wire_len >= 2 + DDP_UNTAGGED_HDR + RDMAP_ENGINE_LEN);
	rdmap_engine_decode(t.b->wire + 2 + DDP_UNTAGGED_HDR, RDMAP_ENGINE_LEN, &pong);
	assert_int_equal(pong.kind, RDMAP_ENGINE_PONG);
	assert_true(pong.token == ping.token);
	bench_close(&t);
}

static void a_flood_of_pings_owes_one_answer(void **state)
{
	struct rdmap_engine ping = {.kind = RDMAP_ENGINE_PING};
	uint8_t bytes[RDMAP_ENGINE_LEN];

	open_bench();
	rdmap_engine_encode(bytes, sizeof(bytes), &ping);
	for (uint32_t msn = 1; msn <= 500; msn++) {
		struct ddp_hdr hdr = hdr_untagged(RDMAP_ENGINE, DDP_QN_ENGINE, msn, 0, true);

		end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
	}
	pair_run(&t.p);
	assert_int_equal(count_of_pings(t.b), 500);
	assert_int_equal(count_of_pongs(t.a), 1);
	bench_close(&t);
}

static void unknown_kinds_are_ignored(void **state)
{
	struct rdmap_engine msg = {.kind = 77};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_ENGINE, DDP_QN_ENGINE, 1, 0, true);
	uint8_t bytes[RDMAP_ENGINE_MAX] = {0};

	open_bench();
	rdmap_engine_encode(bytes, sizeof(bytes), &msg);
	end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
	end_send_all(t.b);
	assert_int_equal(t.b->wire_len, 0);
	assert_false(qp_is_failed(t.b->qp));
	bench_close(&t);
}

/* FPDUs of a message are never interleaved with those of another. */
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
	/* Nothing of the next one, but what came in the same piece. */
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
	assert_int_equal(end_read(t.a, 2, t.mra, 0, 64, t.mrb, 0), 0); /* waits behind it */
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
		cmocka_unit_test(unknown_kinds_are_ignored),
		cmocka_unit_test(a_ping_goes_between_two_messages),
		cmocka_unit_test(a_write_back_does_not_hold_up_the_answer),
		cmocka_unit_test(parked_sends_do_not_hold_up_the_answer),
		cmocka_unit_test(who_does_not_read_can_still_speak),
		cmocka_unit_test(a_peer_without_consent_is_sent_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
