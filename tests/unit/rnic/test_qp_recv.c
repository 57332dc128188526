/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives: parking, stalls, SRQs, lengths, invalidation, and solicited events. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/queues.h"
#include "softrnic/rnic/rnic.h"

#define LEN (1u << 20)

static void take_all(struct qp_end *e)
{
	while (end_take(e, SIZE_MAX) > 0)
		;
}

/* --- parking ------------------------------------------------------------------------------ */

static void sends_without_a_receive_are_parked_in_order(bool crc, size_t chunk)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.crc = crc;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(end_send(t.a, i, t.mra, 5000 * i, 1000 * i), 0);
	pair_run_chunked(&t.p, chunk);
	assert_true(qp_is_idle(t.a->qp)); /* the LLP has taken all bytes */
	assert_int_equal(qp_counters(t.b->qp)->parked_sends, 5);
	assert_int_equal(qp_counters(t.b->qp)->stalls, 0);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(end_recv(t.b, 10 + i, t.mrb, 5000 * i, 5000), 0);
		expect_wc(&t.b->rcq, 10 + i, IBV_WC_SUCCESS);
		assert_memory_equal(t.mb + 5000 * i, t.ma + 5000 * i, 1000 * i);
	}
	assert_int_equal(qp_counters(t.b->qp)->sends_in, 5);
	bench_close(&t);
}

static void sends_are_parked(void **state)
{
	sends_without_a_receive_are_parked_in_order(false, SIZE_MAX);
	sends_without_a_receive_are_parked_in_order(false, 100);
	sends_without_a_receive_are_parked_in_order(true, SIZE_MAX);
}

/* --- messages that were parked when the peer closed ----------------------------------------- */

/* A sends n messages that find no receive, and then closes in good order. */
static void part_from(struct bench *t, uint64_t n, uint32_t len)
{
	struct pair_options o = pair_defaults();

	bench_open(t, &o, LEN);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(end_send(t->a, i, t->mra, 5000 * i, len), 0);
	pair_run(&t->p);
	for (uint64_t i = 0; i < n; i++)
		expect_wc(&t->a->scq, i, IBV_WC_SUCCESS);
	assert_int_equal(end_send(t->b, 90, t->mrb, 0, 8), 0);
	qp_on_eof(t->b->qp);
	assert_true(qp_is_failed(t->b->qp));
	expect_wc(&t->b->scq, 90, IBV_WC_WR_FLUSH_ERR);
}

static void sends_of_a_peer_that_closed_are_still_received(void **state)
{
	struct bench t;

	part_from(&t, 3, 4000);
	for (uint64_t i = 0; i < 3; i++) {
		expect_no_wc(&t.b->rcq);
		assert_int_equal(end_recv(t.b, 10 + i, t.mrb, 5000 * i, 5000), 0);
		expect_wc(&t.b->rcq, 10 + i, IBV_WC_SUCCESS);
		assert_memory_equal(t.mb + 5000 * i, t.ma + 5000 * i, 4000);
	}
	assert_int_equal(end_recv(t.b, 20, t.mrb, 0, 5000), 0);
	expect_wc(&t.b->rcq, 20, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static void a_short_receive_ends_what_is_left_of_a_closed_peer(void **state)
{
	struct bench t;

	part_from(&t, 3, 4000);
	assert_int_equal(end_recv(t.b, 10, t.mrb, 0, 3999), 0);
	expect_wc(&t.b->rcq, 10, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(end_recv(t.b, 11, t.mrb, 0, 5000), 0);
	expect_wc(&t.b->rcq, 11, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static void whoever_fails_the_queue_pair_wants_nothing_of_a_closed_peer(void **state)
{
	struct bench t;

	part_from(&t, 3, 4000);
	qp_fail(t.b->qp, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_recv(t.b, 10, t.mrb, 0, 5000), 0);
	expect_wc(&t.b->rcq, 10, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

/*
 * After the queue has lost a completion, no more parked messages are delivered: their completions
 * would not prove that all earlier messages were delivered.
 */
static void an_overrun_ends_what_is_left_of_a_closed_peer(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.srq = true;
	o.cq_size = 1;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(end_send(t.a, i, t.mra, 0, 100), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	}
	qp_on_eof(t.b->qp);
	for (uint64_t i = 10; i < 13; i++)
		assert_int_equal(end_recv(t.b, i, t.mrb, 0, 100), 0);
	qp_rx_resume(t.b->qp);
	expect_wc(&t.b->rcq, 10, IBV_WC_SUCCESS);
	/* receive 11 was lost, and 12 is left for other queue pairs */
	assert_int_equal(t.b->srq.rq.count, 1);
	bench_close(&t);
}

static void what_was_cut_off_is_not_delivered(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_send(t->a, 1, t->mra, 0, 100), 0);
	pair_run(&t->p);
	assert_int_equal(end_send(t->a, 2, t->mra, 0, 100), 0);
	end_send_all(t->a);
	end_take(t->b, 30);
	qp_on_eof(t->b->qp);
	assert_int_equal(end_recv(t->b, 10, t->mrb, 0, 5000), 0);
	qp_rx_resume(t->b->qp);
	expect_wc(&t->b->rcq, 10, IBV_WC_SUCCESS); /* completion of the earlier receive */
	assert_int_equal(end_recv(t->b, 11, t->mrb, 0, 5000), 0);
	expect_wc(&t->b->rcq, 11, IBV_WC_WR_FLUSH_ERR);
}

static void writes_and_answers_pass_a_parked_send(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_read(t->b, 1, t->mrb, 500, 100, t->mra, 500), 0);
	assert_int_equal(end_flush(t->b, 2, t->mra, 0, 100, true), 0);
	assert_int_equal(end_send(t->a, 3, t->mra, 0, 100), 0);
	assert_int_equal(end_write(t->a, 4, t->mra, 200, 100, t->mrb, 200), 0);
	pair_run(&t->p);
	expect_wc(&t->b->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t->b->scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(t->mb + 200, t->ma + 200, 100);
	assert_memory_equal(t->mb + 500, t->ma + 500, 100);
	expect_no_wc(&t->b->rcq);
}

static void a_flush_after_a_parked_send_waits_for_it(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_send(t->a, 1, t->mra, 0, 100), 0);
	assert_int_equal(end_flush(t->a, 2, t->mrb, 0, 100, true), 0);
	assert_int_equal(end_read(t->a, 3, t->mra, 200, 8, t->mrb, 0), 0);
	assert_int_equal(end_write(t->a, 4, t->mra, 400, 100, t->mrb, 400), 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 0);
	assert_memory_equal(t->mb + 400, t->ma + 400, 100);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq);
	assert_int_equal(end_recv(t->b, 9, t->mrb, 0, 100), 0);
	pair_run(&t->p);
	assert_int_equal(t->b->wb_count, 1);
	for (uint64_t id = 2; id <= 4; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
	/* The Read returned the bytes that the Send had delivered. */
	assert_memory_equal(t->ma + 200, t->ma, 8);
}

static void both_sides_may_park_with_flushes_outstanding(void **state)
{
	struct bench *t = *state;

	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(end_send(t->a, 2 * i, t->mra, 0, 100), 0);
		assert_int_equal(end_send(t->b, 2 * i, t->mrb, 0, 100), 0);
		assert_int_equal(end_flush(t->a, 2 * i + 1, t->mrb, 0, 100, true), 0);
		assert_int_equal(end_flush(t->b, 2 * i + 1, t->mra, 0, 100, true), 0);
	}
	pair_run(&t->p);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(end_recv(t->a, i, t->mra, 1000, 100), 0);
		pair_run(&t->p);
	}
	for (uint64_t id = 2; id <= 7; id++) /* A has enough receives for B's Sends */
		expect_wc(&t->b->scq, id, IBV_WC_SUCCESS);
	expect_wc(&t->a->scq, 2, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(end_recv(t->b, i, t->mrb, 1000, 100), 0);
	pair_run(&t->p);
	assert_true(qp_is_idle(t->a->qp) && qp_is_idle(t->b->qp));
}

static void a_full_parking_space_stalls_the_stream_until_a_receive(bool crc)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	struct iovec iov[QP_RX_IOV];
	uint64_t n = 12, len = 40000;

	o.stream.crc = crc;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(end_send(t.a, i, t.mra, len * i, len), 0);
	assert_int_equal(end_flush(t.a, n, t.mrb, 0, 8, false), 0);
	pair_run(&t.p);
	assert_int_equal(qp_rx_want(t.b->qp, iov), 0);
	assert_int_equal(qp_counters(t.b->qp)->stalls, 1);
	assert_true(qp_counters(t.b->qp)->parked_sends * len <= RNIC_PARK_BYTES);
	assert_true(t.a->wire_len > 0);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(end_recv(t.b, i, t.mrb, len * i, len), 0);
		pair_run(&t.p);
		expect_wc(&t.b->rcq, i, IBV_WC_SUCCESS);
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	}
	expect_wc(&t.a->scq, n, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb, t.ma, n * len);
	bench_close(&t);
}

static void a_full_parking_space_stalls_the_stream(void **state)
{
	a_full_parking_space_stalls_the_stream_until_a_receive(false);
	a_full_parking_space_stalls_the_stream_until_a_receive(true);
}

static void empty_sends_cannot_be_parked_without_end(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	uint64_t n = 0;

	o.depth = 512;
	o.cq_size = 1024;
	bench_open(&t, &o, LEN);
	for (uint64_t i = 0; i < 400; i++)
		assert_int_equal(end_post(t.a, IBV_WR_SEND, i, NULL, 0, 0, NULL, 0, NOSIG), 0);
	pair_run(&t.p);
	assert_int_equal(qp_counters(t.b->qp)->parked_sends, RNIC_PARK_MSGS);
	for (uint64_t i = 0; i < 400; i++)
		assert_int_equal(end_recv(t.b, i, NULL, 0, 0), 0);
	pair_run(&t.p);
	while (!cq_is_empty(&t.b->rcq))
		expect_wc(&t.b->rcq, n++, IBV_WC_SUCCESS);
	assert_int_equal(n, 400);
	bench_close(&t);
}

/* The parking space is limited for each queue pair and for all together. Released space can be used
 * again. */
static void a_widened_parking_space_is_bounded(void **state)
{
	static struct park parks[RNIC_PARK_ALL / RNIC_PARK_MORE + 2];
	static const uint8_t bytes[60000];
	const uint32_t len = sizeof(bytes);
	struct ddp_hdr hdr = {.last = true};
	uint64_t all = 0;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(parks); i++) {
			park_init(&parks[i]);
			parks[i].wide = true;
			while (park_has_room(&parks[i], len))
				assert_non_null(park_add(&parks[i], &hdr, bytes, len));
			assert_in_range(parks[i].bytes, RNIC_PARK_BYTES - 2 * len, RNIC_PARK_MORE);
			all += parks[i].bytes;
		}
		assert_in_range(all, RNIC_PARK_ALL,
				RNIC_PARK_ALL + ARRAY_LEN(parks) * RNIC_PARK_BYTES);
		for (size_t i = 0; i < ARRAY_LEN(parks); i++)
			park_clear(&parks[i]);
		all = 0;
	}
	assert_false(parks[0].wide);
}

static void a_message_larger_than_the_parking_space_gets_through(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_send(t->a, 1, t->mra, 0, LEN), 0);
	pair_run(&t->p);
	expect_no_wc(&t->b->rcq);
	assert_int_equal(end_recv(t->b, 2, t->mrb, 0, LEN), 0);
	pair_run(&t->p);
	expect_wc(&t->b->rcq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(t->mb, t->ma, LEN);
}

static void requests_above_ird_are_refused_even_after_a_parked_send(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_send(t->a, 1, t->mra, 0, 8), 0);
	end_send_all(t->a);
	take_all(t->b);
	for (uint32_t msn = 1; msn <= 5; msn++) {
		struct ddp_hdr hdr = hdr_untagged(RDMAP_READ_REQ, 1, msn, 0, true);
		static const uint8_t req[28];

		assert_false(qp_is_failed(t->b->qp));
		end_inject_fpdu(t->b, &hdr, req, sizeof(req));
	}
	expect_terminated(t->b, true, TERM_DDP_NO_BUFFER);
}

/* --- shared receive queue ----------------------------------------------------------------- */

static void a_post_to_the_srq_notifies_who_waits(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.srq = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 100), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 100, 100), 0);
	pair_run(&t.p);
	assert_int_equal(t.b->notified, 0);
	assert_int_equal(end_recv(t.b, 11, t.mrb, 0, 100), 0);
	assert_int_equal(t.b->notified, 1);
	assert_int_equal(t.b->gets, 1);
	/* the post only notifies the owner, because it does not take the QP's lock; the receive
	 * completes in qp_rx_resume() */
	expect_no_wc(&t.b->rcq);
	qp_rx_resume(t.b->qp);
	expect_wc(&t.b->rcq, 11, IBV_WC_SUCCESS);
	assert_int_equal(end_recv(t.b, 12, t.mrb, 100, 100), 0);
	assert_int_equal(t.b->notified, 2);
	qp_rx_resume(t.b->qp);
	expect_wc(&t.b->rcq, 12, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb, t.ma, 200);
	assert_int_equal(end_recv(t.b, 13, t.mrb, 0, 100), 0);
	assert_int_equal(t.b->notified, 2);
	bench_close(&t);
}

static void sends_of_a_peer_that_closed_wait_for_the_srq(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.srq = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 100), 0);
	pair_run(&t.p);
	qp_on_eof(t.b->qp);
	assert_int_equal(end_recv(t.b, 11, t.mrb, 0, 100), 0);
	assert_int_equal(t.b->notified, 1);
	qp_rx_resume(t.b->qp);
	expect_wc(&t.b->rcq, 11, IBV_WC_SUCCESS);
	assert_int_equal(end_recv(t.b, 12, t.mrb, 0, 100), 0);
	qp_rx_resume(t.b->qp);
	expect_no_wc(&t.b->rcq); /* receive 12 is left for other queue pairs */
	bench_close(&t);
}

static void a_failed_qp_leaves_the_srq_to_others(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_recv_wr wr = {0}, *bad;
	struct rq_wr left;
	struct bench t;

	o.srq = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 100), 0);
	assert_int_equal(end_recv(t.b, 2, t.mrb, 0, 100), 0);
	assert_int_equal(end_send(t.a, 3, t.mra, 0, 100), 0);
	end_gather(t.a, SIZE_MAX, NULL);
	t.a->wire[2] &= 0xbf; /* clear the flag of the last segment */
	take_all(t.b);
	qp_fail(t.b->qp, IBV_WC_GENERAL_ERR);
	/* the failed message had taken this receive */
	expect_wc(&t.b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&t.b->rcq);
	assert_true(rq_take(&t.b->srq.rq, &left));
	assert_int_equal(left.wr_id, 2);
	assert_int_equal(qp_post_recv(t.b->qp, &wr, &bad), EINVAL);
	bench_close(&t);
}

/* --- errors of a receive ------------------------------------------------------------------ */

static void a_send_longer_than_its_receive_ends_both(bool parked)
{
	struct pair_options o = pair_defaults();
	struct bench t;
	uint8_t before[100];

	bench_open(&t, &o, LEN);
	memcpy(before, t.mb, sizeof(before));
	if (!parked)
		assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 99), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 100), 0);
	assert_int_equal(end_read(t.a, 3, t.mra, 0, 8, t.mrb, 0), 0);
	pair_run(&t.p);
	if (parked)
		assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 99), 0);
	pair_run(&t.p);
	expect_wc(&t.b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	expect_terminated(t.b, true, TERM_DDP_TOO_LONG);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 3, IBV_WC_REM_INV_REQ_ERR);
	assert_memory_equal(t.mb, before, sizeof(before));
	bench_close(&t);
}

static void a_send_must_fit_its_receive(void **state)
{
	a_send_longer_than_its_receive_ends_both(false);
	a_send_longer_than_its_receive_ends_both(true);
}

static void a_receive_into_nowhere_ends_with_a_protection_error(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_recv(t->b, 1, t->mrb, 0, 100), 0);
	assert_int_equal(end_recv(t->b, 2, t->mrb, 0, 100), 0);
	bench_dereg(t->b, &t->mrb);
	assert_int_equal(end_send(t->a, 3, t->mra, 0, 100), 0);
	pair_run(&t->p);
	expect_wc(&t->b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(&t->b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_terminated(t->b, true, TERM_DDP_LOCAL_CATASTROPHIC);
}

static int send_inv(struct qp_end *e, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey};

	return qp_post_send(e->qp, &wr, &bad);
}

static void a_send_can_invalidate_a_region(void **state)
{
	struct bench *t = *state;
	struct mr *mr;
	struct ibv_wc wc;
	uint32_t rkey;

	mr = end_reg(t->b, t->mb, 4096, REMOTE_ALL | VEXT_ACCESS_REMOTE_INVALIDATE);
	rkey = mr->ibv.rkey;
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(end_recv(t->b, i, t->mrb, 0, 0), 0);
	assert_int_equal(send_inv(t->a, rkey), 0);
	pair_run(&t->p);
	wc = next_wc(&t->b->rcq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_int_equal(send_inv(t->a, rkey), 0); /* the STag is invalid already */
	pair_run(&t->p);
	expect_terminated(t->b, true, TERM_RDMAP_STAG_NOT_INVALIDATED);
	bench_dereg(t->b, &mr);
}

/* Other connections may use the region, too (RFC 5042 s6.4.5), so a Send may invalidate it only
 * with the region's consent. */
static void a_send_cannot_invalidate_what_was_not_registered_for_that(void **state)
{
	static const int rights[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, REMOTE_ALL,
				     REMOTE_ALL | IBV_ACCESS_REMOTE_ATOMIC};

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct pair_options o = pair_defaults();
		struct bench t;
		struct mr *mr, *held;
		void *ptr;

		bench_open(&t, &o, LEN);
		mr = end_reg(t.b, t.mb, 4096, rights[i]);
		assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 0), 0);
		assert_int_equal(send_inv(t.a, mr->ibv.rkey), 0);
		pair_run(&t.p);
		expect_wc(&t.b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
		expect_terminated(t.b, true, TERM_RDMAP_STAG_NOT_INVALIDATED);
		assert_int_equal(mr_hold(t.b->mrs, &t.b->pd, mr->ibv.rkey, (uintptr_t)t.mb, 4096,
					 rights[i], &held, &ptr),
				 MR_OK);
		mr_release(held);
		bench_dereg(t.b, &mr);
		bench_close(&t);
	}
}

static int notified;

static void on_notify(struct cq *cq)
{
	notified++;
}

static void only_a_solicited_send_wakes_who_waits_for_one(void **state)
{
	struct bench *t = *state;

	notified = 0;
	t->b->rcq.notify = on_notify;
	cq_arm(&t->b->rcq, true);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(end_recv(t->b, i, NULL, 0, 0), 0);
	assert_int_equal(end_send(t->a, 1, NULL, 0, 0), 0);
	pair_run(&t->p);
	assert_int_equal(notified, 0);
	assert_int_equal(end_post(t->a, IBV_WR_SEND, 2, NULL, 0, 0, NULL, 0, IBV_SEND_SOLICITED),
			 0);
	pair_run(&t->p);
	assert_int_equal(notified, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_are_parked),
		cmocka_unit_test(sends_of_a_peer_that_closed_are_still_received),
		cmocka_unit_test(a_short_receive_ends_what_is_left_of_a_closed_peer),
		cmocka_unit_test(whoever_fails_the_queue_pair_wants_nothing_of_a_closed_peer),
		cmocka_unit_test(an_overrun_ends_what_is_left_of_a_closed_peer),
		BENCH_TEST(what_was_cut_off_is_not_delivered, LEN),
		BENCH_TEST(writes_and_answers_pass_a_parked_send, LEN),
		BENCH_TEST(a_flush_after_a_parked_send_waits_for_it, LEN),
		BENCH_TEST(both_sides_may_park_with_flushes_outstanding, LEN),
		cmocka_unit_test(a_full_parking_space_stalls_the_stream),
		cmocka_unit_test(empty_sends_cannot_be_parked_without_end),
		cmocka_unit_test(a_widened_parking_space_is_bounded),
		BENCH_TEST(a_message_larger_than_the_parking_space_gets_through, LEN),
		BENCH_TEST(requests_above_ird_are_refused_even_after_a_parked_send, LEN),
		cmocka_unit_test(a_post_to_the_srq_notifies_who_waits),
		cmocka_unit_test(sends_of_a_peer_that_closed_wait_for_the_srq),
		cmocka_unit_test(a_failed_qp_leaves_the_srq_to_others),
		cmocka_unit_test(a_send_must_fit_its_receive),
		BENCH_TEST(a_receive_into_nowhere_ends_with_a_protection_error, LEN),
		BENCH_TEST(a_send_can_invalidate_a_region, LEN),
		cmocka_unit_test(a_send_cannot_invalidate_what_was_not_registered_for_that),
		BENCH_TEST(only_a_solicited_send_wakes_who_waits_for_one, LEN),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
