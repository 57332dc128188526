/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ORIGIN and LEAVE messages that a peer sends out of turn; unit.stream_origin tests the other
 * cases.
 */
#include <stdlib.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_origin.h"
#include "softrnic/proto/rdmap.h"

#define LEN 4096

static struct bench t;

/* Both ends have the peer's HELLO, and B waits for A's ORIGIN. */
static void open_bench(void)
{
	struct pair_options o = pair_defaults();

	o.stream.takes_part = true;
	bench_open(&t, &o, LEN);
	assert_true(qp_takes_part(t.a->qp) && qp_takes_part(t.b->qp));
}

static void send_origin(struct qp_end *to, uint32_t msn, bool asks)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, msn, 0, true);
	struct ext_origin o = {.asks = asks, .serial = 3, .n = asks, .ranges = {{1, 1}}};
	uint8_t bytes[EXT_ORIGIN_LEN + EXT_ORIGIN_RANGE_LEN];

	end_inject_fpdu(to, &hdr, bytes, (size_t)ext_origin_encode(bytes, sizeof(bytes), &o));
}

static void ask(void)
{
	struct ext_origin o = {.asks = true, .serial = 3, .n = 1, .ranges = {{1, 1}}};

	assert_int_equal(qp_origin_post(t.a->qp, &o), 0);
}

static void send_answer(struct qp_end *to)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_RESP, DDP_QN_CONTROL, 2, 0, true);
	struct ext_answer cut = {.word = {.kind = EXT_ORIGIN, .arg = EXT_ORIGIN_CUT}};
	uint8_t bytes[EXT_ANSWER_LEN];

	end_inject_fpdu(to, &hdr, bytes, (size_t)ext_answer_encode(bytes, sizeof(bytes), &cut));
}

static void send_leave(struct qp_end *to)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 2, 0, true);
	const uint8_t bytes[EXT_LEAVE_LEN] = {EXT_LEAVE};

	end_inject_fpdu(to, &hdr, bytes, sizeof(bytes));
}

static void answer(void)
{
	free(qp_origin_take(t.b->qp));
	qp_origin_answer(t.b->qp, EXT_ORIGIN_CUT, 0);
	qp_rx_resume(t.b->qp);
}

static void a_question_after_the_answer_is_taken(void **state)
{
	open_bench();
	send_origin(t.b, 2, true);
	answer();
	end_send_all(t.b);
	send_origin(t.b, 3, true);
	assert_true(qp_origin_is_here(t.b->qp));
	answer();
	assert_false(qp_is_failed(t.b->qp));
	bench_close(&t);
}

/* The peer asks twice: the second question would get the answer to the first one. */
static void a_question_before_the_answer_is_sent_is_refused(void **state)
{
	open_bench();
	send_origin(t.b, 2, true);
	answer();
	send_origin(t.b, 3, true);
	expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);
}

/* The answer is out of turn: the next ORIGIN would replace the ORIGIN that waits to be sent. */
static void an_answer_before_the_question_is_sent_is_refused(void **state)
{
	struct ext_answer got;

	open_bench();
	ask();
	send_answer(t.a);
	expect_terminated(t.a, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);

	open_bench();
	ask();
	end_send_all(t.a);
	send_answer(t.a);
	assert_true(qp_origin_answered(t.a->qp, &got));
	assert_int_equal(got.word.arg, EXT_ORIGIN_CUT);
	bench_close(&t);
}

static void an_initiator_does_not_leave(void **state)
{
	open_bench();
	send_leave(t.b);
	expect_terminated(t.b, true, TERM_RDMAP_UNEXPECTED_OPCODE);
	bench_close(&t);

	open_bench();
	qp_origin_accept(t.b->qp);
	send_leave(t.b);
	expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);
}

/* The responder's user disconnects before the initiator has named itself. */
static void a_responder_may_leave_before_the_origin(void **state)
{
	open_bench();
	send_leave(t.a);
	assert_true(qp_peer_leaves(t.a->qp));
	assert_false(qp_is_failed(t.a->qp));
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_after_the_answer_is_taken),
		cmocka_unit_test(a_question_before_the_answer_is_sent_is_refused),
		cmocka_unit_test(an_answer_before_the_question_is_sent_is_refused),
		cmocka_unit_test(an_initiator_does_not_leave),
		cmocka_unit_test(a_responder_may_leave_before_the_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
