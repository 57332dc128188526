/* SPDX-License-Identifier: BSD-3-Clause */
/* test_batch.c -- operations posted in a batch: the number of system calls, the order, and the
 * refusal of a whole batch. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends_ext.h"

static atomic_bool disk_waits;

/* Replaces libc's msync() by a function that waits as for a slow disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	while (atomic_load(&disk_waits))
		ends_sleep_ms(1);
	return (int)syscall(SYS_msync, addr, len, flags);
}

enum { WRITES = 16, EACH = 1024 };

/* Returns the strictest type of flush that this peer permits without a declaration. */
static enum rpma_flush_type best_type(void)
{
	return ends_is_plain() ? RPMA_FLUSH_TYPE_VISIBILITY : RPMA_FLUSH_TYPE_PERSISTENT;
}

static void open_with_sq(struct ends *d, uint32_t sq)
{
	struct rpma_conn_cfg *cfg = ends_cfg(2 * sq, 0, sq, 0);
	struct ends_opts opts = {.cli_cfg = cfg, .srv_cfg = cfg};

	ends_open(d, &opts);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void add_write(struct rpma_batch *b, struct ends *d, size_t at, size_t len)
{
	OK(rpma_batch_write(b, d->at_srv, at, d->cli_mr, at, len, RPMA_F_COMPLETION_ON_ERROR,
			    NULL));
}

static uint32_t count_of(const struct rpma_batch *b)
{
	uint32_t n = 0;

	OK(rpma_batch_get_count(b, &n));
	return n;
}

/* Returns true if the tx counters equal the number of system calls. They do so only over TCP, and
 * only if no message moves the connection to rings. */
static bool counts_sends(void)
{
	const char *shm = getenv("SOFTRNIC_SHM");

	return !ends_is_kernels() && (ends_is_plain() || (shm && strcmp(shm, "0") == 0));
}

static uint64_t gathers(const struct ends *d)
{
	return counts_sends() ? ends_counter(d->cli, "tx_gathers") : 0;
}

static void sixteen_writes_and_a_flush_leave_in_one_sendmsg(void **state)
{
	struct rpma_batch *b;
	struct ends d;

	open_with_sq(&d, 2 * WRITES);
	OK(rpma_batch_new(d.cli, WRITES + 1, &b));
	for (size_t len = 64; len <= EACH; len *= 4) {
		uint64_t before = gathers(&d);

		ends_fill(d.cli_buf, ENDS_BUF, (unsigned)len);
		for (size_t i = 0; i < WRITES; i++)
			add_write(b, &d, 2 * i * EACH, len);
		OK(rpma_batch_flush(b, d.at_srv, 0, (size_t)2 * WRITES * EACH, best_type(),
				    RPMA_F_COMPLETION_ALWAYS, &d));
		OK(rpma_batch_post(b));
		if (counts_sends())
			assert_int_equal(gathers(&d) - before, 1);
		ends_expect_wc(d.cli, ends_flush_opcode(), &d);
		for (size_t i = 0; i < WRITES; i++)
			assert_memory_equal(d.srv_buf + 2 * i * EACH, d.cli_buf + 2 * i * EACH,
					    len);
	}
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

static void later_writes_of_a_batch_win(void **state)
{
	struct rpma_batch *b;
	struct ends d;

	open_with_sq(&d, 32);
	OK(rpma_batch_new(d.cli, 17, &b));
	for (size_t i = 0; i < 16; i++) {
		memset(d.cli_buf + 64 * i, (int)i + 1, 64);
		OK(rpma_batch_write(b, d.at_srv, 32 * i, d.cli_mr, 64 * i, 64,
				    RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	OK(rpma_batch_flush(b, d.at_srv, 0, 1024, RPMA_FLUSH_TYPE_VISIBILITY,
			    RPMA_F_COMPLETION_ALWAYS, &d));
	OK(rpma_batch_post(b));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(d.srv_buf[32 * i], i + 1);
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

static void every_operation_that_asks_for_a_completion_has_its_own(void **state)
{
	char tokens[4];
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_batch_new(d.cli, 4, &b));
	for (size_t i = 0; i < 4; i++)
		OK(rpma_batch_write(b, d.at_srv, i, d.cli_mr, 0, 1,
				    i == 2 ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS,
				    &tokens[i]));
	OK(rpma_batch_post(b));
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &tokens[0]);
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &tokens[1]);
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &tokens[3]);
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

/* Post data, flush and commit word. The word never arrives before the data, and the batch needs
 * only one round trip. */
static void an_atomic_write_after_a_flush_commits(void **state)
{
	const uint64_t *word;
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_batch_new(d.cli, 3, &b));
	word = (const uint64_t *)(d.srv_buf + 32768);
	for (uint64_t i = 1; i <= 200; i++) {
		char bytes[8];

		memcpy(bytes, &i, sizeof(bytes));
		ends_fill(d.cli_buf, 2000, (unsigned)i);
		add_write(b, &d, 0, 2000);
		OK(rpma_batch_flush(b, d.at_srv, 0, 2000, best_type(), RPMA_F_COMPLETION_ON_ERROR,
				    NULL));
		OK(rpma_batch_atomic_write(b, d.at_srv, 32768, bytes, RPMA_F_COMPLETION_ALWAYS,
					   &d));
		memset(bytes, 0xee, sizeof(bytes)); /* the device has copied the bytes */
		OK(rpma_batch_post(b));
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != i)
			assert_true(__atomic_load_n(word, __ATOMIC_RELAXED) == i - 1 ||
				    __atomic_load_n(word, __ATOMIC_RELAXED) == i);
		assert_true(ends_is_filled(d.srv_buf, 2000, (unsigned)i));
		ends_expect_wc(d.cli, ends_atomic_write_opcode(), &d);
	}
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

static void a_message_of_a_batch_arrives_after_its_writes(void **state)
{
	struct rpma_segment parts[2];
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 4096, 64, &d));
	OK(rpma_batch_new(d.cli, 2, &b));
	ends_fill(d.cli_buf, 1000, 5);
	parts[0] = (struct rpma_segment){d.cli_mr, 10, 20};
	parts[1] = (struct rpma_segment){d.cli_mr, 500, 30};
	add_write(b, &d, 0, 1000);
	OK(rpma_batch_send(b, parts, 2, RPMA_F_COMPLETION_ALWAYS, &d));
	memset(parts, 0, sizeof(parts)); /* the library has copied the array */
	OK(rpma_batch_post(b));
	ends_expect_received(d.srv, 50, &d);
	assert_true(ends_is_filled(d.srv_buf, 1000, 5));
	assert_memory_equal(d.srv_buf + 4096, d.cli_buf + 10, 20);
	assert_memory_equal(d.srv_buf + 4116, d.cli_buf + 500, 30);
	ends_expect_wc(d.cli, IBV_WC_SEND, &d);
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

/* Unsignalled operations leave the send queue some time later: flush until a slot is free. */
static void flush_when_there_is_room(struct ends *d)
{
	int ret;

	while ((ret = rpma_flush(d->cli, d->at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				 RPMA_F_COMPLETION_ALWAYS, d)) == RPMA_E_PROVIDER)
		ends_sleep_ms(1);
	OK(ret);
	ends_expect_wc(d->cli, ends_flush_opcode(), d);
}

/* A flush of a file occupies a slot of the send queue until the disk has the bytes. */
static void a_batch_that_does_not_fit_now_is_posted_later(void **state)
{
	struct ends_file file;
	struct rpma_batch *b;
	struct ends d;

	SOFTRNIC_ONLY(); /* RDMA devices do not call msync() */
	open_with_sq(&d, 4);
	ends_file_open(&file, &d, 4096);
	OK(rpma_batch_new(d.cli, 4, &b));
	ends_fill(d.cli_buf, 400, 9);
	atomic_store(&disk_waits, true);
	OK(rpma_write(d.cli, file.remote, 0, d.cli_mr, 0, 100, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, file.remote, 0, 100, best_type(), RPMA_F_COMPLETION_ALWAYS, &d));
	for (size_t i = 0; i < 4; i++)
		add_write(b, &d, 100 * i, 100);
	assert_int_equal(rpma_batch_post(b), RPMA_E_AGAIN);
	assert_int_equal(count_of(b), 4);
	atomic_store(&disk_waits, false);
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	/* the device sent no operation of the refused batch */
	assert_true(ends_is_zero(d.srv_buf, 400));
	OK(rpma_batch_post(b));
	assert_int_equal(count_of(b), 0);
	flush_when_there_is_room(&d);
	assert_true(ends_is_filled(d.srv_buf, 400, 9));
	OK(rpma_batch_delete(&b));
	ends_file_close(&file);
	ends_close(&d);
}

enum { PIECES = 1000, PIECE = 64 }; /* siw sometimes corrupts short pieces (doc/wire.md s10) */

/* Batches are posted faster than the device sends them; each is executed exactly once. */
static void batches_beyond_the_queue_arrive_in_their_order(void **state)
{
	struct rpma_batch *b;
	struct ibv_wc wc;
	int pending = 0;
	struct ends d;

	open_with_sq(&d, 4);
	OK(rpma_batch_new(d.cli, 4, &b));
	for (size_t at = 0; at < (size_t)PIECES * PIECE; at += PIECE) {
		uint32_t left;
		int ret;

		memset(d.cli_buf + at, (int)(at / PIECE % 251 + 1), PIECE);
		OK(rpma_batch_write(b, d.at_srv, at, d.cli_mr, at, PIECE, RPMA_F_COMPLETION_ALWAYS,
				    NULL));
		if (count_of(b) < 4)
			continue;
		while ((left = count_of(b)) > 0) {
			ret = rpma_batch_post(b);
			assert_true(ret == 0 || ret == RPMA_E_AGAIN);
			pending += (int)(left - count_of(b));
			/* The completion queue has twice as many slots as the send queue. */
			while (ret ? pending : pending > 4) {
				ends_wait_wc(d.cli, &wc);
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				pending--;
			}
		}
	}
	while (pending--)
		ends_wait_wc(d.cli, &wc);
	ends_flush(d.cli, d.at_srv, 0, 8);
	assert_memory_equal(d.srv_buf, d.cli_buf, (size_t)PIECES * PIECE);
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

/* A native atomic write to an odd address is refused; earlier writes of the same batch are not
 * sent, either. */
static void one_refused_operation_refuses_all(void **state)
{
	struct rpma_mr_remote *odd;
	struct rpma_mr_local *mr;
	struct rpma_batch *b;
	struct ends d;

	if (ends_is_plain())
		/* without extensions an atomic write is a plain write, which is allowed at any
		 * address */
		skip();
	ends_open(&d, NULL);
	mr = ends_reg(&d, d.srv_buf + 4, 4096);
	odd = ends_remote(mr);
	OK(rpma_batch_new(d.cli, 4, &b));
	ends_fill(d.cli_buf, 64, 1);
	add_write(b, &d, 0, 64);
	OK(rpma_batch_atomic_write(b, odd, 0, "1234567", RPMA_F_COMPLETION_ALWAYS, NULL));
	assert_int_equal(rpma_batch_post(b), RPMA_E_PROVIDER);
	assert_int_equal(count_of(b), 2);
	ends_flush(d.cli, d.at_srv, 0, 64);
	assert_true(ends_is_zero(d.srv_buf, 64));
	OK(rpma_batch_clear(b));
	add_write(b, &d, 0, 64);
	OK(rpma_batch_post(b));
	ends_flush(d.cli, d.at_srv, 0, 64);
	assert_true(ends_is_filled(d.srv_buf, 64, 1));
	OK(rpma_batch_delete(&b));
	OK(rpma_mr_remote_delete(&odd));
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
}

static void a_batch_of_a_connection_that_does_not_stand_is_refused(void **state)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_batch *b;
	struct ends d = {0};

	SOFTRNIC_ONLY(); /* RDMA devices can accept the request and drop it */
	ends_open(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	/* no program accepts the request, so the connection is not established */
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	OK(rpma_batch_new(conn, 1, &b));
	add_write(b, &d, 0, 8);
	assert_int_equal(rpma_batch_post(b), RPMA_E_PROVIDER);
	assert_int_equal(count_of(b), 1);
	OK(rpma_batch_delete(&b));
	OK(rpma_conn_delete(&conn));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_writes_and_a_flush_leave_in_one_sendmsg),
		cmocka_unit_test(later_writes_of_a_batch_win),
		cmocka_unit_test(every_operation_that_asks_for_a_completion_has_its_own),
		cmocka_unit_test(an_atomic_write_after_a_flush_commits),
		cmocka_unit_test(a_message_of_a_batch_arrives_after_its_writes),
		cmocka_unit_test(a_batch_that_does_not_fit_now_is_posted_later),
		cmocka_unit_test(batches_beyond_the_queue_arrive_in_their_order),
		cmocka_unit_test(one_refused_operation_refuses_all),
		cmocka_unit_test(a_batch_of_a_connection_that_does_not_stand_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
