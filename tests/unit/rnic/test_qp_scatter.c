/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads with several SGEs: the answer is scattered into them in order. */
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

enum { LEN = 256 << 10, PIECES = 4 };

static int post_read(struct qp_end *e, uint64_t wr_id, struct ibv_sge *sges, int n,
		     const struct mr *remote)
{
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
				       .sg_list = sges,
				       .num_sge = n,
				       .opcode = IBV_WR_RDMA_READ,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {remote->iova, remote->ibv.rkey}};

	return qp_post_send(e->qp, &wr, &bad);
}

static struct ibv_sge piece(const struct mr *mr, size_t off, size_t len)
{
	return (struct ibv_sge){mr->iova + off, (uint32_t)len, mr->ibv.lkey};
}

/* The pieces lie in reverse order, with gaps, in two regions; one of them is empty. */
static void read_into_pieces(struct bench *t, const size_t lens[PIECES], size_t chunk)
{
	struct mr *half = end_reg(t->a, t->ma, LEN / 2, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sges[PIECES];
	size_t end = LEN - 1, at = 0;

	memset(t->ma, 0xee, LEN);
	for (int i = 0; i < PIECES; i++) {
		end -= lens[i] + 1;
		sges[i] = piece(end + lens[i] <= LEN / 2 ? half : t->mra, end, lens[i]);
	}
	assert_int_equal(post_read(t->a, 1, sges, PIECES, t->mrb), 0);
	pair_run_chunked(&t->p, chunk);
	expect_wc(&t->a->scq, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < PIECES; i++) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)sges[i].addr;

		assert_memory_equal(p, t->mb + at, lens[i]);
		assert_int_equal(p[lens[i]], 0xee);
		at += lens[i];
	}
	bench_dereg(t->a, &half);
}

static void pieces_of_any_length_in_chunks_of_any_length(void **state)
{
	static const size_t lens[][PIECES] = {
		{1, 2, 3, 4}, {0, 7, 0, 1}, {100000, 1, 70000, 5}, {1400, 0, 60000, 65536}};
	static const size_t chunks[] = {1, 7, 90, 1460, 70000, LEN};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (size_t k = 0; k < 2 * sizeof(chunks) / sizeof(chunks[0]); k++) {
			size_t chunk = chunks[k / 2];
			struct pair_options o = pair_defaults();
			struct bench t;

			if (chunk < 90 && lens[i][0] > 1000) /* takes too long */
				continue;
			o.stream.crc = k % 2;
			bench_open(&t, &o, LEN);
			t.a->in_place = !o.stream.crc;
			read_into_pieces(&t, lens[i], chunk);
			bench_close(&t);
		}
	}
}

static void each_piece_is_checked_before_the_request_is_sent(void **state)
{
	for (int bad = 0; bad < 2; bad++) {
		struct pair_options o = pair_defaults();
		struct ibv_sge sges[2];
		struct bench t;

		bench_open(&t, &o, LEN);
		sges[0] = piece(t.mra, 0, 8);
		sges[1] = piece(t.mra, 64, 8);
		sges[bad].addr = t.mra->iova + LEN - 4;
		assert_int_equal(post_read(t.a, 1, sges, 2, t.mrb), 0);
		pair_run(&t.p);
		expect_wc(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR);
		bench_close(&t);
	}
}

static void a_piece_that_is_deregistered_gets_no_bytes(void **state)
{
	struct pair_options o = pair_defaults();
	struct ibv_sge sges[2];
	struct bench t;
	struct mr *mr;

	bench_open(&t, &o, LEN);
	mr = end_reg(t.a, t.ma + 64, 64, IBV_ACCESS_LOCAL_WRITE);
	memset(t.ma, 0xee, 128);
	sges[0] = piece(t.mra, 0, 8);
	sges[1] = piece(mr, 0, 8);
	assert_int_equal(post_read(t.a, 1, sges, 2, t.mrb), 0);
	end_send_all(t.a);
	bench_dereg(t.a, &mr);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(t.ma[64], 0xee);
	bench_close(&t);
}

static void too_many_pieces_or_bytes_are_refused(void **state)
{
	struct bench *t = *state;
	struct ibv_sge sges[5] = {{0}};

	assert_int_equal(post_read(t->a, 1, sges, 5, t->mrb), EINVAL);
	sges[0].length = sges[1].length = 1u << 31;
	assert_int_equal(post_read(t->a, 1, sges, 2, t->mrb), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_any_length_in_chunks_of_any_length),
		cmocka_unit_test(each_piece_is_checked_before_the_request_is_sent),
		cmocka_unit_test(a_piece_that_is_deregistered_gets_no_bytes),
		BENCH_TEST(too_many_pieces_or_bytes_are_refused, LEN),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
