/* SPDX-License-Identifier: BSD-3-Clause */
/* Acks: a work request completes only when the peer has placed or delivered its bytes. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/rdmap.h"

#define LEN      (256u << 10)
#define ACK_FPDU 36 /* length of the message, as doc/wire.md lists it */

static struct bench t;

static void open_bench(void)
{
	struct pair_options o = pair_defaults();

	o.acks = true;
	bench_open(&t, &o, LEN);
}

static uint64_t acks_sent(const struct qp_end *e)
{
	return qp_counters(e->qp)->acks_out;
}

static void take_all(struct qp_end *e)
{
	while (end_take(e, SIZE_MAX) > 0)
		;
}

static void a_write_completes_once_it_is_placed_and_acknowledged(void **state)
{
	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	expect_no_wc(&t.a->scq);
	assert_false(qp_is_idle(t.a->qp));
	take_all(t.b);
	assert_memory_equal(t.ma, t.mb, 100);
	assert_false(qp_is_idle(t.b->qp)); /* the QP is idle only after the Ack is sent */
	expect_no_wc(&t.a->scq);
	end_send_all(t.b);
	assert_int_equal(t.b->wire_len, ACK_FPDU);
	take_all(t.a);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_idle(t.a->qp) && qp_is_idle(t.b->qp));
	assert_false(qp_leaves_writes(t.a->qp));
	bench_close(&t);
}

static void a_batch_of_messages_is_acknowledged_once(void **state)
{
	open_bench();
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(end_write(t.a, i, t.mra, 0, 100, t.mrb, 100 * i), 0);
	pair_run(&t.p);
	for (uint64_t i = 0; i < 8; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	assert_int_equal(acks_sent(t.b), 1);
	assert_int_equal(qp_counters(t.a->qp)->acks_in, 1);
	assert_int_equal(acks_sent(t.a), 0); /* Acks are not acknowledged */
	bench_close(&t);
}

/* If only an Ack has to be sent, the owner may delay it until the next message. */
static void an_ack_that_is_all_there_is_to_send_is_known(void **state)
{
	open_bench();
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 100), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 100), 0);
	assert_false(qp_owes_ack_only(t.b->qp));
	end_send_all(t.a);
	take_all(t.b);
	assert_true(qp_owes_ack_only(t.b->qp));
	assert_int_equal(end_recv(t.a, 3, t.mra, 0, 100), 0);
	assert_int_equal(end_send(t.b, 4, t.mrb, 0, 100), 0);
	assert_false(qp_owes_ack_only(t.b->qp));
	end_send_all(t.b);
	take_all(t.a);
	assert_int_equal(acks_sent(t.b), 1);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->rcq, 3, IBV_WC_SUCCESS);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 4, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void no_part_of_a_message_is_acknowledged(void **state)
{
	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 200000, t.mrb, 0), 0);
	end_send_all(t.a);
	while (t.a->wire_len > 1) {
		assert_true(end_take(t.b, t.a->wire_len - 1) > 0);
		assert_int_equal(qp_due(t.b->qp) & QP_DUE_SEND, 0);
	}
	take_all(t.b);
	assert_int_equal(qp_due(t.b->qp) & QP_DUE_SEND, QP_DUE_SEND);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_send_completes_once_a_receive_has_it(void **state)
{
	open_bench();
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 100000), 0);
	pair_run(&t.p);
	expect_no_wc(&t.a->scq);
	assert_int_equal(acks_sent(t.b), 0);
	assert_int_equal(end_recv(t.b, 2, t.mrb, 0, 100000), 0);
	expect_wc(&t.b->rcq, 2, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* A Write may overtake a Send that waits for a receive, but the Ack of the Write must not. */
static void a_send_without_a_receive_holds_up_the_acks_behind_it(void **state)
{
	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 8, 8), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 16, 8, t.mrb, 16), 0);
	assert_int_equal(end_send(t.a, 4, t.mra, 24, 8), 0);
	assert_int_equal(end_write(t.a, 5, t.mra, 32, 8, t.mrb, 32), 0);
	pair_run(&t.p);
	assert_memory_equal(t.ma + 32, t.mb + 32, 8);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	assert_int_equal(end_recv(t.b, 6, t.mrb, 8, 8), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	assert_int_equal(end_recv(t.b, 7, t.mrb, 24, 8), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 4, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 5, IBV_WC_SUCCESS);
	assert_int_equal(acks_sent(t.b), 3);
	bench_close(&t);
}

/* The peer executes a request after all earlier messages, so its answer also acknowledges these
 * messages. */
static void an_answer_completes_what_came_before_its_request(void **state)
{
	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 8, 8, t.mrb, 8), 0);
	assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	take_all(t.b);
	end_send_all(t.b);
	memmove(t.b->wire, t.b->wire + ACK_FPDU, t.b->wire_len -= ACK_FPDU); /* lose the Ack */
	take_all(t.a);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	bench_close(&t);
}

static void a_read_waits_for_the_writes_before_it_in_the_queue(void **state)
{
	open_bench();
	for (uint64_t i = 0; i < 12; i += 3) {
		assert_int_equal(end_write(t.a, i, t.mra, 0, 2000, t.mrb, 0), 0);
		assert_int_equal(end_read(t.a, i + 1, t.mra, 4096, 2000, t.mrb, 0), 0);
		assert_int_equal(end_write(t.a, i + 2, t.mra, 0, 8, t.mrb, 8192), 0);
	}
	pair_run_chunked(&t.p, 100);
	for (uint64_t i = 0; i < 12; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void requests_that_ask_for_no_completion_leave_the_queue_as_well(void **state)
{
	open_bench();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 16; i++)
			assert_int_equal(
				end_post(t.a, IBV_WR_RDMA_WRITE, 1, t.mra, 0, 8, t.mrb, 0, NOSIG),
				0);
		assert_int_equal(end_write(t.a, 2, t.mra, 0, 8, t.mrb, 0), ENOMEM);
		pair_run(&t.p);
	}
	expect_no_wc(&t.a->scq);
	assert_true(qp_is_idle(t.a->qp));
	bench_close(&t);
}

static void both_ways_and_any_split(void **state)
{
	for (size_t chunk = 1; chunk < 200; chunk += 13) {
		open_bench();
		for (uint64_t i = 0; i < 10; i++) {
			assert_int_equal(end_recv(t.b, i, t.mrb, 4096, 300), 0);
			assert_int_equal(end_recv(t.a, i, t.mra, 4096, 300), 0);
			assert_int_equal(end_send(t.a, i, t.mra, 0, 30 * i), 0);
			assert_int_equal(end_send(t.b, i, t.mrb, 0, 30 * i), 0);
		}
		pair_run_chunked(&t.p, chunk);
		for (uint64_t i = 0; i < 10; i++) {
			expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
			expect_wc(&t.b->scq, i, IBV_WC_SUCCESS);
		}
		bench_close(&t);
	}
}

static void straight_into_and_out_of_the_links_memory(void **state)
{
	open_bench();
	t.a->in_place = t.b->in_place = true;
	t.a->put_room = t.b->put_room = 4096;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	expect_no_wc(&t.a->scq);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* --- agreement ---------------------------------------------------------------------------- */

static void an_end_that_alone_asks_for_acks_does_without(void **state)
{
	struct pair_options o = pair_defaults();

	o.only_a_acks = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(qp_peer_hello(t.b->qp)->acks, 1);
	assert_int_equal(qp_peer_hello(t.a->qp)->acks, 0);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	assert_int_equal(end_write(t.b, 2, t.mrb, 0, 100, t.mra, 0), 0);
	end_send_all(t.a);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	end_send_all(t.b);
	expect_wc(&t.b->scq, 2, IBV_WC_SUCCESS);
	pair_run(&t.p);
	assert_int_equal(acks_sent(t.a) + acks_sent(t.b), 0);
	bench_close(&t);
}

/* --- a hostile peer ----------------------------------------------------------------------- */

static void inject_ack(uint32_t msn, uint64_t count)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, msn, 0, true);
	struct ext_ack msg = {.word = {.kind = EXT_ACK}, .count = count};
	uint8_t bytes[EXT_ACK_LEN];

	ext_ack_encode(bytes, sizeof(bytes), &msg);
	end_inject_fpdu(t.a, &hdr, bytes, sizeof(bytes));
}

#define FIRST 2u /* MSN; the HELLO was the first */

static void expect_refused(void)
{
	expect_terminated(t.a, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);
}

static void an_ack_of_more_than_was_sent_is_refused(void **state)
{
	open_bench();
	inject_ack(FIRST, 1);
	expect_refused();

	open_bench();
	inject_ack(FIRST, UINT64_MAX);
	expect_refused();

	open_bench(); /* the request is posted, but nothing of it is sent */
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	inject_ack(FIRST, 1);
	expect_refused();

	open_bench(); /* all bytes of the FPDU but the last are sent */
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_gather(t.a, mpa_fpdu_len(14 + 100) - 1, NULL);
	inject_ack(FIRST, 1);
	expect_refused();

	open_bench(); /* an Ack does not count requests */
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	inject_ack(FIRST, 1);
	expect_refused();

	open_bench();
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	inject_ack(FIRST, 2);
	expect_wc(&t.a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_refused();
}

static void an_ack_that_goes_back_is_refused(void **state)
{
	open_bench();
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(end_write(t.a, i, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	inject_ack(FIRST, 2);
	inject_ack(FIRST + 1, 2); /* a repeated Ack changes nothing */
	expect_wc(&t.a->scq, 0, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	assert_false(qp_is_failed(t.a->qp));
	inject_ack(FIRST + 2, 1);
	expect_refused();
}

static void an_ack_that_was_not_agreed_on_is_refused(void **state)
{
	struct pair_options o = pair_defaults();

	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_send_all(t.a);
	inject_ack(FIRST, 1);
	expect_refused();
}

static int post_imm(uint64_t id)
{
	struct ibv_sge sge = {t.mra->iova, 100, t.mra->ibv.lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = t.mrb->iova;
	wr.wr.rdma.rkey = t.mrb->ibv.rkey;
	return qp_post_send(t.a->qp, &wr, &bad);
}

/* A Write with Immediate is two messages: the Write is placed before the Immediate finds a
 * receive. */
static void both_messages_of_a_write_with_immediate_have_to_be_acknowledged(void **state)
{
	open_bench();
	assert_int_equal(post_imm(1), 0);
	pair_run(&t.p);
	assert_int_equal(acks_sent(t.b), 1);
	assert_memory_equal(t.ma, t.mb, 100);
	expect_no_wc(&t.a->scq);
	assert_int_equal(end_recv(t.b, 2, NULL, 0, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(post_imm(3), 0);
	end_send_all(t.a);
	inject_ack(FIRST + 2, 3); /* b may send a message between the two Acks */
	assert_false(qp_is_failed(t.a->qp));
	expect_no_wc(&t.a->scq);
	inject_ack(FIRST + 3, 5);
	expect_refused();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_completes_once_it_is_placed_and_acknowledged),
		cmocka_unit_test(a_batch_of_messages_is_acknowledged_once),
		cmocka_unit_test(an_ack_that_is_all_there_is_to_send_is_known),
		cmocka_unit_test(no_part_of_a_message_is_acknowledged),
		cmocka_unit_test(a_send_completes_once_a_receive_has_it),
		cmocka_unit_test(a_send_without_a_receive_holds_up_the_acks_behind_it),
		cmocka_unit_test(an_answer_completes_what_came_before_its_request),
		cmocka_unit_test(a_read_waits_for_the_writes_before_it_in_the_queue),
		cmocka_unit_test(requests_that_ask_for_no_completion_leave_the_queue_as_well),
		cmocka_unit_test(both_ways_and_any_split),
		cmocka_unit_test(straight_into_and_out_of_the_links_memory),
		cmocka_unit_test(an_end_that_alone_asks_for_acks_does_without),
		cmocka_unit_test(an_ack_of_more_than_was_sent_is_refused),
		cmocka_unit_test(an_ack_that_goes_back_is_refused),
		cmocka_unit_test(an_ack_that_was_not_agreed_on_is_refused),
		cmocka_unit_test(both_messages_of_a_write_with_immediate_have_to_be_acknowledged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
