/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_medium.c -- every call that completes a persistent flush leaves no dirty page of the range
 * in the target's file. Other calls leave dirty pages. doc/architecture/overview.md lists all calls
 * that complete a persistent flush.
 */
#include <stdio.h>

#include "ends_ext.h"
#include "lib/medium.h"

enum { SIZE = 65536, PART = 5000, AT = 9000, WORD_AT = 40000 };

static struct ends d;
static struct ends_file file;
static bool is_plain;

static int setup(void **state)
{
	ends_open(&d, NULL);
	ends_permit_persistent(d.cli);
	ends_permit_persistent(d.srv);
	if (ends_is_plain()) /* the initiator has to send the first message (RFC 5044 s7.1.3) */
		ends_flush(d.cli, d.at_srv, 0, 8);
	ends_file_open(&file, &d, SIZE);
	is_plain = ends_flushes_by_reading();
	return 0;
}

static int teardown(void **state)
{
	ends_file_close(&file);
	ends_close(&d);
	return 0;
}

static void write_part(void)
{
	OK(rpma_write(d.cli, file.remote, AT, d.cli_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
}

static void expect_clean(size_t at, size_t len)
{
	assert_int_equal(medium_dirty(file.fd, (off_t)at, len), 0);
}

static void a_flush(void **state)
{
	write_part();
	OK(rpma_flush(d.cli, file.remote, AT, PART, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	expect_clean(AT, PART);
}

static void a_flush_of_the_passive_side(void **state)
{
	struct rpma_mr_remote *remote = ends_remote(file.mr);

	OK(rpma_write(d.srv, remote, AT, d.srv_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.srv, remote, AT, PART, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	ends_expect_wc(d.srv, ends_flush_opcode(), &d);
	expect_clean(AT, PART);
	OK(rpma_mr_remote_delete(&remote));
}

static void a_flush_of_everything(void **state)
{
	write_part();
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	expect_clean(0, SIZE);
}

static void a_verify(void **state)
{
	struct rpma_digest digest;

	write_part();
	OK(rpma_verify(d.cli, file.remote, AT, PART, RPMA_DIGEST_CRC32C, &digest,
		       RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_VERIFY, &d);
	expect_clean(AT, PART);
}

/* Post data, flush, commit word and flush in one batch. */
static void flush_in_a_batch(bool of_all)
{
	struct rpma_batch *b;

	OK(rpma_batch_new(d.cli, 4, &b));
	OK(rpma_batch_write(b, file.remote, AT, d.cli_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR,
			    NULL));
	OK(rpma_batch_flush(b, file.remote, AT, PART, RPMA_FLUSH_TYPE_PERSISTENT,
			    RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_batch_atomic_write(b, file.remote, WORD_AT, "written", RPMA_F_COMPLETION_ON_ERROR,
				   NULL));
	if (of_all)
		OK(rpma_batch_flush_all(b, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
					&d));
	else
		OK(rpma_batch_flush(b, file.remote, WORD_AT, 8, RPMA_FLUSH_TYPE_PERSISTENT,
				    RPMA_F_COMPLETION_ALWAYS, &d));
	OK(rpma_batch_post(b));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	assert_string_equal((char *)file.map + WORD_AT, "written");
	expect_clean(0, SIZE);
	OK(rpma_batch_delete(&b));
}
static void flushes_of_a_batch(void **state)
{
	flush_in_a_batch(false);
}
static void a_flush_of_everything_in_a_batch(void **state)
{
	flush_in_a_batch(true);
}

static void a_flush_after_an_atomic_write(void **state)
{
	OK(rpma_atomic_write(d.cli, file.remote, WORD_AT, "written", RPMA_F_COMPLETION_ON_ERROR,
			     NULL));
	OK(rpma_flush(d.cli, file.remote, WORD_AT, 8, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	expect_clean(WORD_AT, 8);
}

static void a_flush_after_a_message(void **state)
{
	OK(rpma_recv(d.srv, file.mr, AT, PART, &file));
	OK(rpma_send(d.cli, d.cli_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, file.remote, AT, PART, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	ends_expect_received(d.srv, PART, &file);
	expect_clean(AT, PART);
}

/* The write touched two pages and a few bytes of a third. */
static void expect_dirty(bool dirty)
{
	assert_int_equal(medium_dirty(file.fd, 0, SIZE) > 0, dirty);
}

/* If a flush is sent as a read, the target cannot see whether it is persistent. */
static void a_visible_flush_is_none(void **state)
{
	write_part();
	ends_flush(d.cli, file.remote, AT, PART);
	expect_dirty(!is_plain);
}

/* librpma announces at either end that it flushes natively, if the peer consents. Between such ends
 * a Read is not a flush. */
static void a_read_is_none_for_librpma(void **state)
{
	struct rpma_mr_remote *remote = ends_remote(file.mr);

	write_part();
	OK(rpma_read(d.cli, d.cli_mr, 0, file.remote, AT, PART, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
	expect_dirty(!is_plain);
	OK(rpma_write(d.srv, remote, AT, d.srv_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_read(d.srv, d.srv_mr, 0, remote, AT, PART, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.srv, IBV_WC_RDMA_READ, &d);
	expect_dirty(!is_plain);
	OK(rpma_mr_remote_delete(&remote));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest all[] = {
		T(a_flush),
		T(a_flush_of_the_passive_side),
		T(flushes_of_a_batch),
		T(a_flush_after_an_atomic_write),
		T(a_flush_after_a_message),
		T(a_visible_flush_is_none),
		T(a_read_is_none_for_librpma),
	};
	const struct CMUnitTest native[] = {
		T(a_flush_of_everything),
		T(a_verify),
		T(a_flush_of_everything_in_a_batch),
	};
	int failed;

	setup(NULL);
	if (!file.is_on_medium)
		printf("the current directory is on no file system that writes back\n");
	failed = file.is_on_medium ? 0 : 77;
	teardown(NULL);
	if (!failed)
		failed = cmocka_run_group_tests(all, NULL, NULL);
	if (!failed && !is_plain)
		failed = cmocka_run_group_tests(native, NULL, NULL);
	return failed;
}
