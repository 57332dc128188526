/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: what one gather returns, partial sends, and sources that change, vanish or are
 * deregistered.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/mpa_marker.h"

#define LEN (2u << 20)

static void take_all(struct qp_end *e)
{
	while (end_take(e, SIZE_MAX) > 0)
		;
}

static void sixteen_writes_and_a_flush_leave_in_one_gather(bool crc, size_t len, int max_iov)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	int n_iov;

	o.depth = 32;
	o.stream.crc = crc;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(end_write(t.a, i, t.mra, 2 * i * len, len, t.mrb, i * len), 0);
	assert_int_equal(end_flush(t.a, 16, t.mrb, 0, 16 * len, true), 0);
	assert_true(end_gather(t.a, SIZE_MAX, &n_iov) > 16 * len);
	assert_true(n_iov <= max_iov);
	assert_int_equal(end_gather(t.a, SIZE_MAX, NULL), 0);
	pair_run(&t.p);
	for (uint64_t i = 0; i <= 16; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	assert_int_equal(qp_counters(t.a->qp)->tx_gathers, PAIR_HELLO + 1);
	bench_close(&t);
}

static void small_batches_leave_in_one_piece(void **state)
{
	sixteen_writes_and_a_flush_leave_in_one_gather(false, 256, 1);
	sixteen_writes_and_a_flush_leave_in_one_gather(true, 1024, 1);
}

static void larger_batches_leave_in_one_gather(void **state)
{
	sixteen_writes_and_a_flush_leave_in_one_gather(false, 1024, 33);
	sixteen_writes_and_a_flush_leave_in_one_gather(false, 16384, 33);
}

static void without_crc_large_payloads_are_not_copied(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 1u << 20, t->mrb, 0), 0);
	pair_run(&t->p);
	assert_memory_equal(t->mb, t->ma, 1u << 20);
	assert_int_equal(qp_counters(t->a->qp)->tx_copied_bytes, EXT_HELLO_LEN);
	assert_true(qp_counters(t->a->qp)->tx_gathers <= PAIR_HELLO + 2);
}

static void with_crc_the_payload_may_change_while_it_is_sent(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.crc = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 50000, t.mrb, 0), 0);
	end_gather(t.a, 100, NULL);
	memset(t.ma, 0xee, 50000);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(t.mb[40000], (uint8_t)(40000 * 7 + 40000 / 251 + 1));
	assert_int_equal(qp_counters(t.b->qp)->crc_errors, 0);
	bench_close(&t);
}

static void answers_and_requests_take_turns(void **state)
{
	struct bench *t = *state;
	uint8_t ops[4];
	size_t at = 0;

	assert_int_equal(end_read(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_read(t->a, 2, t->mra, 0, 8, t->mrb, 0), 0);
	end_send_all(t->a);
	take_all(t->b);
	assert_int_equal(end_write(t->b, 3, t->mrb, 0, 8, t->mra, 64), 0);
	assert_int_equal(end_write(t->b, 4, t->mrb, 0, 8, t->mra, 64), 0);
	end_send_all(t->b);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		ops[i] = t->b->wire[at + 3] & 0xf;
		at += mpa_fpdu_len((size_t)t->b->wire[at] << 8 | t->b->wire[at + 1]);
		if (i > 0)
			assert_int_not_equal(ops[i], ops[i - 1]);
	}
}

static void a_region_goes_away_while_its_bytes_are_half_sent(void **state)
{
	struct bench *t = *state;
	uint8_t expected[100000];

	memcpy(expected, t->mb, sizeof(expected));
	assert_int_equal(end_read(t->a, 1, t->mra, 0, sizeof(expected), t->mrb, 0), 0);
	end_send_all(t->a);
	take_all(t->b);
	/* this gather ends inside the second FPDU */
	assert_int_equal(end_gather(t->b, 70000, NULL), 70000);
	bench_dereg(t->b, &t->mrb);
	memset(t->mb, 0xee, sizeof(expected));
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(t->ma, expected, sizeof(expected));
}

static void a_removed_region_ends_the_later_read(void **state)
{
	struct bench *t = *state;
	const struct terminate *term;

	assert_int_equal(end_read(t->a, 1, t->mra, 0, LEN, t->mrb, 0), 0);
	end_send_all(t->a);
	take_all(t->b);
	end_gather(t->b, 1000, NULL);
	bench_dereg(t->b, &t->mrb); /* a part of the message has been gathered */
	pair_run(&t->p);
	expect_wc(&t->a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t->b, true, TERM_RDMAP_INVALID_STAG);
	expect_terminated(t->a, false, TERM_RDMAP_INVALID_STAG);
	term = qp_terminate(t->a->qp, NULL);
	assert_true(term->has_read_req && term->has_ddp);
	assert_true(term->read_req.size > 0 && term->read_req.size < LEN);
	assert_int_equal(term->read_req.sink_to + term->read_req.size, t->mra->iova + LEN);
}

/* Map a page whose file was then truncated: an access raises SIGBUS. */
static uint8_t *vanished_page(void)
{
	int fd = memfd_create("gone", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	return p;
}

static void a_vanished_source_fails_the_request_and_not_the_process(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t *gone = vanished_page();
	struct bench t;
	struct mr *mr;

	for (int crc = 0; crc < 2; crc++) {
		o.stream.crc = crc;
		bench_open(&t, &o, LEN);
		mr = end_reg(t.a, gone, 4096, REMOTE_ALL);
		assert_int_equal(end_write(t.a, 1, mr, 0, 100, t.mrb, 0), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR);
		expect_terminated(t.b, false, TERM_RDMAP_LOCAL_CATASTROPHIC);
		bench_dereg(t.a, &mr);
		bench_close(&t);
	}
	munmap(gone, 4096);
}

static void a_vanished_read_source_is_answered_by_terminate(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t *gone = vanished_page();
	struct bench t;
	struct mr *mr;

	o.stream.crc = true;
	bench_open(&t, &o, LEN);
	mr = end_reg(t.b, gone, 4096, REMOTE_ALL);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 100, mr, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_terminated(t.b, true, TERM_RDMAP_BASE_BOUNDS);
	assert_int_equal(t.b->asyncs, 1);
	bench_dereg(t.b, &mr);
	bench_close(&t);
	munmap(gone, 4096);
}

static void a_fault_of_the_llp_between_fpdus_is_terminated(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 5000, t->mrb, 0), 0);
	assert_int_equal(end_gather(t->a, 28, NULL), 28);
	qp_tx_fault(t->a->qp);
	assert_false(qp_tx_is_done(t->a->qp));
	pair_run(&t->p);
	assert_true(qp_tx_is_done(t->a->qp));
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_LOC_PROT_ERR);
	expect_terminated(t->b, false, TERM_RDMAP_LOCAL_CATASTROPHIC);
}

static void a_fault_of_the_llp_inside_an_fpdu_ends_the_stream(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 5000, t->mrb, 0), 0);
	assert_int_equal(end_gather(t->a, 1000, NULL), 1000);
	qp_tx_fault(t->a->qp);
	assert_true(qp_is_failed(t->a->qp) && qp_tx_is_done(t->a->qp));
	assert_int_equal(end_gather(t->a, SIZE_MAX, NULL), 0);
	expect_wc(&t->a->scq, 1, IBV_WC_LOC_PROT_ERR);
}

static void a_failed_qp_needs_the_buffers_of_flushed_requests_no_more(void **state)
{
	struct bench *t = *state;
	struct ddp_hdr bad;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 300000, t->mrb, 0), 0);
	assert_int_equal(end_gather(t->a, 1000, NULL), 1000);
	bad = hdr_untagged(RDMAP_READ_REQ, DDP_QN_SEND, 1, 0, true);
	end_inject_fpdu(t->a, &bad, "", 0);
	expect_wc(&t->a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	mr_kill(t->mra);
	mr_wait_idle(t->mra); /* this hangs if the QP still holds the region */
	mr_delete(t->mra);
	t->mra = NULL;
	memset(t->ma, 0xee, 300000);
	end_send_all(t->a);
	assert_true(qp_tx_is_done(t->a->qp));
	take_all(t->b);
	expect_terminated(t->b, false, TERM_RDMAP_UNEXPECTED_OPCODE);
	assert_int_equal(t->mb[299999], (uint8_t)(299999 * 7 + 299999 / 251 + 1));
}

static void a_qp_given_up_leaves_only_the_fpdu_that_was_begun(void **state)
{
	struct bench *t = *state;

	t->b->wb_status = -EIO;
	assert_int_equal(end_flush(t->a, 1, t->mrb, 0, 8, true), 0);
	end_send_all(t->a);
	take_all(t->b);
	assert_int_equal(end_write(t->a, 2, t->mra, 0, 300000, t->mrb, 0), 0);
	assert_int_equal(end_gather(t->a, 1000, NULL), 1000);
	end_run_writebacks(t->b);
	end_send_all(t->b);
	take_all(t->a);
	expect_wc(&t->a->scq, 1, IBV_WC_REM_OP_ERR);
	expect_wc(&t->a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_false(qp_tx_is_done(t->a->qp));
	end_send_all(t->a);
	assert_true(qp_tx_is_done(t->a->qp));
	take_all(t->b);
	assert_int_equal(qp_counters(t->b->qp)->rx_fpdus,
			 PAIR_HELLO + 2); /* each gather stops after a whole FPDU */
}

static void markers_stand_where_the_peer_wants_them(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	uint8_t *w;
	size_t kept = 0;

	o.stream.consent = o.stream.peer_flushes = false;
	o.stream.markers = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 20000, t.mrb, 0), 0);
	assert_int_equal(end_read(t.a, 2, t.mra, 30000, 8, t.mrb, 0), 0);
	end_send_all(t.a);
	w = t.a->wire;
	for (size_t i = 0; i < t.a->wire_len; i += 4) {
		if (i % MPA_MARKER_PERIOD == 0)
			assert_true(w[i] == 0 && w[i + 1] == 0);
		else
			memmove(w + 4 * kept++, w + i, 4);
	}
	t.a->wire_len = 4 * kept;
	take_all(t.b);
	assert_memory_equal(t.mb, t.ma, 20000);
	assert_int_equal(qp_counters(t.b->qp)->reads_in, 1);
	bench_close(&t);
}

static void the_first_fpdu_with_marker_is_that_of_rfc_5044(void **state)
{
	static const uint8_t expected[] = {0, 0, 0, 0, 0, 0x2a, 0x41, 0x43, 0, 0, 0, 0,
					   0, 0, 0, 0, 0, 0,    0,    1,    0, 0, 0, 0};
	static const uint8_t crc[] = {0x52, 0x23, 0x99, 0x83};
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.consent = false;
	o.stream.markers = o.stream.crc = true;
	bench_open(&t, &o, LEN);
	memset(t.ma, 0, 24);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 24), 0);
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, 52);
	assert_memory_equal(t.a->wire, expected, sizeof(expected));
	assert_memory_equal(t.a->wire + 48, crc, sizeof(crc));
	bench_close(&t);
}

static void an_idle_end_needs_no_buffers(void **state)
{
	struct bench *t = *state;

	assert_false(qp_tx_needs_buf(t->a->qp));
	assert_int_equal(end_write(t->a, 1, t->mra, 0, 5000, t->mrb, 0), 0);
	assert_true(qp_tx_needs_buf(t->a->qp));
	end_gather(t->a, 4999, NULL);
	assert_null(t->a->txbuf); /* the queue pair has borrowed the buffer */
	pair_run(&t->p);
	assert_non_null(t->a->txbuf);
	assert_non_null(t->b->rxbuf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_batches_leave_in_one_piece),
		cmocka_unit_test(larger_batches_leave_in_one_gather),
		BENCH_TEST(without_crc_large_payloads_are_not_copied, LEN),
		cmocka_unit_test(with_crc_the_payload_may_change_while_it_is_sent),
		BENCH_TEST(answers_and_requests_take_turns, LEN),
		BENCH_TEST(a_region_goes_away_while_its_bytes_are_half_sent, LEN),
		BENCH_TEST(a_removed_region_ends_the_later_read, LEN),
		cmocka_unit_test(a_vanished_source_fails_the_request_and_not_the_process),
		cmocka_unit_test(a_vanished_read_source_is_answered_by_terminate),
		BENCH_TEST(a_fault_of_the_llp_between_fpdus_is_terminated, LEN),
		BENCH_TEST(a_fault_of_the_llp_inside_an_fpdu_ends_the_stream, LEN),
		BENCH_TEST(a_failed_qp_needs_the_buffers_of_flushed_requests_no_more, LEN),
		BENCH_TEST(a_qp_given_up_leaves_only_the_fpdu_that_was_begun, LEN),
		cmocka_unit_test(markers_stand_where_the_peer_wants_them),
		cmocka_unit_test(the_first_fpdu_with_marker_is_that_of_rfc_5044),
		BENCH_TEST(an_idle_end_needs_no_buffers, LEN),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
