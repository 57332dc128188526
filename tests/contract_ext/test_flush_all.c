/* SPDX-License-Identifier: BSD-3-Clause */
/* test_flush_all.c -- one flush of all bytes that the connection placed, in all regions. */
#include "ends_ext.h"

#include "lib/medium.h"

enum { FILES = 3, SIZE = 16384, PART = 1000 };

static void open_files(struct ends_file files[FILES], struct ends *d)
{
	for (int i = 0; i < FILES; i++)
		ends_file_open(&files[i], d, SIZE);
}

static void close_files(struct ends_file files[FILES])
{
	for (int i = 0; i < FILES; i++)
		if (files[i].remote) /* the test can have deregistered this one */
			ends_file_close(&files[i]);
}

static void write_part(struct ends *d, const struct ends_file *f, size_t at, unsigned seed)
{
	ends_fill(d->cli_buf + (size_t)seed * PART, PART, seed);
	OK(rpma_write(d->cli, f->remote, at, d->cli_mr, (size_t)seed * PART, PART,
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
}

static void flush_all(struct ends *d, enum rpma_flush_type type)
{
	OK(rpma_flush_all(d->cli, type, RPMA_F_COMPLETION_ALWAYS, d));
	ends_expect_wc(d->cli, (enum ibv_wc_opcode)RPMA_WC_FLUSH, d);
}

static void expect_on_medium(const struct ends_file *f, size_t at, unsigned seed)
{
	uint8_t copy[PART];

	ends_fill(copy, PART, seed);
	ends_file_expect(f, copy, PART, at);
}

static void one_flush_covers_several_regions(void **state)
{
	struct ends_file files[FILES];
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < FILES; i++) {
			write_part(&d, &files[i], 0, round * FILES + i);
			write_part(&d, &files[i], SIZE - PART, round * FILES + i);
		}
		flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT);
		for (unsigned i = 0; i < FILES; i++) {
			expect_on_medium(&files[i], 0, round * FILES + i);
			expect_on_medium(&files[i], SIZE - PART, round * FILES + i);
		}
	}
	close_files(files);
	ends_close(&d);
}

static void what_was_flushed_before_is_not_flushed_again(void **state)
{
	struct ends_file files[FILES];
	uint64_t before;
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT); /* a flush although no byte was placed */
	assert_int_equal(ends_counter(d.srv, "writebacks"), 0);
	write_part(&d, &files[0], 0, 1);
	write_part(&d, &files[1], 0, 2);
	OK(rpma_flush(d.cli, files[0].remote, 0, PART, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
	flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT);
	before = ends_counter(d.srv, "writebacks");
	assert_int_equal(before, 2);
	flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT);
	assert_int_equal(ends_counter(d.srv, "writebacks"), before);
	expect_on_medium(&files[1], 0, 2);
	close_files(files);
	ends_close(&d);
}

static void the_visible_type_makes_visible_and_writes_nothing_back(void **state)
{
	struct ends_file files[FILES];
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	for (unsigned i = 0; i < FILES; i++)
		write_part(&d, &files[i], 100, i);
	flush_all(&d, RPMA_FLUSH_TYPE_VISIBILITY);
	for (unsigned i = 0; i < FILES; i++)
		assert_true(ends_is_filled(files[i].map + 100, PART, i));
	assert_int_equal(ends_counter(d.srv, "writebacks"), 0);
	close_files(files);
	ends_close(&d);
}

static void no_usage_is_needed_for_it(void **state)
{
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct ends_file file;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, SIZE);
	OK(rpma_mr_reg(d.peer, file.map, SIZE, RPMA_MR_USAGE_WRITE_DST, &mr));
	remote = ends_remote(mr);
	ends_fill(d.cli_buf, PART, 3);
	OK(rpma_write(d.cli, remote, 0, d.cli_mr, 0, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT);
	expect_on_medium(&file, 0, 3);
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	ends_file_close(&file);
	ends_close(&d);
}

static void in_a_batch_it_leaves_with_its_writes(void **state)
{
	struct ends_file files[FILES];
	struct rpma_batch *b;
	uint64_t before;
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	OK(rpma_batch_new(d.cli, FILES + 1, &b));
	before = ends_counter(d.cli, "tx_gathers");
	for (unsigned i = 0; i < FILES; i++) {
		ends_fill(d.cli_buf + (size_t)i * PART, PART, i);
		OK(rpma_batch_write(b, files[i].remote, 0, d.cli_mr, (size_t)i * PART, PART,
				    RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	OK(rpma_batch_flush_all(b, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	OK(rpma_batch_post(b));
	assert_int_equal(ends_counter(d.cli, "tx_gathers") - before, 1);
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_FLUSH, &d);
	for (unsigned i = 0; i < FILES; i++)
		expect_on_medium(&files[i], 0, i);
	OK(rpma_batch_delete(&b));
	close_files(files);
	ends_close(&d);
}

/* The region is deregistered with unflushed bytes. The flush still writes the bytes of a file back,
 * but promises nothing for bytes of other memory. */
static void a_region_that_went_with_unflushed_bytes_is_a_part_of_it(void **state)
{
	struct ends_file files[FILES];
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	write_part(&d, &files[0], 0, 1);
	write_part(&d, &files[1], 0, 2);
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_FLUSH, &d);
	OK(rpma_mr_dereg(&files[1].mr));
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_wait_wc(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	if (files[1].is_on_medium)
		assert_int_equal(medium_dirty(files[1].fd, 0, SIZE), 0);
	close_files(files);
	ends_close(&d);
}

static void a_region_that_went_after_its_flush_does_not_matter(void **state)
{
	struct ends_file files[FILES];
	struct ends d;

	ends_open(&d, NULL);
	open_files(files, &d);
	write_part(&d, &files[0], 0, 1);
	write_part(&d, &files[1], 0, 2);
	OK(rpma_flush(d.cli, files[1].remote, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_FLUSH, &d);
	ends_file_close(&files[1]);
	flush_all(&d, RPMA_FLUSH_TYPE_PERSISTENT);
	expect_on_medium(&files[0], 0, 1);
	close_files(files);
	ends_close(&d);
}

static void other_peers_are_not_asked(void **state)
{
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_batch_new(d.cli, 1, &b));
	for (int type = RPMA_FLUSH_TYPE_PERSISTENT; type <= RPMA_FLUSH_TYPE_VISIBILITY; type++) {
		assert_int_equal(rpma_flush_all(d.cli, (enum rpma_flush_type)type,
						RPMA_F_COMPLETION_ALWAYS, &d),
				 RPMA_E_NOSUPP);
		assert_int_equal(rpma_batch_flush_all(b, (enum rpma_flush_type)type,
						      RPMA_F_COMPLETION_ALWAYS, &d),
				 RPMA_E_NOSUPP);
	}
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(other_peers_are_not_asked),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_flush_covers_several_regions),
		cmocka_unit_test(what_was_flushed_before_is_not_flushed_again),
		cmocka_unit_test(the_visible_type_makes_visible_and_writes_nothing_back),
		cmocka_unit_test(no_usage_is_needed_for_it),
		cmocka_unit_test(in_a_batch_it_leaves_with_its_writes),
		cmocka_unit_test(a_region_that_went_with_unflushed_bytes_is_a_part_of_it),
		cmocka_unit_test(a_region_that_went_after_its_flush_does_not_matter),
	};

	return ends_is_plain() ? cmocka_run_group_tests(plain, NULL, NULL)
			       : cmocka_run_group_tests(tests, NULL, NULL);
}
