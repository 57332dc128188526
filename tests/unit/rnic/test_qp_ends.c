/* SPDX-License-Identifier: BSD-3-Clause */
/* The first FPDU and the last: the RTR message, a server that must not send first, a Terminate, and
 * a failure. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/rnic.h"

#define LEN 65536

static void take_all(struct qp_end *e)
{
	while (end_take(e, SIZE_MAX) > 0)
		;
}

/* --- the first FPDU ----------------------------------------------------------------------- */

static void rtr_goes_first_and_is_not_for_the_user(enum qp_rtr kind, unsigned opcode, size_t len)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.rtr = kind;
	o.hold_b = true;
	o.stream.consent = o.stream.peer_flushes = false;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 100), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 100), 0);
	assert_int_equal(end_read(t.a, 3, t.mra, 300, 100, t.mrb, 300), 0);
	assert_false(qp_is_idle(t.a->qp));
	assert_int_equal(end_gather(t.a, len, NULL), len);
	assert_int_equal(t.a->wire[3], 0x40 | opcode);
	if (t.a->wire[2] & 0x80)
		assert_int_equal(t.a->wire[7], 1); /* hardware accepts this STag */
	pair_run(&t.p);
	assert_true(qp_has_received(t.b->qp));
	expect_wc(&t.b->rcq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 3, IBV_WC_SUCCESS);
	expect_no_wc(&t.a->scq);
	assert_memory_equal(t.mb, t.ma, 100);
	assert_memory_equal(t.ma + 300, t.mb + 300, 100);
	assert_true(qp_is_idle(t.a->qp) && qp_is_idle(t.b->qp));
	bench_close(&t);
}

static void each_kind_of_rtr_is_sent_and_taken(void **state)
{
	rtr_goes_first_and_is_not_for_the_user(QP_RTR_SEND, RDMAP_SEND, 24);
	rtr_goes_first_and_is_not_for_the_user(QP_RTR_WRITE, RDMAP_WRITE, 20);
	rtr_goes_first_and_is_not_for_the_user(QP_RTR_READ, RDMAP_READ_REQ, 52);
}

static void an_rtr_read_counts_against_ord(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.rtr = QP_RTR_READ;
	o.stream.ord = 1;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	assert_int_equal(qp_counters(t.a->qp)->tx_fpdus, 1);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void another_first_fpdu_than_agreed_is_refused(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr send = hdr_untagged(RDMAP_SEND, 0, 1, 0, true);
	struct ddp_hdr write = hdr_tagged(RDMAP_WRITE, 1, 0, true);
	struct bench t;

	o.rtr = QP_RTR_WRITE;
	bench_open(&t, &o, LEN);
	end_inject_fpdu(t.b, &send, NULL, 0);
	expect_terminated(t.b, true, TERM_MPA_NO_RTR);
	bench_close(&t);
	o.rtr = QP_RTR_SEND;
	bench_open(&t, &o, LEN);
	end_inject_fpdu(t.b, &send, "x", 1); /* an RTR message must be empty */
	expect_terminated(t.b, true, TERM_MPA_NO_RTR);
	bench_close(&t);
	bench_open(&t, &o, LEN);
	end_inject_fpdu(t.b, &write, NULL, 0);
	expect_terminated(t.b, true, TERM_MPA_NO_RTR);
	bench_close(&t);
}

static void a_held_responder_is_silent_until_the_peer_spoke(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.hold_b = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.a, 1, t.mra, 0, 100), 0);
	assert_int_equal(end_send(t.b, 2, t.mrb, 0, 100), 0);
	assert_false(qp_tx_needs_buf(t.b->qp));
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.b->qp)->tx_fpdus, 0);
	expect_no_wc(&t.b->scq);
	assert_int_equal(end_write(t.a, 3, NULL, 0, 0, NULL, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->rcq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_held_responder_may_say_why_it_refuses(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr = hdr_untagged(RDMAP_SEND, 0, 5, 0, true);
	struct bench t;

	o.hold_b = true;
	bench_open(&t, &o, LEN);
	/* the FPDU is valid for MPA, and its other content does not matter here */
	end_inject_fpdu(t.b, &hdr, NULL, 0);
	assert_true(qp_is_failed(t.b->qp) && !qp_tx_is_done(t.b->qp));
	assert_int_not_equal(end_gather(t.b, SIZE_MAX, NULL), 0);
	assert_int_equal(qp_counters(t.b->qp)->tx_fpdus, 1);
	bench_close(&t);
}

/* --- the last FPDU ------------------------------------------------------------------------ */

static void terminate_is_the_last_fpdu_and_the_only_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr bad = hdr_untagged(RDMAP_SEND, 0, 7, 0, true);
	struct bench t;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.b, 1, t.mrb, 0, 100, t.mra, 0), 0);
	end_inject_fpdu(t.b, &bad, NULL, 0);
	expect_wc(&t.b->scq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_write(t.b, 2, t.mrb, 0, 100, t.mra, 0), 0);
	expect_wc(&t.b->scq, 2, IBV_WC_WR_FLUSH_ERR);
	/* the Terminate can no longer be sent, so the owner must give up the LLP */
	qp_fail(t.b->qp, IBV_WC_GENERAL_ERR);
	assert_true(qp_tx_is_done(t.b->qp));
	bench_close(&t);
	bench_open(&t, &o, LEN);
	end_inject_fpdu(t.b, &bad, NULL, 0);
	end_send_all(t.b);
	assert_int_equal(qp_counters(t.b->qp)->tx_fpdus, PAIR_HELLO + 1);
	assert_int_equal(t.b->wire[3], 0x47);
	assert_int_equal(end_gather(t.b, SIZE_MAX, NULL), 0);
	bench_close(&t);
}

static void a_received_terminate_names_the_cause(void **state)
{
	static const struct {
		unsigned error;
		enum ibv_wc_status status;
	} cases[] = {{TERM_RDMAP_ACCESS, IBV_WC_REM_ACCESS_ERR},
		     {TERM_DDP_BASE_BOUNDS, IBV_WC_REM_ACCESS_ERR},
		     {TERM_DDP_NO_BUFFER, IBV_WC_REM_INV_REQ_ERR},
		     {TERM_DDP_TOO_LONG, IBV_WC_REM_INV_REQ_ERR},
		     {TERM_RDMAP_UNEXPECTED_OPCODE, IBV_WC_REM_OP_ERR},
		     {TERM_MPA_CRC, IBV_WC_REM_OP_ERR},
		     {TERM_RDMAP_LOCAL_CATASTROPHIC, IBV_WC_REM_OP_ERR}};
	struct pair_options o = pair_defaults();

	for (unsigned siw = 0; siw < 2; siw++) {
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, 2, 1, 0, true);
			struct ddp_hdr echo = hdr_tagged(RDMAP_WRITE, 5, 6, true);
			struct terminate term = terminate_of(cases[i].error);
			uint8_t bytes[TERM_MAX_LEN];
			struct ibv_wc wc;
			struct bench t;
			int len;

			terminate_echo(&term, &echo, 40, NULL);
			term.siw_layout = siw && term.has_ddp;
			len = terminate_encode(bytes, sizeof(bytes), &term);
			bench_open(&t, &o, LEN);
			assert_int_equal(end_recv(t.a, 9, t.mra, 0, 8), 0);
			assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, t.mrb, 0), 0);
			assert_int_equal(end_read(t.a, 2, t.mra, 0, 8, t.mrb, 0), 0);
			assert_int_equal(end_write(t.a, 3, t.mra, 0, 8, t.mrb, 0), 0);
			end_send_all(t.a);
			end_inject_fpdu(t.a, &hdr, bytes, (size_t)len);
			expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
			wc = next_wc(&t.a->scq);
			assert_int_equal(wc.wr_id, 2);
			assert_int_equal(wc.status, cases[i].status);
			assert_int_equal(wc.vendor_err & 0xffffff, cases[i].error);
			expect_wc(&t.a->scq, 3, IBV_WC_WR_FLUSH_ERR);
			expect_wc(&t.a->rcq, 9, IBV_WC_WR_FLUSH_ERR);
			expect_terminated(t.a, false, cases[i].error);
			/* the peer does not answer a Terminate */
			assert_true(qp_tx_is_done(t.a->qp));
			bench_close(&t);
		}
	}
}

static void terminate_is_taken_after_a_parked_send(void **state)
{
	struct bench *t = *state;
	struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, 2, 1, 0, true);
	static const uint8_t bytes[4] = {0x20, 2};

	assert_int_equal(end_send(t->a, 1, t->mra, 0, 8), 0);
	end_send_all(t->a);
	take_all(t->b);
	end_inject_fpdu(t->b, &hdr, bytes, sizeof(bytes));
	expect_terminated(t->b, false, TERM_MPA_CRC);
}

/* The receive is too short, and its completion then finds the queue full: the first error
 * counts. */
static void of_two_errors_in_one_message_the_first_counts(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.cq_size = 1;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 8), 0);
	assert_int_equal(end_recv(t.b, 2, t.mrb, 0, 8), 0);
	assert_int_equal(end_post(t.a, IBV_WR_SEND, 3, t.mra, 0, 8, NULL, 0, NOSIG), 0);
	assert_int_equal(end_post(t.a, IBV_WR_SEND, 4, t.mra, 0, 100, NULL, 0, NOSIG), 0);
	pair_run(&t.p);
	expect_terminated(t.b, true, TERM_DDP_TOO_LONG);
	assert_int_equal(t.b->asyncs, 1);
	assert_int_equal(t.b->async, IBV_EVENT_QP_REQ_ERR);
	expect_wc(&t.b->rcq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t.b->rcq);
	expect_terminated(t.a, false, TERM_DDP_TOO_LONG);
	bench_close(&t);
}

/* All three FPDUs arrive in one buffer, so the parser gets the second and the third FPDU in one
 * call. */
static void nothing_happens_after_an_error_in_the_same_bytes(void **state)
{
	struct bench *t = *state;
	struct ddp_hdr bad = hdr_untagged(RDMAP_SEND, 0, 7, 0, true);
	struct ddp_hdr send = hdr_untagged(RDMAP_SEND, 0, 1, 0, true);
	uint8_t bytes[512], untouched[16];
	struct ddp_hdr write;
	size_t len;

	assert_int_equal(end_recv(t->b, 1, t->mrb, 0, 8), 0);
	memcpy(untouched, t->mb + 16, sizeof(untouched));
	write = hdr_tagged(RDMAP_WRITE, t->mrb->ibv.rkey, t->mrb->iova + 16, true);
	len = fpdu_make(bytes, &bad, NULL, 0, true);
	len += fpdu_make(bytes + len, &write, "sixteen bytes...", 16, true);
	len += fpdu_make(bytes + len, &send, "message.", 8, true);
	end_inject(t->b, bytes, len);
	expect_terminated(t->b, true, TERM_DDP_BAD_MSN);
	assert_memory_equal(t->mb + 16, untouched, sizeof(untouched));
	expect_wc(&t->b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&t->b->rcq);
	assert_int_equal(qp_counters(t->b->qp)->writes_in, 0);
	assert_int_equal(t->b->asyncs, 1);
}

static void failing_flushes_everything_once(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_recv(t->a, 10, t->mra, 0, 8), 0);
	assert_int_equal(end_recv(t->a, 11, t->mra, 0, 8), 0);
	assert_int_equal(end_read(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_post(t->a, IBV_WR_RDMA_WRITE, 2, t->mra, 0, 8, t->mrb, 0, NOSIG), 0);
	assert_int_equal(end_flush(t->a, 3, t->mrb, 0, 8, true), 0);
	qp_fail(t->a->qp, IBV_WC_RETRY_EXC_ERR);
	qp_fail(t->a->qp, IBV_WC_GENERAL_ERR);
	expect_wc(&t->a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	/* After an error even unsignalled requests complete. */
	expect_wc(&t->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t->a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&t->a->scq);
	expect_wc(&t->a->rcq, 10, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t->a->rcq, 11, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&t->a->rcq);
	assert_true(qp_tx_is_done(t->a->qp));
	assert_int_equal(end_gather(t->a, SIZE_MAX, NULL), 0);
}

static void deleting_drops_completions_and_lets_go_of_regions(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 60000, t->mrb, 0), 0);
	end_gather(t->a, 100, NULL);
	assert_false(cq_is_empty(&t->a->scq));
	qp_delete(t->a->qp);
	t->a->qp = NULL;
	assert_true(cq_is_empty(&t->a->scq));
	mr_kill(t->mra);
	mr_wait_idle(t->mra); /* this hangs if the QP still holds the region */
	mr_delete(t->mra);
	t->mra = NULL;
}

static void an_unused_qp_can_be_deleted_at_any_time(void **state)
{
	struct pair_options o = pair_defaults();
	struct qp_config cfg;
	struct bench t;
	struct qp *qp;

	bench_open(&t, &o, LEN);
	cfg = (struct qp_config){.mrs = t.a->mrs,
				 .pd = &t.a->pd,
				 .send_cq = &t.a->scq,
				 .recv_cq = &t.a->rcq,
				 .qp_num = 9};
	assert_int_equal(qp_new(&cfg, &qp), 0);
	assert_false(qp_is_failed(qp));
	assert_ptr_equal(qp_of(qp_ibv(qp)), qp);
	qp_detach_mr(qp, t.mra, true);
	qp_drain(qp); /* returns immediately, because no request is queued */
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	qp_fail(qp, IBV_WC_GENERAL_ERR);
	assert_true(qp_tx_is_done(qp));
	assert_int_equal(qp_start(qp, &o.stream), -EINVAL);
	qp_delete(qp);
	qp_delete(NULL);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_rtr_is_sent_and_taken),
		cmocka_unit_test(an_rtr_read_counts_against_ord),
		cmocka_unit_test(another_first_fpdu_than_agreed_is_refused),
		cmocka_unit_test(a_held_responder_is_silent_until_the_peer_spoke),
		cmocka_unit_test(a_held_responder_may_say_why_it_refuses),
		cmocka_unit_test(terminate_is_the_last_fpdu_and_the_only_one),
		cmocka_unit_test(a_received_terminate_names_the_cause),
		BENCH_TEST(terminate_is_taken_after_a_parked_send, LEN),
		cmocka_unit_test(of_two_errors_in_one_message_the_first_counts),
		BENCH_TEST(nothing_happens_after_an_error_in_the_same_bytes, LEN),
		BENCH_TEST(failing_flushes_everything_once, LEN),
		BENCH_TEST(deleting_drops_completions_and_lets_go_of_regions, LEN),
		cmocka_unit_test(an_unused_qp_can_be_deleted_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
