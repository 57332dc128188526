/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: where payload is placed, and what damage or the end of the stream does. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN (2u << 20)

/* Only memory without a medium is received into directly. */
static int setup_volatile(void **state)
{
	struct bench *t;
	int rc = bench_setup(state);

	t = *state;
	t->mra->backing.durable = t->mrb->backing.durable = false;
	return rc;
}

#define VOLATILE_TEST(name)                                                                        \
	cmocka_unit_test_prestate_setup_teardown(name, setup_volatile, bench_teardown,             \
						 &(size_t){LEN})

/* --- placement ---------------------------------------------------------------------------- */

static void without_crc_large_payloads_go_straight_to_memory(void **state)
{
	struct bench *t = *state;
	const struct qp_counters *c;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 1u << 20, t->mrb, 0), 0);
	assert_int_equal(end_recv(t->b, 2, t->mrb, 1u << 20, 1u << 20), 0);
	assert_int_equal(end_send(t->a, 3, t->mra, 1u << 20, 1u << 20), 0);
	pair_run(&t->p);
	c = qp_counters(t->b->qp);
	assert_memory_equal(t->mb, t->ma, LEN);
	assert_int_equal(c->rx_direct_bytes + c->rx_copied_bytes, LEN);
	assert_true(c->rx_copied_bytes <= QP_RXBUF);
}

/* A small message is between two large payloads. Together with the small message, the receiver may
 * read at most the beginning of the second payload. */
static void after_a_large_payload_little_is_read_ahead(void **state)
{
	struct bench *t = *state;
	const struct qp_counters *c;

	assert_int_equal(end_recv(t->b, 1, t->mrb, LEN - 8, 8), 0);
	assert_int_equal(end_write(t->a, 1, t->mra, 0, 1u << 20, t->mrb, 0), 0);
	assert_int_equal(end_send(t->a, 2, t->mra, LEN - 8, 8), 0);
	assert_int_equal(end_write(t->a, 3, t->mra, 1u << 20, (1u << 20) - 8, t->mrb, 1u << 20), 0);
	pair_run(&t->p);
	c = qp_counters(t->b->qp);
	assert_memory_equal(t->mb, t->ma, LEN);
	assert_int_equal(c->rx_direct_bytes + c->rx_copied_bytes, LEN);
	assert_true(c->rx_copied_bytes <= QP_RXBUF + 4096);
}

static void a_read_response_goes_straight_to_memory(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_read(t->a, 1, t->mra, 0, LEN, t->mrb, 0), 0);
	pair_run(&t->p);
	assert_memory_equal(t->mb, t->ma, LEN);
	assert_true(qp_counters(t->a->qp)->rx_copied_bytes <= QP_RXBUF);
}

static void a_send_goes_straight_into_several_segments(void **state)
{
	struct bench *t = *state;
	struct ibv_sge sge[3];
	struct ibv_recv_wr *bad, wr = {.sg_list = sge, .num_sge = 3};
	static const uint32_t lens[3] = {100000, 7, 300000};
	size_t at = 0;

	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){.addr = t->mrb->iova + 400000u * i,
					  .length = lens[i],
					  .lkey = t->mrb->ibv.lkey};
	assert_int_equal(qp_post_recv(t->b->qp, &wr, &bad), 0);
	assert_int_equal(end_send(t->a, 1, t->mra, 0, 350000), 0);
	pair_run_chunked(&t->p, 150000);
	for (unsigned i = 0; i < 3; at += lens[i], i++)
		assert_memory_equal(t->mb + 400000u * i, t->ma + at, i < 2 ? lens[i] : 350000 - at);
	assert_int_equal(next_wc(&t->b->rcq).byte_len, 350000);
}

static void a_region_dies_while_its_write_is_half_received(void **state)
{
	struct bench *t = *state;

	assert_int_equal(end_write(t->a, 1, t->mra, 0, 1u << 20, t->mrb, 0), 0);
	end_send_all(t->a);
	end_take(t->b, 200000);
	bench_dereg(t->b, &t->mrb);
	memset(t->mb, 0, LEN);
	pair_run(&t->p);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(t->mb[i], 0);
	expect_terminated(t->b, true, TERM_DDP_INVALID_STAG);
	expect_terminated(t->a, false, TERM_DDP_INVALID_STAG);
}

static uint8_t *vanished_page(void)
{
	int fd = memfd_create("gone", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0 && ftruncate(fd, 65536) == 0);
	p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	return p;
}

static void a_write_to_vanished_memory_is_terminated(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t *gone = vanished_page();
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.b, gone, 65536, REMOTE_ALL);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 8, mr, 16), 0);
	pair_run(&t.p);
	expect_terminated(t.b, true, TERM_RDMAP_BASE_BOUNDS);
	assert_int_equal(t.b->async, IBV_EVENT_QP_ACCESS_ERR);
	bench_dereg(t.b, &mr);
	bench_close(&t);
	munmap(gone, 65536);
}

static void a_fault_of_the_llp_ends_the_receive_it_was_for(void **state)
{
	struct bench *t = *state;
	struct iovec iov[QP_RX_IOV];

	assert_int_equal(end_recv(t->b, 1, t->mrb, 0, LEN), 0);
	assert_int_equal(end_send(t->a, 2, t->mra, 0, 60000), 0);
	end_send_all(t->a);
	end_take(t->b, 1000);
	qp_rx_lend(t->b->qp, t->b->rxbuf); /* the buffer had only the header */
	t->b->rxbuf = NULL;
	assert_true(qp_rx_want(t->b->qp, iov) > 0);
	assert_ptr_equal(iov[0].iov_base, t->mb + 980);
	qp_rx_fault(t->b->qp);
	expect_wc(&t->b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	expect_terminated(t->b, true, TERM_RDMAP_BASE_BOUNDS);
	t->b->rxbuf = qp_rx_reclaim(t->b->qp);
}

static void an_aligned_word_is_written_whole(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.crc = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(end_write(t.a, 1, t.mra, 8, 8, t.mrb, 64), 0);
	pair_run_chunked(&t.p, 1); /* place() writes all 8 bytes or none */
	assert_memory_equal(t.mb + 64, t.ma + 8, 8);
	bench_close(&t);
}

/* --- damage ------------------------------------------------------------------------------- */

static void with_crc_a_flipped_bit_changes_no_memory(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t before[200];
	struct bench t;

	o.stream.crc = true;
	for (size_t bit = 0; bit < 8 * 120; bit += 5) {
		bench_open(&t, &o, 4096);
		memcpy(before, t.mb, sizeof(before));
		assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
		end_send_all(t.a);
		assert_true(t.a->wire_len * 8 > bit);
		t.a->wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		pair_run(&t.p);
		assert_memory_equal(t.mb, before, sizeof(before));
		/* flipping a lower bit makes the length wrong, so that the end of the FPDU may be
		 * missing */
		if (bit >= 16) {
			expect_terminated(t.b, true, TERM_MPA_CRC);
			assert_int_equal(qp_counters(t.b->qp)->crc_errors, 1);
		}
		bench_close(&t);
	}
}

static void the_end_of_the_stream_inside_an_fpdu_is_an_error(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, 4096);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 8), 0);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, 100, t.mrb, 0), 0);
	end_gather(t.a, 50, NULL);
	end_take(t.b, 50);
	qp_on_eof(t.b->qp);
	assert_int_equal(t.b->async, IBV_EVENT_QP_FATAL);
	expect_wc(&t.b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static void the_end_of_the_stream_between_fpdus_is_a_disconnect(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, 4096);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 8), 0);
	assert_int_equal(end_read(t.b, 2, t.mrb, 0, 8, t.mra, 0), 0);
	assert_int_equal(end_write(t.b, 3, t.mrb, 0, 8, t.mra, 0), 0);
	end_send_all(t.b);
	qp_on_eof(t.b->qp);
	assert_int_equal(t.b->asyncs, 0);
	assert_true(qp_is_failed(t.b->qp) && qp_tx_is_done(t.b->qp));
	assert_null(qp_terminate(t.b->qp, NULL));
	expect_wc(&t.b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.b->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.b->scq, 3, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

static void bytes_may_come_before_the_start_and_the_buffer(void **state)
{
	struct pair_options o = pair_defaults();
	struct qp_config cfg;
	struct ddp_hdr hdr;
	uint8_t fpdu[64];
	struct bench t;
	struct qp *qp;
	size_t len;

	bench_open(&t, &o, 4096);
	cfg = (struct qp_config){.mrs = t.b->mrs,
				 .pd = &t.b->pd,
				 .send_cq = &t.b->scq,
				 .recv_cq = &t.b->rcq,
				 .qp_num = 9};
	assert_int_equal(qp_new(&cfg, &qp), 0);
	hdr = hdr_tagged(RDMAP_WRITE, t.mrb->ibv.rkey, t.mrb->iova, true);
	len = fpdu_make(fpdu, &hdr, "AAAAAAAA", 8, false);
	qp_rx_push(qp, fpdu, len - 5);
	o.stream.consent = false; /* with consent a HELLO would be the first message */
	assert_int_equal(qp_start(qp, &o.stream), 0);
	assert_memory_not_equal(t.mb, "AAAAAAAA", 8);
	qp_rx_push(qp, fpdu + len - 5, 5);
	assert_memory_equal(t.mb, "AAAAAAAA", 8);
	assert_true(qp_rx_needs_buf(qp));
	qp_rx_push(qp, fpdu, 3);
	qp_delete(qp);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VOLATILE_TEST(without_crc_large_payloads_go_straight_to_memory),
		VOLATILE_TEST(after_a_large_payload_little_is_read_ahead),
		VOLATILE_TEST(a_read_response_goes_straight_to_memory),
		VOLATILE_TEST(a_send_goes_straight_into_several_segments),
		VOLATILE_TEST(a_region_dies_while_its_write_is_half_received),
		cmocka_unit_test(a_write_to_vanished_memory_is_terminated),
		VOLATILE_TEST(a_fault_of_the_llp_ends_the_receive_it_was_for),
		cmocka_unit_test(an_aligned_word_is_written_whole),
		cmocka_unit_test(with_crc_a_flipped_bit_changes_no_memory),
		cmocka_unit_test(the_end_of_the_stream_inside_an_fpdu_is_an_error),
		cmocka_unit_test(the_end_of_the_stream_between_fpdus_is_a_disconnect),
		cmocka_unit_test(bytes_may_come_before_the_start_and_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
