/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lengths.c -- a length or range that no work request can carry is refused by every call, with
 * one line that explains it, and without a request to the device.
 */
#include <stdio.h>
#include <string.h>

#include "lib/unit.h"
#include "script.h"

#define ALWAYS  RPMA_F_COMPLETION_ALWAYS
#define VISIBLE RPMA_FLUSH_TYPE_VISIBILITY
#define MOST    ((size_t)UINT32_MAX)

enum { RADDR = 0x10000, RKEY = 0x42 };

static struct rpma_peer peer;
static struct rpma_conn *conn;
static struct rpma_conn_req *req;
static struct rpma_srq *srq;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;
static struct rpma_batch *batch;
static struct rpma_digest digest;
static enum rpma_durability class;
static char buf[64];

static struct {
	int lines;
	char text[512];
} heard;

static void hear(enum rpma_log_level level, const char *file, const int line, const char *func,
		 const char *format, ...)
{
	va_list ap;

	heard.lines++;
	va_start(ap, format);
	vsnprintf(heard.text, sizeof(heard.text), format, ap);
	va_end(ap);
}

static int setup(void **state)
{
	/* A region of 2^62 bytes: the memory need not exist, because only the lengths matter. */
	const unsigned char desc[21] = {0, 0, RADDR >> 16, [15] = 0x40, [16] = RKEY, [20] = 0xff};
	int ret;

	script_reset();
	script.caps = VEXT_CAP_FLUSH | VEXT_CAP_VERIFY | VEXT_CAP_QUERY;
	peer = script_peer(&provider_script);
	ret = rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote) ||
	      rpma_mr_reg(&peer, buf, sizeof(buf), 0xff, &local) ||
	      rpma_conn_req_new(&peer, "a", "1", NULL, &req) ||
	      rpma_conn_req_connect(&req, NULL, &conn) ||
	      rpma_conn_req_new(&peer, "a", "1", NULL, &req) || rpma_srq_new(&peer, NULL, &srq) ||
	      rpma_batch_new(conn, 4, &batch);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	rpma_log_set_function(hear);
	memset(&heard, 0, sizeof(heard));
	return ret;
}

static int teardown(void **state)
{
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	rpma_batch_delete(&batch);
	rpma_srq_delete(&srq);
	rpma_conn_req_delete(&req);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&local);
	rpma_mr_remote_delete(&remote);
	return script_peer_end(&peer) ? -1 : 0;
}

/* --- each call that has a length and an offset in its local or only memory ---------------- */

static int do_read(size_t offset, size_t len)
{
	return rpma_read(conn, local, offset, remote, 0, len, ALWAYS, NULL);
}

static int do_write(size_t offset, size_t len)
{
	return rpma_write(conn, remote, 0, local, offset, len, ALWAYS, NULL);
}

static int do_write_imm(size_t offset, size_t len)
{
	return rpma_write_with_imm(conn, remote, 0, local, offset, len, ALWAYS, 0, NULL);
}

static int do_send(size_t offset, size_t len)
{
	return rpma_send(conn, local, offset, len, ALWAYS, NULL);
}

static int do_send_imm(size_t offset, size_t len)
{
	return rpma_send_with_imm(conn, local, offset, len, ALWAYS, 0, NULL);
}

static int do_send_gather(size_t offset, size_t len)
{
	struct rpma_segment segments[2] = {{local, 0, 0}, {local, offset, len}};

	return rpma_send_gather(conn, segments, 2, ALWAYS, NULL);
}

static int do_recv(size_t offset, size_t len)
{
	return rpma_recv(conn, local, offset, len, NULL);
}

static int do_req_recv(size_t offset, size_t len)
{
	return rpma_conn_req_recv(req, local, offset, len, NULL);
}

static int do_srq_recv(size_t offset, size_t len)
{
	return rpma_srq_recv(srq, local, offset, len, NULL);
}

static int do_advise(size_t offset, size_t len)
{
	return rpma_mr_advise(local, offset, len, IBV_ADVISE_MR_ADVICE_PREFETCH, 0);
}

static int do_verify(size_t offset, size_t len)
{
	return rpma_verify(conn, remote, offset, len, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL);
}

/* If the write was added to the batch, post it. */
static int do_batch_write(size_t offset, size_t len)
{
	int ret = rpma_batch_write(batch, remote, 0, local, offset, len, ALWAYS, NULL);

	return ret ? ret : rpma_batch_post(batch);
}

static int do_batch_send(size_t offset, size_t len)
{
	struct rpma_segment segment = {local, offset, len};
	int ret = rpma_batch_send(batch, &segment, 1, ALWAYS, NULL);

	return ret ? ret : rpma_batch_post(batch);
}

static int do_flush(size_t offset, size_t len)
{
	return rpma_flush(conn, remote, offset, len, VISIBLE, ALWAYS, NULL);
}

static int do_batch_flush(size_t offset, size_t len)
{
	int ret = rpma_batch_flush(batch, remote, offset, len, VISIBLE, ALWAYS, NULL);

	return ret ? ret : rpma_batch_post(batch);
}

static int do_query(size_t offset, size_t len)
{
	return rpma_query_durability(conn, remote, offset, len, &class, ALWAYS, NULL);
}

static int do_read_from(size_t offset, size_t len)
{
	return rpma_read(conn, local, 0, remote, offset, len, ALWAYS, NULL);
}

static int do_write_to(size_t offset, size_t len)
{
	return rpma_write(conn, remote, offset, local, 0, len, ALWAYS, NULL);
}

static int do_batch_write_to(size_t offset, size_t len)
{
	int ret = rpma_batch_write(batch, remote, offset, local, 0, len, ALWAYS, NULL);

	return ret ? ret : rpma_batch_post(batch);
}

struct call {
	const char *name;
	int (*make)(size_t offset, size_t len);
};
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, do_##name                                                                   \
	}

/* narrow: calls whose length has 32 bits; wide: calls whose length has 64 bits. */
static const struct call narrow[] = {
	CALL(read),       CALL(write),     CALL(write_imm),   CALL(send),
	CALL(send_imm),   CALL(recv),      CALL(send_gather), CALL(req_recv),
	CALL(srq_recv),   CALL(advise),    CALL(verify),      CALL(batch_write),
	CALL(batch_send), CALL(read_from), CALL(write_to),    CALL(batch_write_to),
};
static const struct call wide[] = {CALL(flush), CALL(batch_flush), CALL(query)};

static void expect_refused(const struct call *call, size_t offset, size_t len)
{
	char number[32];
	int ret;

	script.posts = heard.lines = 0;
	ret = call->make(offset, len);
	if (ret != RPMA_E_INVAL || script.posts)
		fail_msg("%s of %zu bytes at %zu returned %d", call->name, len, offset, ret);
	if (heard.lines != 1)
		fail_msg("%s: %d lines in the log", call->name, heard.lines);
	snprintf(number, sizeof(number), "%zu", len);
	assert_non_null(strstr(heard.text, number));
}

static void expect_taken(const struct call *call, size_t offset, size_t len)
{
	int ret;

	script.posts = 0;
	ret = call->make(offset, len);
	if (ret || script.posts != 1)
		fail_msg("%s of %zu bytes at %zu returned %d", call->name, len, offset, ret);
}

static void what_does_not_fit_into_32_bits_is_refused(void **state)
{
	static const size_t lens[] = {MOST + 1, MOST + 2, MOST + 4097, 2 * (MOST + 1),
				      SIZE_MAX / 2};

	for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
		for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
			expect_refused(&narrow[i], 0, lens[k]);
			assert_non_null(strstr(heard.text, "4294967295"));
			assert_non_null(strstr(heard.text, "split"));
		}
		expect_taken(&narrow[i], 0, MOST);
		expect_taken(&narrow[i], 0, 1);
	}
	assert_int_equal(digest.len, 0);
}

static void a_range_that_ends_behind_the_last_address_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
		expect_refused(&narrow[i], SIZE_MAX, 1);
		expect_refused(&narrow[i], SIZE_MAX - 99, 101);
		/* A range that is only outside its region is passed on: the devices refuse it. */
		expect_taken(&narrow[i], SIZE_MAX - 99, 99);
	}
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		expect_refused(&wide[i], SIZE_MAX, 1);
		expect_refused(&wide[i], 1, SIZE_MAX);
		expect_taken(&wide[i], 0, SIZE_MAX);
	}
}

/* For a flush that is sent as a read, only the end of the range matters (test_ops.c). */
static void a_flush_may_be_of_any_length(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		expect_taken(&wide[i], 8, MOST + 1);
		assert_true(script.list[0].len == MOST + 1);
	}
	assert_true(script.flushes == 2);
}

static void a_flush_of_no_bytes_is_of_the_whole_region(void **state)
{
	expect_taken(&wide[0], 100, 0);
	assert_true(script.flush.addr == RADDR);
	assert_true(script.flush.len == (uint64_t)1 << 62);
	/* An empty range may begin past the end of a region. */
	expect_taken(&wide[0], ((size_t)1 << 62) + 1, 0);
	assert_true(script.flush.addr == RADDR + ((uint64_t)1 << 62) + 1);
	assert_true(script.flush.len == 1);
}

/* Each segment fits, but the whole message is too long. */
static void a_gathered_message_has_32_bits_as_well(void **state)
{
	struct rpma_segment segments[2] = {{local, 0, MOST}, {local, 0, 1}};

	script.posts = 0;
	assert_int_equal(rpma_send_gather(conn, segments, 2, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_send(batch, segments, 2, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(script.posts, 0);
	assert_int_equal(heard.lines, 2);
	assert_non_null(strstr(heard.text, "4294967296"));
	segments[0].len--;
	assert_int_equal(rpma_send_gather(conn, segments, 2, ALWAYS, NULL), 0);
	assert_int_equal(script.posts, 1);
}

static void a_digest_has_32_bits_as_well(void **state)
{
	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_AUTO, buf, MOST + 1, &digest),
			 RPMA_E_INVAL);
	assert_int_equal(heard.lines, 1);
	assert_non_null(strstr(heard.text, "4294967296"));
}

#define ON_CONN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_CONN(what_does_not_fit_into_32_bits_is_refused),
		ON_CONN(a_range_that_ends_behind_the_last_address_is_refused),
		ON_CONN(a_flush_may_be_of_any_length),
		ON_CONN(a_flush_of_no_bytes_is_of_the_whole_region),
		ON_CONN(a_gathered_message_has_32_bits_as_well),
		ON_CONN(a_digest_has_32_bits_as_well),
	};

	return cmocka_run_group_tests_name("lengths", tests, NULL, NULL);
}
