/* SPDX-License-Identifier: BSD-3-Clause */
/* Immediate data: a Write followed by an Immediate (RFC 7306 s6), and a Send with immediate
 * data. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN 65536

static int post_imm(struct bench *t, enum ibv_wr_opcode op, uint64_t id, size_t len, uint32_t imm,
		    unsigned flags)
{
	struct ibv_sge sge = {t->mra->iova, (uint32_t)len, t->mra->ibv.lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .opcode = op,
					 .sg_list = &sge,
					 .num_sge = len > 0,
					 .send_flags = flags | IBV_SEND_SIGNALED,
					 .imm_data = htonl(imm),
				 };

	wr.wr.rdma.remote_addr = t->mrb->iova;
	wr.wr.rdma.rkey = t->mrb->ibv.rkey;
	return qp_post_send(t->a->qp, &wr, &bad);
}

static void expect_imm(struct bench *t, uint64_t id, enum ibv_wc_opcode op, size_t len,
		       uint32_t imm)
{
	struct ibv_wc wc = next_wc(&t->b->rcq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.opcode, op);
	assert_int_equal(wc.byte_len, len);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), imm);
}

static void exchange(const struct pair_options *o, size_t chunk)
{
	static const size_t sizes[] = {0, 1, 8, 1400, 5000};
	struct bench t;

	bench_open(&t, o, LEN);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint32_t imm = 0x01020304 + (uint32_t)i;

		assert_int_equal(end_recv(t.b, 10 + i, NULL, 0, 0), 0);
		assert_int_equal(post_imm(&t, IBV_WR_RDMA_WRITE_WITH_IMM, i, sizes[i], imm, 0), 0);
		pair_run_chunked(&t.p, chunk);
		assert_int_equal(next_wc(&t.a->scq).opcode, IBV_WC_RDMA_WRITE);
		expect_imm(&t, 10 + i, IBV_WC_RECV_RDMA_WITH_IMM, sizes[i], imm);
		assert_memory_equal(t.mb, t.ma, sizes[i]);
		if (!o->stream.consent)
			continue;
		assert_int_equal(end_recv(t.b, 20 + i, t.mrb, 32768, 8192), 0);
		assert_int_equal(post_imm(&t, IBV_WR_SEND_WITH_IMM, i, sizes[i], ~imm, 0), 0);
		pair_run_chunked(&t.p, chunk);
		assert_int_equal(next_wc(&t.a->scq).opcode, IBV_WC_SEND);
		expect_imm(&t, 20 + i, IBV_WC_RECV, sizes[i], ~imm);
		assert_memory_equal(t.mb + 32768, t.ma, sizes[i]);
	}
	expect_no_wc(&t.b->rcq);
	bench_close(&t);
}

static void it_arrives_with_what_it_belongs_to(void **state)
{
	struct pair_options o = pair_defaults();

	for (int crc = 0; crc < 2; crc++) {
		o.stream.crc = crc;
		exchange(&o, SIZE_MAX);
		exchange(&o, 7);
	}
}

static void a_declared_peer_gets_what_the_rfc_has(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.consent = o.stream.peer_flushes = false;
	o.peer_rfc7306 = true;
	exchange(&o, SIZE_MAX);
	bench_open(&t, &o, LEN);
	assert_int_equal(post_imm(&t, IBV_WR_SEND_WITH_IMM, 1, 8, 1, 0), EINVAL);
	bench_close(&t);
}

static void an_undeclared_peer_gets_nothing(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	o.stream.consent = o.stream.peer_flushes = false;
	bench_open(&t, &o, LEN);
	assert_int_equal(post_imm(&t, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 8, 1, 0), EINVAL);
	assert_int_equal(post_imm(&t, IBV_WR_SEND_WITH_IMM, 2, 8, 1, 0), EINVAL);
	assert_true(qp_is_idle(t.a->qp));
	bench_close(&t);
}

static void a_solicited_one_wakes_and_others_do_not(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
	static const uint8_t codes[2][2] = {{RDMAP_IMM, RDMAP_IMM_SE}, {0x0e, 0x1e}};
	struct pair_options o = pair_defaults();

	for (int op = 0; op < 2; op++)
		for (int se = 0; se < 2; se++) {
			uint8_t ctrl;
			struct bench t;

			bench_open(&t, &o, LEN);
			assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 64), 0);
			assert_int_equal(
				post_imm(&t, ops[op], 1, 0, 5, se ? IBV_SEND_SOLICITED : 0), 0);
			end_send_all(t.a);
			/* With a Write, the Immediate follows the empty Write, which is an FPDU of
			 * 20 bytes. */
			ctrl = t.a->wire[(op == 0 ? 20 : 0) + 3];
			assert_int_equal(ctrl, 0x40 | codes[op][se]);
			assert_int_equal(rdmap_ctrl_is_solicited(ctrl), se);
			pair_run(&t.p);
			assert_int_equal(next_wc(&t.b->rcq).status, IBV_WC_SUCCESS);
			bench_close(&t);
		}
}

static void the_32_bits_are_the_first_of_the_8_bytes(void **state)
{
	struct bench *t = *state;
	static const uint8_t want[] = {0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0};

	assert_int_equal(post_imm(t, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 0x11223344, 0), 0);
	end_send_all(t->a);
	assert_int_equal(t->a->wire_len, 20 + 32);
	assert_memory_equal(t->a->wire + 20 + 2 + 18, want, sizeof(want));
}

static void parked_ones_keep_their_order_and_length(void **state)
{
	struct bench *t = *state;

	assert_int_equal(post_imm(t, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 100, 1, 0), 0);
	assert_int_equal(post_imm(t, IBV_WR_SEND_WITH_IMM, 2, 20, 2, 0), 0);
	assert_int_equal(post_imm(t, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 300, 3, 0), 0);
	assert_int_equal(end_read(t->a, 4, t->mra, 0, 8, t->mrb, 0), 0);
	pair_run(&t->p);
	for (uint64_t id = 1; id <= 3; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
	expect_no_wc(&t->a->scq); /* the Read waits for all earlier requests */
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(end_recv(t->b, id, t->mrb, 32768, 64), 0);
	expect_imm(t, 1, IBV_WC_RECV_RDMA_WITH_IMM, 100, 1);
	expect_imm(t, 2, IBV_WC_RECV, 20, 2);
	expect_imm(t, 3, IBV_WC_RECV_RDMA_WITH_IMM, 300, 3);
	pair_run(&t->p);
	expect_wc(&t->a->scq, 4, IBV_WC_SUCCESS);
}

static void an_immediate_alone_says_no_length(void **state)
{
	struct bench *t = *state;
	static const uint8_t imm[8] = {0, 0, 0, 9};
	struct ddp_hdr hdr;

	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(end_recv(t->b, id, t->mrb, 0, 64), 0);
	hdr = hdr_tagged(RDMAP_WRITE, t->mrb->ibv.rkey, t->mrb->iova, true);
	end_inject_fpdu(t->b, &hdr, "AAAAAAAA", 8);
	hdr = hdr_untagged(RDMAP_SEND, 0, 1, 0, true);
	end_inject_fpdu(t->b, &hdr, "BBBB", 4);
	expect_wc(&t->b->rcq, 1, IBV_WC_SUCCESS);
	for (uint32_t msn = 2; msn <= 3; msn++) {
		hdr = hdr_untagged(RDMAP_IMM, 0, msn, 0, true);
		end_inject_fpdu(t->b, &hdr, imm, sizeof(imm));
		expect_imm(t, msn, IBV_WC_RECV_RDMA_WITH_IMM, 0, 9);
	}
}

static void an_immediate_inside_a_send_is_refused(void **state)
{
	struct bench *t = *state;
	static const uint8_t imm[8];
	struct ddp_hdr hdr = hdr_untagged(RDMAP_SEND, 0, 1, 0, false);

	assert_int_equal(end_recv(t->b, 1, t->mrb, 0, 64), 0);
	end_inject_fpdu(t->b, &hdr, "BBBBBBBB", 8);
	hdr = hdr_untagged(RDMAP_IMM, 0, 1, 0, true);
	end_inject_fpdu(t->b, &hdr, imm, sizeof(imm));
	expect_terminated(t->b, true, TERM_DDP_BAD_MO);
	expect_wc(&t->b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_arrives_with_what_it_belongs_to),
		cmocka_unit_test(a_declared_peer_gets_what_the_rfc_has),
		cmocka_unit_test(an_undeclared_peer_gets_nothing),
		cmocka_unit_test(a_solicited_one_wakes_and_others_do_not),
		BENCH_TEST(the_32_bits_are_the_first_of_the_8_bytes, LEN),
		BENCH_TEST(parked_ones_keep_their_order_and_length, LEN),
		BENCH_TEST(an_immediate_alone_says_no_length, LEN),
		BENCH_TEST(an_immediate_inside_a_send_is_refused, LEN),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
