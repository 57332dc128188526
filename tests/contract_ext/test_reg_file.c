/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reg_file.c -- register a file as a region: create it, reopen it by the rules of
 * rpma_flush(3), refuse it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ends_ext.h"
#include "lib/medium.h"

enum { SIZE = 65536, PAGES = SIZE / 4096, AT = 9000, PART = 5000 };
#define USAGE                                                                                      \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |  \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static struct ends d;
static char name[64];

static int setup(void **state)
{
	ends_open(&d, NULL);
	ends_permit_persistent(d.cli);
	snprintf(name, sizeof(name), "reg_file.%ld", (long)getpid());
	return 0;
}

static int teardown(void **state)
{
	unlink(name);
	ends_close(&d);
	return 0;
}

static int open_it(void)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void a_missing_file_is_made_and_takes_durable_writes(void **state)
{
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct stat st;
	size_t size = 0;
	void *ptr;
	int fd;

	OK(rpma_mr_reg_file(d.peer, name, SIZE, USAGE, &mr));
	OK(rpma_mr_get_ptr(mr, &ptr));
	OK(rpma_mr_get_size(mr, &size));
	assert_int_equal(size, SIZE);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	/* all blocks are allocated, so a flush cannot find the disk full */
	assert_true(st.st_blocks * 512 >= SIZE);
	remote = ends_remote(mr);
	ends_fill(d.cli_buf, PART, 7);
	OK(rpma_write(d.cli, remote, AT, d.cli_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, remote, AT, PART, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	assert_true(ends_is_filled((uint8_t *)ptr + AT, PART, 7));
	fd = open_it();
	assert_int_equal(medium_dirty(fd, AT, PART), 0);
	close(fd);
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	assert_int_equal(msync(ptr, SIZE, MS_ASYNC), -1); /* the range is unmapped */
}

static int cached_pages(void *ptr)
{
	unsigned char in[PAGES];
	int n = 0;

	assert_int_equal(mincore(ptr, SIZE, in), 0);
	for (int i = 0; i < PAGES; i++)
		n += in[i] & 1;
	return n;
}

/* If an earlier process failed to write pages back, these pages stay cached and count as clean. In
 * this test all pages reached the medium. */
static void what_was_cached_before_comes_from_the_medium(void **state)
{
	struct rpma_mr_local *mr;
	char bytes[SIZE];
	bool has_medium;
	void *ptr;
	int fd;

	ends_fill((uint8_t *)bytes, SIZE, 3);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, bytes, SIZE), SIZE);
	has_medium = medium_is_behind(fd);
	close(fd);
	OK(rpma_mr_reg_file(d.peer, name, 0, USAGE, &mr));
	OK(rpma_mr_get_ptr(mr, &ptr));
	if (has_medium)
		assert_int_equal(cached_pages(ptr), 0);
	assert_true(ends_is_filled(ptr, SIZE, 3));
	OK(rpma_mr_dereg(&mr));
}

static void a_shorter_file_grows_and_a_longer_one_keeps_its_end(void **state)
{
	struct rpma_mr_local *mr;
	struct stat st;
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "abc", 3), 3);
	close(fd);
	OK(rpma_mr_reg_file(d.peer, name, SIZE, USAGE, &mr));
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	OK(rpma_mr_dereg(&mr));
	OK(rpma_mr_reg_file(d.peer, name, 4096, USAGE, &mr));
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	OK(rpma_mr_dereg(&mr));
}

static void expect_refusal(const char *path, size_t size, const char *words)
{
	struct rpma_mr_local *mr = NULL;

	assert_int_equal(rpma_mr_reg_file(d.peer, path, size, USAGE, &mr), RPMA_E_PROVIDER);
	assert_null(mr);
	if (!strstr(rpma_err_last(), words) || !strstr(rpma_err_last(), path))
		fail_msg("'%s' or '%s' is not in: %s", path, words, rpma_err_last());
}

static void what_cannot_be_used_is_named(void **state)
{
	expect_refusal("no-such-file", 0, "No such file");
	expect_refusal("no-such-folder/file", SIZE, "No such file");
	expect_refusal("/dev/null", SIZE, "no regular file");
	close(open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	expect_refusal(name, 0, "is empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_missing_file_is_made_and_takes_durable_writes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_cached_before_comes_from_the_medium, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_shorter_file_grows_and_a_longer_one_keeps_its_end,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_used_is_named, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
