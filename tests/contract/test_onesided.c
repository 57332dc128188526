/* SPDX-License-Identifier: BSD-3-Clause */
/* test_onesided.c -- reads and writes of every size and alignment, and the atomic write. */
#include <sys/mman.h>

#include "ends.h"

#define MIB     (1u << 20)
#define BIGGEST (16 * MIB)
#define MARGIN  8192 /* bytes around each transfer, which must not change */

static const size_t sizes[] = {0, 1, 7, 8, 9, 4096, MIB, BIGGEST};
/* The offsets in the two regions at which an operation begins. */
static const size_t begins[][2] = {{0, 0}, {1, 4095}, {4093, 3}, {8, 8}};

#define N_SIZES  (sizeof(sizes) / sizeof(sizes[0]))
#define N_BEGINS (sizeof(begins) / sizeof(begins[0]))

typedef void transfer_fn(struct ends *d, size_t cli_at, size_t srv_at, size_t len);

/* Expect the pattern in exactly `len` bytes at dst + at, and unchanged margins around them. */
static void expect_copied(const uint8_t *dst, size_t at, size_t len, unsigned seed)
{
	assert_true(ends_is_filled(dst + at, len, seed));
	assert_true(ends_is_zero(dst, at));
	assert_true(ends_is_zero(dst + at + len, MARGIN));
}

static void for_all_sizes(transfer_fn *transfer)
{
	/* The guest lab is slow. */
	const size_t large_begins = ends_is_kernels() ? 1 : N_BEGINS;
	const size_t largest = ends_is_kernels() ? MIB : BIGGEST;
	struct ends_opts opts = {.buf_size = BIGGEST + 2 * MARGIN};
	struct ends d;

	ends_open(&d, &opts);
	for (size_t s = 0; s < N_SIZES && sizes[s] <= largest; s++)
		for (size_t b = 0; b < (sizes[s] > 4096 ? large_begins : N_BEGINS); b++)
			transfer(&d, begins[b][0], begins[b][1], sizes[s]);
	ends_close(&d);
}

static void write_and_check(struct ends *d, size_t cli_at, size_t srv_at, size_t len)
{
	memset(d->srv_buf, 0, srv_at + len + MARGIN);
	ends_fill(d->cli_buf + cli_at, len, (unsigned)srv_at);
	OK(rpma_write(d->cli, d->at_srv, srv_at, d->cli_mr, cli_at, len, RPMA_F_COMPLETION_ALWAYS,
		      d));
	ends_expect_wc(d->cli, IBV_WC_RDMA_WRITE, d);
	ends_flush(d->cli, d->at_srv, srv_at, len);
	expect_copied(d->srv_buf, srv_at, len, (unsigned)srv_at);
}

static void writes_place_exactly_their_bytes(void **state)
{
	for_all_sizes(write_and_check);
}

static void read_and_check(struct ends *d, size_t cli_at, size_t srv_at, size_t len)
{
	/*
	 * siw corrupts short Read Responses that cross a page boundary (doc/wire.md, section 10).
	 */
	if (ends_is_kernels() && ends_is_tcp() && len <= 32 && srv_at % 4096 + len > 4096)
		return;
	memset(d->cli_buf, 0, cli_at + len + MARGIN);
	ends_fill(d->srv_buf + srv_at, len, (unsigned)cli_at);
	OK(rpma_read(d->cli, d->cli_mr, cli_at, d->at_srv, srv_at, len, RPMA_F_COMPLETION_ALWAYS,
		     d));
	ends_expect_wc(d->cli, IBV_WC_RDMA_READ, d);
	expect_copied(d->cli_buf, cli_at, len, (unsigned)cli_at);
}

static void reads_fetch_exactly_their_bytes(void **state)
{
	for_all_sizes(read_and_check);
}

static void either_end_may_write_and_read(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	if (ends_is_plain()) /* the initiator has to send the first message (RFC 5044 s7.1.3) */
		ends_flush(d.cli, d.at_srv, 0, 8);
	ends_fill(d.srv_buf, 1000, 1);
	OK(rpma_write(d.srv, d.at_cli, 500, d.srv_mr, 0, 1000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.srv, d.at_cli, 500, 1000);
	assert_true(ends_is_filled(d.cli_buf + 500, 1000, 1));
	OK(rpma_read(d.srv, d.srv_mr, 4000, d.at_cli, 500, 1000, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.srv, IBV_WC_RDMA_READ, &d);
	assert_true(ends_is_filled(d.srv_buf + 4000, 1000, 1));
	ends_close(&d);
}

/* One thread posts Writes at both ends, far more than fit into the sockets' buffers. */
static void both_ends_write_at_once(void **state)
{
	struct ends_opts opts = {.buf_size = 2 * BIGGEST};
	struct ends d;

	ends_open(&d, &opts);
	ends_fill(d.cli_buf, BIGGEST, 1);
	ends_fill(d.srv_buf, BIGGEST, 2);
	OK(rpma_write(d.cli, d.at_srv, BIGGEST, d.cli_mr, 0, BIGGEST, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
	OK(rpma_write(d.srv, d.at_cli, BIGGEST, d.srv_mr, 0, BIGGEST, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
	ends_flush(d.cli, d.at_srv, BIGGEST, BIGGEST);
	ends_flush(d.srv, d.at_cli, BIGGEST, BIGGEST);
	assert_true(ends_is_filled(d.srv_buf + BIGGEST, BIGGEST, 1));
	assert_true(ends_is_filled(d.cli_buf + BIGGEST, BIGGEST, 2));
	ends_close(&d);
}

/* The queue holds more Reads than are allowed to be outstanding together. All complete in order. */
static void many_reads_wait_their_turn(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(400, 0, 400, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	struct ends d;

	ends_open(&d, &opts);
	ends_fill(d.srv_buf, 400 * 100, 1);
	for (size_t i = 0; i < 400; i++)
		OK(rpma_read(d.cli, d.cli_mr, i * 100, d.at_srv, i * 100, 100,
			     RPMA_F_COMPLETION_ALWAYS, (void *)i));
	for (size_t i = 0; i < 400; i++)
		ends_expect_wc(d.cli, IBV_WC_RDMA_READ, (void *)i);
	assert_true(ends_is_filled(d.cli_buf, 400 * 100, 1));
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void read_sees_the_write_before_it(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	for (unsigned i = 0; i < 200; i++) {
		ends_fill(d.cli_buf, 3000, i);
		OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 3000, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_read(d.cli, d.cli_mr, 8192, d.at_srv, 0, 3000, RPMA_F_COMPLETION_ALWAYS,
			     &d));
		ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
		assert_true(ends_is_filled(d.cli_buf + 8192, 3000, i));
	}
	ends_close(&d);
}

static void operations_without_memory_complete(void **state)
{
	struct ibv_wc wc = {0};
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_write(d.cli, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, &wc));
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &wc);
	OK(rpma_read(d.cli, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
	if (ends_is_kernels() && ends_is_tcp()) { /* siw does not accept a receive without memory */
		ends_close(&d);
		return;
	}
	OK(rpma_recv(d.srv, NULL, 0, 0, &d));
	OK(rpma_send(d.cli, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, &wc));
	ends_expect_wc(d.cli, IBV_WC_SEND, &wc);
	ends_wait_wc(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 0);
	ends_close(&d);
}

static void operations_with_half_their_memory_are_invalid(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	assert_int_equal(rpma_write(d.cli, d.at_srv, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_read(d.cli, NULL, 0, d.at_srv, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_write(d.cli, NULL, 0, NULL, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, 0, NULL), RPMA_E_INVAL);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_place_exactly_their_bytes),
		cmocka_unit_test(reads_fetch_exactly_their_bytes),
		cmocka_unit_test(either_end_may_write_and_read),
		cmocka_unit_test(both_ends_write_at_once),
		cmocka_unit_test(many_reads_wait_their_turn),
		cmocka_unit_test(read_sees_the_write_before_it),
		cmocka_unit_test(operations_without_memory_complete),
		cmocka_unit_test(operations_with_half_their_memory_are_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
