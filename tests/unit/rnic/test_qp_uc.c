/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connected queue pairs (UC): a message that cannot be delivered is lost, its sender
 * gets no error, and both ends continue to work.
 */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/queues.h"

#define LEN (1u << 20)
#define BIG 300000u /* several segments, whose payload is received straight into memory */

static struct bench t;

static void open_bench(bool crc, bool srq)
{
	struct pair_options o = pair_defaults();

	o.unreliable = true;
	o.stream.crc = crc;
	o.srq = srq;
	bench_open(&t, &o, LEN);
}

/* Expect that the next Send arrives, and that neither end has had an error. */
static void expect_to_go_on(void)
{
	assert_int_equal(t.a->asyncs + t.b->asyncs, 0);
	expect_no_wc(&t.a->scq);
	expect_no_wc(&t.b->rcq);
	memset(t.mb + LEN - 100, 0, 100);
	assert_int_equal(end_recv(t.b, 90, t.mrb, LEN - 100, 100), 0);
	assert_int_equal(end_send(t.a, 91, t.mra, 0, 100), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 91, IBV_WC_SUCCESS);
	expect_wc(&t.b->rcq, 90, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb + LEN - 100, t.ma, 100);
}

static void lost(uint64_t n)
{
	assert_int_equal(qp_counters(t.b->qp)->lost_in, n);
}

static void it_is_of_that_type(void **state)
{
	open_bench(false, false);
	assert_int_equal(qp_ibv(t.a->qp)->qp_type, IBV_QPT_UC);
	expect_to_go_on();
	lost(0);
	bench_close(&t);
}

/* --- Sends ---------------------------------------------------------------------------------- */

static void send_without_a_receive(bool crc, bool srq, size_t len, size_t chunk)
{
	open_bench(crc, srq);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, len), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 8), 0);
	pair_run_chunked(&t.p, chunk);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(qp_counters(t.b->qp)->parked_sends, 0);
	lost(2);
	if (!srq)
		expect_to_go_on();
	bench_close(&t);
}

static void a_send_without_a_receive_is_lost(void **state)
{
	send_without_a_receive(false, false, 100, SIZE_MAX);
	send_without_a_receive(false, true, 100, SIZE_MAX);
	send_without_a_receive(true, false, BIG, SIZE_MAX);
	send_without_a_receive(false, false, BIG, SIZE_MAX);
	send_without_a_receive(false, false, BIG, 1000);
	send_without_a_receive(false, false, 0, 1);
}

/* A Send that is too long for the receive is lost, and the receive stays posted. */
static void send_longer_than_its_receive(size_t len)
{
	open_bench(false, false);
	assert_int_equal(end_recv(t.b, 5, t.mrb, 0, len - 1), 0);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, len), 0);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 50), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(next_wc(&t.b->rcq).byte_len, 50);
	assert_memory_equal(t.mb, t.ma, 50);
	lost(1);
	expect_to_go_on();
	bench_close(&t);
}

static void a_send_longer_than_its_receive_is_lost(void **state)
{
	send_longer_than_its_receive(100);
	send_longer_than_its_receive(BIG);
}

static void a_send_with_a_wrong_invalidate_is_lost(void **state)
{
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_SEND_WITH_INV,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	open_bench(false, false);
	/* the region was not registered for remote invalidation */
	wr.invalidate_rkey = t.mrb->ibv.rkey;
	assert_int_equal(end_recv(t.b, 5, t.mrb, 0, 100), 0);
	assert_int_equal(qp_post_send(t.a->qp, &wr, &bad), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(&t.b->rcq);
	lost(1);
	assert_int_equal(end_send(t.a, 2, t.mra, 0, 50), 0);
	pair_run(&t.p);
	expect_wc(&t.b->rcq, 5, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* --- Writes --------------------------------------------------------------------------------- */

/* The Write has Immediate Data, which are lost with it. */
static void write_refused(struct mr *mr, size_t off, size_t len, size_t chunk)
{
	assert_int_equal(end_post(t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, t.mra, 0, len, mr, off, 0),
			 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 100, t.mrb, 0), 0);
	pair_run_chunked(&t.p, chunk);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb, t.ma, 100);
	lost(2); /* two messages: the Write, and its Immediate Data */
	expect_to_go_on();
}

static void a_write_to_memory_that_is_not_there_is_lost(void **state)
{
	static const size_t lens[] = {1, 5000, BIG};

	for (size_t i = 0; i < 3 * 2; i++) {
		struct mr other;

		open_bench(i & 1, false);
		other = *t.mrb;
		other.ibv.rkey ^= 1;
		write_refused(&other, 0, lens[i / 2], i & 2 ? 777 : SIZE_MAX);
		bench_close(&t);
	}
}

static void a_write_out_of_bounds_is_lost(void **state)
{
	open_bench(false, false);
	write_refused(t.mrb, LEN - 10, 11, SIZE_MAX);
	bench_close(&t);
	open_bench(false, false); /* only the first bytes are in bounds */
	write_refused(t.mrb, LEN - BIG + 1, BIG, SIZE_MAX);
	bench_close(&t);
}

static void a_write_without_the_right_is_lost(void **state)
{
	open_bench(false, false);
	qp_permit(t.b->qp, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	lost(1);
	expect_to_go_on();
	bench_close(&t);
}

/* The rest of the Write is read from the link, but not placed. */
static void a_region_that_ends_inside_of_a_write_loses_the_rest(void **state)
{
	open_bench(false, false);
	struct mr *other = end_reg(t.b, t.mb, LEN, REMOTE_ALL);

	assert_int_equal(end_write(t.a, 1, t.mra, 0, BIG, other, 0), 0);
	end_send_all(t.a);
	end_take(t.b, 40000);
	bench_dereg(t.b, &other);
	memset(t.mb, 0, LEN);
	pair_run(&t.p);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(t.mb[i], 0);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	lost(1);
	expect_to_go_on();
	bench_close(&t);
}

/* --- operations that UC does not have ------------------------------------------------------- */

static void requests_are_refused_when_posted(void **state)
{
	open_bench(false, false);
	assert_int_equal(end_read(t.a, 1, t.mra, 0, 8, t.mrb, 0), EINVAL);
	assert_int_equal(end_post(t.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, t.mra, 0, 8, t.mrb, 0, 0),
			 EINVAL);
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 8, false), EINVAL);
	expect_to_go_on();
	bench_close(&t);
}

static void a_request_of_the_peer_ends_the_stream_without_a_terminate(void **state)
{
	struct rdmap_read_req req = {.sink_stag = 1, .src_stag = 1};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_READ_REQ, DDP_QN_REQUEST, 1, 0, true);
	uint8_t bytes[RDMAP_READ_REQ_LEN];

	open_bench(false, false);
	assert_int_equal(rdmap_read_req_encode(bytes, sizeof(bytes), &req), sizeof(bytes));
	end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
	assert_true(qp_is_failed(t.b->qp));
	end_send_all(t.b);
	assert_int_equal(t.b->wire_len, 0);
	bench_close(&t);
}

/* Unregistered memory of a receive is an error of this end, so only this end reports the error. */
static void a_receive_without_its_memory_fails_at_this_end_alone(void **state)
{
	open_bench(false, false);
	struct mr *gone = end_reg(t.b, t.mb, 100, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(end_recv(t.b, 5, gone, 0, 100), 0);
	bench_dereg(t.b, &gone);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 100), 0);
	pair_run(&t.p);
	expect_wc(&t.b->rcq, 5, IBV_WC_LOC_PROT_ERR);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_failed(t.b->qp));
	assert_false(qp_is_failed(t.a->qp));
	assert_int_equal(qp_counters(t.b->qp)->terminates_out, 0);
	bench_close(&t);
}

static void what_is_posted_without_a_peer_completes(void **state)
{
	open_bench(false, false);
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(end_write(t.a, i, t.mra, 0, 100000, t.mrb, 0), 0);
	end_gather(t.a, 50000, &(int){0}); /* one message is partly gathered */
	qp_give_away(t.a->qp);
	for (uint64_t i = 0; i < 16; i++)
		expect_wc(&t.a->scq, i, IBV_WC_SUCCESS);
	assert_int_equal(end_send(t.a, 20, t.mra, 0, 8), 0);
	qp_give_away(t.a->qp);
	expect_wc(&t.a->scq, 20, IBV_WC_SUCCESS);
	assert_false(qp_has_posted(t.a->qp) || qp_is_failed(t.a->qp));
	bench_close(&t);
}

static void a_reliable_one_gives_nothing_away(void **state)
{
	struct pair_options o = pair_defaults();

	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	qp_give_away(t.a->qp);
	expect_no_wc(&t.a->scq);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_of_that_type),
		cmocka_unit_test(a_send_without_a_receive_is_lost),
		cmocka_unit_test(a_send_longer_than_its_receive_is_lost),
		cmocka_unit_test(a_send_with_a_wrong_invalidate_is_lost),
		cmocka_unit_test(a_write_to_memory_that_is_not_there_is_lost),
		cmocka_unit_test(a_write_out_of_bounds_is_lost),
		cmocka_unit_test(a_write_without_the_right_is_lost),
		cmocka_unit_test(a_region_that_ends_inside_of_a_write_loses_the_rest),
		cmocka_unit_test(requests_are_refused_when_posted),
		cmocka_unit_test(a_request_of_the_peer_ends_the_stream_without_a_terminate),
		cmocka_unit_test(a_receive_without_its_memory_fails_at_this_end_alone),
		cmocka_unit_test(what_is_posted_without_a_peer_completes),
		cmocka_unit_test(a_reliable_one_gives_nothing_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
