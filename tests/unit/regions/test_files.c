/* SPDX-License-Identifier: BSD-3-Clause */
/* Files are made completely or not at all, and every failure is returned as an error. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/mapfile.h"
#include "base/newfile.h"

#define SIZE 65536

static char folder[] = "regions-files-XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
	return chdir("..") || rmdir(folder) ? -1 : 0; /* rmdir() fails if a test left a file */
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int open_new(struct newfile *nf, const char *path, uint64_t size, struct error *err)
{
	return newfile_open(nf, &(struct newfile_opts){.path = path, .size = size}, err);
}

static void a_file_has_its_name_when_it_is_complete_and_not_before(void **state)
{
	struct newfile nf;
	struct stat st;

	assert_int_equal(open_new(&nf, "new", SIZE, NULL), 0);
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(newfile_commit(&nf, false, NULL), 0);
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_size, SIZE);
	newfile_abort(&nf); /* this call only closes the file */
	assert_int_equal(unlink("new"), 0);
}

static void a_name_that_is_taken_is_an_error_unless_it_is_to_be_replaced(void **state)
{
	struct newfile nf;
	struct error err;
	struct stat st;

	write_file("taken", "before");
	assert_int_equal(open_new(&nf, "taken", 10, &err), 0);
	assert_int_equal(newfile_commit(&nf, false, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EEXIST);
	assert_non_null(strstr(err.text, "taken"));
	assert_int_equal(newfile_commit(&nf, true, &err), 0);
	newfile_abort(&nf);
	assert_int_equal(stat("taken", &st), 0);
	assert_int_equal(st.st_size, 10);
	assert_int_equal(unlink("taken"), 0);
}

static void a_disk_that_is_too_small_is_named_with_what_it_has_left(void **state)
{
	struct newfile nf;
	struct error err;

	assert_int_equal(open_new(&nf, "huge", UINT64_C(1) << 60, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOSPC);
	assert_non_null(strstr(err.text, "huge: not enough disk for 1048576 TiB"));
	assert_int_equal(access("huge", F_OK), -1);
}

static void a_folder_that_is_missing_is_an_error(void **state)
{
	struct newfile nf;
	struct error err;

	assert_int_equal(open_new(&nf, "nowhere/new", 1, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOENT);
}

static void expect_mapfile_error(const struct mapfile_opts *opts, int cause)
{
	struct mapfile map;
	struct error err;

	assert_int_equal(mapfile_open(&map, opts, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, cause);
	assert_non_null(strstr(err.text, opts->path));
	mapfile_close(&map); /* a repeated call does no harm */
}

static void files_that_cannot_be_served_are_told_apart_by_their_cause(void **state)
{
	expect_mapfile_error(&(struct mapfile_opts){.path = "missing"}, ENOENT);
	write_file("empty", "");
	expect_mapfile_error(&(struct mapfile_opts){.path = "empty"}, ENODATA);
	expect_mapfile_error(&(struct mapfile_opts){.path = "empty", .size = 1, .create = true},
			     EEXIST);
	write_file("empty", "12345");
	expect_mapfile_error(&(struct mapfile_opts){.path = "empty", .size = 6}, EFBIG);
	assert_int_equal(unlink("empty"), 0);
	assert_int_equal(mkdir("folder", 0700), 0);
	expect_mapfile_error(&(struct mapfile_opts){.path = "folder"}, EINVAL);
	assert_int_equal(rmdir("folder"), 0);
}

static void a_file_is_served_once_at_a_time(void **state)
{
	struct mapfile_opts opts = {.path = "file", .size = SIZE, .create = true};
	struct mapfile map;

	assert_int_equal(mapfile_open(&map, &opts, NULL), 0);
	assert_int_equal(map.size, SIZE);
	opts.create = false;
	expect_mapfile_error(&opts, EWOULDBLOCK);
	memset(map.addr, 'x', map.size);
	mapfile_close(&map);
	assert_int_equal(mapfile_open(&map, &opts, NULL), 0);
	assert_int_equal(((char *)map.addr)[SIZE - 1], 'x');
	mapfile_close(&map);
	assert_int_equal(unlink("file"), 0);
}

/* Called after each slice; cancels the work after `left` calls. */
struct patience {
	unsigned left;
	uint64_t done;
};

static bool be_patient(void *arg, const struct newfile_progress *progress)
{
	struct patience *p = arg;

	assert_string_equal(progress->path, "long");
	assert_in_range(progress->done, 1, progress->total);
	p->done += progress->done;
	return p->left-- > 0;
}

static void who_watches_can_give_up_between_slices(void **state)
{
	struct patience patience;
	struct newfile_watch watch = {be_patient, &patience};
	struct mapfile_opts opts = {
		.path = "long", .size = 192 << 20, .create = true, .watch = &watch};
	struct mapfile map;
	struct error err;

	for (unsigned slices = 0; slices < 12; slices++) {
		patience = (struct patience){.left = slices};
		assert_int_equal(mapfile_open(&map, &opts, &err), ERROR_LOCAL);
		assert_int_equal(err.cause, ECANCELED);
		assert_int_equal(access("long", F_OK), -1);
	}
	patience = (struct patience){.left = 1000};
	assert_int_equal(mapfile_open(&map, &opts, &err), 0);
	assert_true(patience.done > opts.size);
	mapfile_discard(&map);
}

/* A message shows either all sizes in whole units or all in bytes. */
static void one_message_has_one_style_of_sizes(void **state)
{
	struct mapfile_opts opts = {.path = "small", .size = 1 << 20};
	struct mapfile map;
	struct newfile nf;
	struct error err;

	write_file("small", "12345");
	assert_int_equal(mapfile_open(&map, &opts, &err), ERROR_LOCAL);
	assert_string_equal(err.text,
			    "small is too small: it has 5 bytes, and 1048576 bytes are to "
			    "be served");
	unlink("small");
	assert_int_equal(open_new(&nf, "huge", (UINT64_C(1) << 60) + 1, &err), ERROR_LOCAL);
	assert_null(strstr(err.text, "iB"));
	opts = (struct mapfile_opts){.path = "huge",
				     .size = (UINT64_C(1) << 60) + 1,
				     .scratch = 1 << 20,
				     .create = true};
	assert_int_equal(mapfile_open(&map, &opts, &err), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "scratch file of 1048576 bytes"));
	assert_null(strstr(err.text, "iB"));
}

static void the_scratch_file_is_counted_and_named(void **state)
{
	struct mapfile_opts opts = {
		.path = "made", .size = 1 << 20, .scratch = UINT64_C(1) << 60, .create = true};
	struct mapfile map;
	struct error err;

	assert_int_equal(mapfile_open(&map, &opts, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOSPC);
	assert_non_null(strstr(err.text, "and a scratch file of 1048576 TiB"));
	assert_int_equal(access("made", F_OK), -1);
	assert_int_equal(mapfile_open_scratch(&map, "made", UINT64_C(1) << 60, &err), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "the scratch file beside made"));
}

static void a_private_file_is_its_owners_alone(void **state)
{
	struct mapfile_opts opts = {
		.path = "made", .size = SIZE, .create = true, .is_private = true};
	struct mapfile map;
	struct stat st;

	assert_int_equal(mapfile_open(&map, &opts, NULL), 0);
	assert_int_equal(stat("made", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	mapfile_discard(&map);
}

static void what_was_made_can_be_discarded_and_nothing_else(void **state)
{
	struct mapfile_opts opts = {.path = "made", .size = SIZE, .create = true};
	struct mapfile map;

	assert_int_equal(mapfile_open(&map, &opts, NULL), 0);
	mapfile_discard(&map);
	assert_int_equal(access("made", F_OK), -1);
	write_file("old", "12345");
	opts = (struct mapfile_opts){.path = "old"};
	assert_int_equal(mapfile_open(&map, &opts, NULL), 0);
	mapfile_discard(&map);
	assert_int_equal(unlink("old"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_has_its_name_when_it_is_complete_and_not_before),
		cmocka_unit_test(a_name_that_is_taken_is_an_error_unless_it_is_to_be_replaced),
		cmocka_unit_test(a_disk_that_is_too_small_is_named_with_what_it_has_left),
		cmocka_unit_test(a_folder_that_is_missing_is_an_error),
		cmocka_unit_test(files_that_cannot_be_served_are_told_apart_by_their_cause),
		cmocka_unit_test(a_file_is_served_once_at_a_time),
		cmocka_unit_test(who_watches_can_give_up_between_slices),
		cmocka_unit_test(one_message_has_one_style_of_sizes),
		cmocka_unit_test(the_scratch_file_is_counted_and_named),
		cmocka_unit_test(a_private_file_is_its_owners_alone),
		cmocka_unit_test(what_was_made_can_be_discarded_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
