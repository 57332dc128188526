/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_changing.c -- a program rewrites a source continually while the device sends the source. Any
 * mixture of bytes can arrive, but the connection must not break, for instance because bytes
 * changed after their checksum was computed.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "ends_ext.h"

#define BUF (2u << 20)
/* the test rewrites the lower half of each buffer, and peers write to the upper half */
#define SINK   (BUF / 2)
#define ROUNDS 150
#define BYTES  (16u << 20) /* at most this many bytes of each size */

static struct ends d;
static atomic_bool done;
static atomic_size_t scope; /* bytes that are being sent: the thread rewrites only these */
static unsigned long operations, mixtures;

/* The race is intended, so hide it from ThreadSanitizer. */
__attribute__((no_sanitize("thread"))) static void *rewrite(void *arg)
{
	for (unsigned pass = 0; !atomic_load(&done); pass++) {
		volatile uint64_t *a = (uint64_t *)d.cli_buf, *b = (uint64_t *)d.srv_buf;
		size_t n = atomic_load(&scope) / sizeof(*a);
		uint64_t value = pass % 251 * 0x0101010101010101ull;

		for (size_t i = 0; i < n; i++)
			a[i] = b[i] = value;
	}
	return NULL;
}

static void expect_success(struct rpma_conn *conn)
{
	struct ibv_wc wc = {0};

	ends_wait_wc(conn, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("%s after %lu operations", ibv_wc_status_str(wc.status), operations);
	operations++;
}

/* Count a transfer whose first and last bytes differ: the source changed while it was sent. */
static void count_mixture(const uint8_t *sink, size_t len)
{
	mixtures += sink[0] != sink[len - 1];
}

static void write_some(size_t len)
{
	for (int i = 0; i < 3; i++)
		OK(rpma_write(d.cli, d.at_srv, SINK, d.cli_mr, 0, len, RPMA_F_COMPLETION_ALWAYS,
			      NULL));
	OK(rpma_flush(d.cli, d.at_srv, SINK, len, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
	for (int i = 0; i < 4; i++)
		expect_success(d.cli);
	count_mixture(d.srv_buf + SINK, len);
}

static void read_some(size_t len)
{
	OK(rpma_read(d.cli, d.cli_mr, SINK, d.at_srv, 0, len, RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_success(d.cli);
	count_mixture(d.cli_buf + SINK, len);
}

static void send_some(struct rpma_conn *from, struct rpma_mr_local *from_mr, struct rpma_conn *to,
		      struct rpma_mr_local *to_mr, size_t len)
{
	OK(rpma_recv(to, to_mr, SINK, len, NULL));
	OK(rpma_send(from, from_mr, 0, len, RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_success(from);
	expect_success(to);
}

static void expect_clean(struct rpma_conn *conn)
{
	assert_int_equal(ends_counter(conn, "crc_errors"), 0);
	assert_int_equal(ends_counter(conn, "terminates_in"), 0);
	assert_int_equal(ends_counter(conn, "terminates_out"), 0);
	assert_true(ends_counter(conn, "rx_fpdus") > 0);
}

static void a_changing_source_breaks_no_connection(void **state)
{
	static const size_t sizes[] = {1, 8, 64, 511, 512, 513, 1448, 4096, 65536, SINK};
	struct ends_opts opts = {.buf_size = BUF};
	pthread_t thread;

	ends_open(&d, &opts);
	assert_int_equal(pthread_create(&thread, NULL, rewrite, NULL), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i];

		atomic_store(&scope, (len + 7) & ~(size_t)7);
		for (size_t k = 0; k < ROUNDS && (k + 1) * len <= BYTES; k++) {
			write_some(len);
			read_some(len);
			send_some(d.cli, d.cli_mr, d.srv, d.srv_mr, len);
			send_some(d.srv, d.srv_mr, d.cli, d.cli_mr, len);
		}
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	if (!ends_is_kernels()) { /* devices have no counters */
		expect_clean(d.cli);
		expect_clean(d.srv);
	}
	print_message("%lu operations; %lu changed on their way\n", operations, mixtures);
	assert_true(operations > 5000 && mixtures > 0);
	/* Data that do not change arrive unchanged. */
	ends_fill(d.cli_buf, SINK, 7);
	OK(rpma_write(d.cli, d.at_srv, SINK, d.cli_mr, 0, SINK, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, SINK, SINK);
	assert_true(ends_is_filled(d.srv_buf + SINK, SINK, 7));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changing_source_breaks_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
