/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set is created, opened, given new attributes, closed and removed, while each allocation and
 * each system call fails in turn. The call of this library must report the failure or succeed in
 * spite of it. Afterwards no memory (a sanitizer checks), no descriptor and no new file may be
 * left.
 */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fds.h"

#define SET "PMEMPOOLSET\n2M @/p0\n2M @/p1\n"

static int countdown = -1; /* requests until one fails; -1: none fails */

static bool fails(int error)
{
	if (countdown < 0 || countdown-- > 0)
		return false;
	errno = error;
	return true;
}

#define WRAP(result, name, error, failure, params, args)                                           \
	result __real_##name params;                                                               \
	result __wrap_##name params;                                                               \
	result __wrap_##name params                                                                \
	{                                                                                          \
		return fails(error) ? (failure) : __real_##name args;                              \
	}

WRAP(void *, malloc, ENOMEM, NULL, (size_t size), (size))
WRAP(void *, calloc, ENOMEM, NULL, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, ENOMEM, NULL, (void *p, size_t size), (p, size))
WRAP(char *, strdup, ENOMEM, NULL, (const char *s), (s))
WRAP(char *, strndup, ENOMEM, NULL, (const char *s, size_t n), (s, n))
WRAP(void *, mmap, ENOMEM, MAP_FAILED,
     (void *addr, size_t len, int prot, int flags, int fd, off_t offset),
     (addr, len, prot, flags, fd, offset))
WRAP(int, flock, EIO, -1, (int fd, int operation), (fd, operation))
WRAP(int, fstat, EIO, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, fsync, EIO, -1, (int fd), (fd))
WRAP(int, fdatasync, EIO, -1, (int fd), (fd))
WRAP(int, unlink, EIO, -1, (const char *path), (path))
WRAP(int, linkat, EIO, -1, (int olddir, const char *from, int newdir, const char *to, int flags),
     (olddir, from, newdir, to, flags))
WRAP(int, posix_fallocate, EIO, EIO, (int fd, off_t at, off_t len), (fd, at, len))
WRAP(ssize_t, pread, EIO, -1, (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at))
WRAP(ssize_t, pwrite, EIO, -1, (int fd, const void *buf, size_t len, off_t at), (fd, buf, len, at))

int __wrap_asprintf(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **text, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (fails(ENOMEM))
		return -1;
	va_start(ap, fmt);
	len = vasprintf(text, fmt, ap);
	va_end(ap);
	return len;
}

static struct poolset_attr attr;
static struct poolset_place place;
static int fds;

static int setup(void **state)
{
	attr = disk_attr();
	disk_setup(state);
	disk_write_set("a.set", SET);
	place = disk_place("a.set");
	fds = open_fds();
	return 0;
}

/* Make the n-th request from now fail. */
static void begin(int n)
{
	disk_err = (struct error){0};
	countdown = n;
}

/* Returns true if there was an n-th request. A failed call must have a cause and a text. */
static bool end(int rc)
{
	bool reached = countdown < 0;

	countdown = -1;
	assert_true(!rc || (reached && rc == (int)disk_err.kind && disk_err.cause > 0));
	assert_true(!rc || disk_err.text[0]);
	return reached;
}

static void a_creation_that_fails_leaves_nothing(void **state)
{
	unsigned failed = 0;
	bool reached = true;

	for (int n = 0; reached; n++) {
		struct poolset_pool *pool = NULL;
		int rc;

		begin(n);
		rc = poolset_create(&place, 0, &attr, &pool, &disk_err);
		reached = end(rc);
		if (!rc)
			assert_int_equal(poolset_discard(pool, &disk_err), 0);
		failed += rc != 0;
		assert_int_equal(disk_count_files(), 1);
		assert_int_equal(open_fds(), fds);
	}
	assert_true(failed > 20);
}

static void an_opening_that_fails_changes_nothing(void **state)
{
	unsigned failed = 0;
	bool reached = true;

	disk_close(disk_create("a.set", &attr));
	for (int n = 0; reached; n++) {
		struct poolset_pool *pool = NULL;
		int rc;

		begin(n);
		rc = poolset_open(&place, 0, NULL, &pool, &disk_err);
		reached = end(rc);
		if (!rc)
			disk_close(pool);
		failed += rc != 0;
		assert_int_equal(open_fds(), fds);
	}
	assert_true(failed > 15);
	disk_close(disk_open("a.set", NULL));
}

static void a_close_that_fails_closes(void **state)
{
	bool reached = true;

	disk_close(disk_create("a.set", &attr));
	for (int n = 0; reached; n++) {
		struct poolset_pool *pool = disk_open("a.set", NULL);

		begin(n);
		reached = end(poolset_close(pool, &disk_err));
		assert_int_equal(open_fds(), fds);
	}
	disk_close(disk_open("a.set", NULL));
}

static void a_change_of_attributes_that_fails_can_be_repeated(void **state)
{
	struct poolset_pool *pool = disk_create("a.set", &attr);
	struct poolset_attr got;
	bool reached = true;

	for (int n = 0; reached; n++) {
		attr.uuid[0]++;
		begin(n);
		reached = end(poolset_set_attr(pool, &attr, &disk_err));
	}
	disk_close(pool);
	disk_close(disk_open("a.set", &got));
	assert_memory_equal(&got, &attr, sizeof(attr));
	assert_int_equal(open_fds(), fds);
}

static void a_removal_that_fails_can_be_repeated(void **state)
{
	unsigned failed = 0;
	bool reached = true;

	for (int n = 0; reached; n++) {
		int rc;

		if (disk_count_files() == 1)
			disk_close(disk_create("a.set", &attr));
		begin(n);
		rc = poolset_remove(&place, 0, &disk_err);
		reached = end(rc);
		failed += rc != 0;
		assert_int_equal(open_fds(), fds);
		/* At most the second part may be left. */
		poolset_remove(&place, POOLSET_REMOVE_FORCE, NULL);
		assert_int_equal(disk_count_files(), 1);
	}
	assert_true(failed > 10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_creation_that_fails_leaves_nothing),
		TEST(an_opening_that_fails_changes_nothing),
		TEST(a_close_that_fails_closes),
		TEST(a_change_of_attributes_that_fails_can_be_repeated),
		TEST(a_removal_that_fails_can_be_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
