/* SPDX-License-Identifier: BSD-3-Clause */
/* test_flush.c -- the two types of flush: what each type requires, and which pages of a file stay
 * dirty after the flush. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"
#include "lib/medium.h"

#define FILE_SIZE  (1u << 20)
#define USAGE_BOTH (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

/* A file of this program in the current directory, mapped. */
struct backing {
	char name[64];
	int fd;
	uint8_t *map;
};

static void backing_open(struct backing *b)
{
	snprintf(b->name, sizeof(b->name), "contract_flush.%ld", (long)getpid());
	b->fd = open(b->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(b->fd >= 0);
	assert_int_equal(posix_fallocate(b->fd, 0, FILE_SIZE), 0);
	b->map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	assert_ptr_not_equal(b->map, MAP_FAILED);
}

static void backing_close(struct backing *b)
{
	munmap(b->map, FILE_SIZE);
	close(b->fd);
	unlink(b->name);
}

/* A device with flushes refuses to persist volatile memory, such as the memory of this test. */
static bool refuses_volatile_memory(void)
{
	return ends_is_kernels() && ends_flush_opcode() == ENDS_WC_FLUSH;
}

static void persistent_flush_leaves_no_page_dirty(void **state)
{
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct backing b;
	struct ends d;
	bool behind;

	if (refuses_volatile_memory())
		skip();
	ends_open(&d, NULL);
	ends_permit_persistent(d.cli);
	backing_open(&b);
	mr = ends_reg(&d, b.map, FILE_SIZE);
	remote = ends_remote(mr);
	/* A device does not call this program's msync(). */
	behind = !ends_is_kernels() && medium_is_behind(b.fd);
	for (unsigned i = 0; i < 16; i++) {
		size_t at = i * 40960u;

		ends_fill(d.cli_buf, 4096, i);
		OK(rpma_write(d.cli, remote, at, d.cli_mr, 0, 4096, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_flush(d.cli, remote, at, 4096, RPMA_FLUSH_TYPE_PERSISTENT,
			      RPMA_F_COMPLETION_ALWAYS, &d));
		ends_expect_wc(d.cli, ends_flush_opcode(), &d);
		assert_true(ends_is_filled(b.map + at, 4096, i));
		if (behind)
			assert_int_equal(medium_dirty(b.fd, (off_t)at, 4096), 0);
	}
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	backing_close(&b);
	ends_close(&d);
}

static void flush_covers_what_was_written_before_it(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	for (unsigned i = 0; i < 100; i++) {
		ends_fill(d.cli_buf, 20000, i);
		for (size_t at = 0; at < 20000; at += 4000)
			OK(rpma_write(d.cli, d.at_srv, at, d.cli_mr, at, 4000,
				      RPMA_F_COMPLETION_ON_ERROR, NULL));
		ends_flush(d.cli, d.at_srv, 0, 20000);
		assert_true(ends_is_filled(d.srv_buf, 20000, i));
	}
	ends_close(&d);
}

static void flush_of_the_last_byte_succeeds(void **state)
{
	struct ends d;

	if (ends_is_older_librpma())
		skip(); /* a flush that is sent as a read reads past the end */
	ends_open(&d, NULL);
	for (size_t n = 1; n <= 8; n++)
		ends_flush(d.cli, d.at_srv, ENDS_BUF - n, n);
	ends_close(&d);
}

static struct rpma_mr_remote *remote_with_usage(struct ends *d, int usage,
						struct rpma_mr_local **mr)
{
	OK(rpma_mr_reg(d->peer, d->srv_buf, ENDS_BUF, usage | RPMA_MR_USAGE_WRITE_DST, mr));
	return ends_remote(*mr);
}

static void flush_needs_the_usage_it_was_registered_for(void **state)
{
	static const int usages[] = {0, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
				     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, USAGE_BOTH};
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct ends d;

	if (refuses_volatile_memory())
		skip();
	ends_open(&d, NULL);
	ends_permit_persistent(d.cli);
	for (size_t i = 0; i < sizeof(usages) / sizeof(usages[0]); i++) {
		bool visible = usages[i] & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
		bool persistent = usages[i] & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
		int type;

		remote = remote_with_usage(&d, usages[i], &mr);
		OK(rpma_mr_remote_get_flush_type(remote, &type));
		assert_int_equal(type, usages[i]);
		assert_int_equal(rpma_flush(d.cli, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
					    RPMA_F_COMPLETION_ALWAYS, &d),
				 visible ? 0 : RPMA_E_NOSUPP);
		if (visible)
			ends_expect_wc(d.cli, ends_flush_opcode(), &d);
		assert_int_equal(rpma_flush(d.cli, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
					    RPMA_F_COMPLETION_ALWAYS, &d),
				 persistent ? 0 : RPMA_E_NOSUPP);
		if (persistent)
			ends_expect_wc(d.cli, ends_flush_opcode(), &d);
		OK(rpma_mr_remote_delete(&remote));
		OK(rpma_mr_dereg(&mr));
	}
	ends_close(&d);
}

/* A softrnic target makes the bytes durable itself; for any other target the program must declare
 * that direct write to PMem is possible. */
static void persistent_flush_needs_a_declaration_only_towards_others(void **state)
{
	struct ends d;

	if (refuses_volatile_memory())
		skip();
	ends_open(&d, NULL);
	assert_int_equal(rpma_flush(d.cli, d.at_srv, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
				    RPMA_F_COMPLETION_ALWAYS, &d),
			 ends_flushes_by_reading() ? RPMA_E_NOSUPP : 0);
	if (!ends_flushes_by_reading())
		ends_expect_wc(d.cli, ENDS_WC_FLUSH, &d);
	ends_permit_persistent(d.cli);
	OK(rpma_flush(d.cli, d.at_srv, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	ends_close(&d);
}

static void flush_without_its_arguments_is_invalid(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	assert_int_equal(rpma_flush(NULL, d.at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				    RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_flush(d.cli, NULL, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				    RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_flush(d.cli, d.at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, NULL),
			 RPMA_E_INVAL);
	ends_close(&d);
}

static void flush_fails(size_t offset, size_t len)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct ends d;
	struct ibv_wc wc;

	ends_open(&d, NULL);
	OK(rpma_flush(d.cli, d.at_srv, offset, len, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_wait_wc(d.cli, &wc);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	if (ends_errors_disconnect()) {
		assert_true(ends_event_within(d.cli, 5000, &ev));
		assert_true(ends_event_within(d.srv, 5000, &ev));
	}
	ends_close(&d);
}

static void flush_outside_the_region_fails(void **state)
{
	flush_fails(ENDS_BUF + 64, 8);
	flush_fails(ENDS_BUF + 64, 0);
}

static void flush_past_the_end_fails_although_its_start_is_inside(void **state)
{
	if (ends_is_older_librpma())
		skip(); /* a flush that is sent as a read reads only the first bytes */
	flush_fails(0, ENDS_BUF + 1);
	flush_fails(ENDS_BUF - 16, 17);
	flush_fails(0, (size_t)1 << 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(persistent_flush_leaves_no_page_dirty),
		cmocka_unit_test(flush_covers_what_was_written_before_it),
		cmocka_unit_test(flush_of_the_last_byte_succeeds),
		cmocka_unit_test(flush_needs_the_usage_it_was_registered_for),
		cmocka_unit_test(persistent_flush_needs_a_declaration_only_towards_others),
		cmocka_unit_test(flush_without_its_arguments_is_invalid),
		cmocka_unit_test(flush_outside_the_region_fails),
		cmocka_unit_test(flush_past_the_end_fails_although_its_start_is_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
