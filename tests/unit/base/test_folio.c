/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/folio.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/unit.h"
#include "lib/dirtied.h"

#define PAGE  4096ul
#define PIECE (1ul << 20)
#define SIZE  (4 * PIECE)

static int file;
static unsigned char *map;

static unsigned long long dirtied_by_a_store(size_t offset)
{
	unsigned long long before = bytes_dirtied();

	++*(volatile unsigned char *)(map + offset);
	return bytes_dirtied() - before;
}

static void load(size_t offset)
{
	(void)*(volatile unsigned char *)(map + offset);
}

/*
 * Write the file in large pieces, so that the page cache holds it in large folios where the file
 * system supports them.
 */
static int setup(void **state)
{
	unsigned char *bytes = calloc(1, PIECE);

	assert_non_null(bytes);
	file = open("folios.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	for (size_t at = 0; at < SIZE; at += PIECE)
		assert_int_equal(pwrite(file, bytes, PIECE, (off_t)at), PIECE);
	assert_int_equal(fsync(file), 0);
	free(bytes);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return map == MAP_FAILED;
}

static int teardown(void **state)
{
	munmap(map, SIZE);
	close(file);
	return unlink("folios.file");
}

static void need_large_folios(void)
{
	if (dirtied_by_a_store(SIZE - PAGE) > PAGE)
		return;
	print_message("no large folios here\n");
	skip();
}

static void a_store_dirties_its_pages_alone(void **state)
{
	struct folio_marks marks;

	need_large_folios();
	folio_marks_init(&marks, SIZE);
	load(PAGE);
	folio_split(&marks, map + PAGE, PAGE, 8);
	assert_int_equal(dirtied_by_a_store(PAGE), PAGE);
	folio_marks_fini(&marks);
}

/* The folio at each end of the range may extend past the range. */
static void so_does_a_range_over_two_folios(void **state)
{
	size_t from = SIZE / 2 - PAGE, to = SIZE / 2 + PAGE;
	struct folio_marks marks;

	need_large_folios();
	folio_marks_init(&marks, SIZE);
	load(from);
	load(to - 1);
	folio_split(&marks, map + from, from, to - from);
	assert_int_equal(dirtied_by_a_store(from), PAGE);
	assert_int_equal(dirtied_by_a_store(to - 1), PAGE);
	folio_marks_fini(&marks);
}

/* No thread has read the file through the mapping. */
static void so_does_each_page_of_what_is_cached(void **state)
{
	struct folio_marks marks;

	need_large_folios();
	folio_marks_init(&marks, SIZE);
	folio_split_cached(&marks, map + PIECE, PIECE, 2 * PIECE);
	for (size_t at = PIECE; at < 3 * PIECE; at += 37 * PAGE)
		assert_int_equal(dirtied_by_a_store(at), PAGE);
	folio_marks_fini(&marks);
}

static void what_has_no_marks_is_left_alone(void **state)
{
	struct folio_marks none = {0}, few;

	folio_split(&none, map, 0, SIZE);
	folio_split_cached(&none, map, 0, SIZE);
	folio_marks_fini(&none);
	folio_marks_init(&few, PAGE);
	folio_split(&few, map + PAGE, PAGE, SIZE - PAGE);
	folio_split(&few, map, 0, 0);
	folio_marks_fini(&few);
	folio_marks_fini(&few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_store_dirties_its_pages_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(so_does_a_range_over_two_folios, setup, teardown),
		cmocka_unit_test_setup_teardown(so_does_each_page_of_what_is_cached, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_has_no_marks_is_left_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
