/* SPDX-License-Identifier: BSD-3-Clause */
/* test_imm.c -- immediate data: the peer consents, is declared to consent, or refuses. */
#include "ends.h"

#include <arpa/inet.h>

/* Returns true if the environment declares that the peer supports RFC 7306 and no other
 * extension. */
static bool is_declared(void)
{
	const char *s = getenv("SOFTRNIC_PEER_RFC7306");

	return s && !strcmp(s, "1");
}

/* Returns true if a Write can carry immediate data: always with InfiniBand and RoCE, never with RFC
 * 5040. */
static bool writes_carry_imm(void)
{
	return !ends_is_plain() || is_declared() || !ends_is_tcp();
}

/* Returns true if a Send can carry immediate data. Neither RFC 5040 nor RFC 7306 has such a
 * Send. */
static bool sends_carry_imm(void)
{
	return !ends_is_plain() || !ends_is_tcp();
}

static void expect_imm(struct rpma_conn *conn, enum ibv_wc_opcode opcode, size_t len, uint32_t imm,
		       const void *op_context)
{
	struct ibv_wc wc;

	ends_wait_wc(conn, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.byte_len, len);
	/* On RoCE the completion has the flag of a global routing header, too. */
	assert_int_equal(wc.wc_flags & ~(unsigned)IBV_WC_GRH, IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), imm);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, op_context);
}

static void expect_connection_is_whole(struct ends *d)
{
	OK(rpma_recv(d->srv, d->srv_mr, 0, 64, d));
	OK(rpma_send(d->cli, d->cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, d));
	ends_expect_wc(d->cli, IBV_WC_SEND, d);
	ends_expect_received(d->srv, 8, d);
}

static void a_write_with_immediate_notifies(void **state)
{
	static const size_t sizes[] = {0, 1, 8, 4096, 60000};
	struct ends d;

	ends_open(&d, NULL);
	if (!writes_carry_imm()) {
		assert_int_equal(rpma_write_with_imm(d.cli, d.at_srv, 0, d.cli_mr, 0, 8,
						     RPMA_F_COMPLETION_ALWAYS, 42, NULL),
				 RPMA_E_PROVIDER);
		assert_true(ends_is_zero(d.srv_buf, 8));
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (!writes_carry_imm())
			break;
		ends_fill(d.cli_buf, sizes[i], (unsigned)i);
		OK(rpma_recv(d.srv, NULL, 0, 0, &sizes[i]));
		OK(rpma_write_with_imm(d.cli, d.at_srv, 8, d.cli_mr, 0, sizes[i],
				       RPMA_F_COMPLETION_ALWAYS, 0xdead0000 + (uint32_t)i, &d));
		ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &d);
		expect_imm(d.srv, IBV_WC_RECV_RDMA_WITH_IMM, sizes[i], 0xdead0000 + (uint32_t)i,
			   &sizes[i]);
		assert_true(ends_is_filled(d.srv_buf + 8, sizes[i], (unsigned)i));
	}
	expect_connection_is_whole(&d);
	ends_close(&d);
}

static void a_write_with_immediate_may_carry_nothing_else(void **state)
{
	struct ends d;
	int ret;

	ends_open(&d, NULL);
	/* siw does not accept a receive without memory */
	OK(rpma_recv(d.srv, ends_is_kernels() ? d.srv_mr : NULL, 0, 0, &ret));
	ret = rpma_write_with_imm(d.cli, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, 7, NULL);
	if (!writes_carry_imm()) {
		assert_int_equal(ret, RPMA_E_PROVIDER);
	} else {
		OK(ret);
		expect_imm(d.srv, IBV_WC_RECV_RDMA_WITH_IMM, 0, 7, &ret);
	}
	ends_close(&d);
}

static void a_send_with_immediate_is_one_message(void **state)
{
	static const size_t sizes[] = {0, 1, 8, 4096, 60000};
	struct ends d;

	ends_open(&d, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (!sends_carry_imm()) { /* RFC 7306 has no Send with immediate data */
			assert_int_equal(rpma_send_with_imm(d.cli, d.cli_mr, 0, sizes[i],
							    RPMA_F_COMPLETION_ALWAYS, 42, NULL),
					 RPMA_E_PROVIDER);
			continue;
		}
		ends_fill(d.cli_buf, sizes[i], (unsigned)i);
		OK(rpma_recv(d.srv, d.srv_mr, 0, ENDS_BUF, &sizes[i]));
		OK(rpma_send_with_imm(d.cli, d.cli_mr, 0, sizes[i], RPMA_F_COMPLETION_ALWAYS,
				      (uint32_t)i, &d));
		ends_expect_wc(d.cli, IBV_WC_SEND, &d);
		expect_imm(d.srv, IBV_WC_RECV, sizes[i], (uint32_t)i, &sizes[i]);
		assert_true(ends_is_filled(d.srv_buf, sizes[i], (unsigned)i));
	}
	expect_connection_is_whole(&d);
	ends_close(&d);
}

static void immediates_that_come_before_their_receives_keep_their_place(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	if (sends_carry_imm()) {
		OK(rpma_write_with_imm(d.cli, d.at_srv, 0, d.cli_mr, 0, 100,
				       RPMA_F_COMPLETION_ON_ERROR, 1, NULL));
		OK(rpma_send_with_imm(d.cli, d.cli_mr, 0, 20, RPMA_F_COMPLETION_ON_ERROR, 2, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 0, 30, RPMA_F_COMPLETION_ALWAYS, NULL));
		ends_sleep_ms(50);
		for (int i = 0; i < 3; i++)
			OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d));
		expect_imm(d.srv, IBV_WC_RECV_RDMA_WITH_IMM, 100, 1, &d);
		expect_imm(d.srv, IBV_WC_RECV, 20, 2, &d);
		ends_expect_received(d.srv, 30, &d);
		ends_expect_wc(d.cli, IBV_WC_SEND, NULL);
	}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_with_immediate_notifies),
		cmocka_unit_test(a_write_with_immediate_may_carry_nothing_else),
		cmocka_unit_test(a_send_with_immediate_is_one_message),
		cmocka_unit_test(immediates_that_come_before_their_receives_keep_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
