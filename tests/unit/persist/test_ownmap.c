/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own mapping of a file, and what works without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "lib/fds.h"

static struct ownmap *own_of(const struct persist_region *region)
{
	return atomic_load(&region->ranges[0].file->own);
}

/* Returns 0 if another process cannot lock the file. */
static int expect_locked(void *arg)
{
	struct flock lock = {.l_type = F_WRLCK};

	CHECK(fcntl(*(int *)arg, F_GETLK, &lock) == 0);
	CHECK(lock.l_type == F_WRLCK);
	return 0;
}

static void the_application_keeps_its_posix_locks(void **state)
{
	struct flock lock = {.l_type = F_WRLCK};
	struct persist_region *region;
	int fd = file_create("locked", 4 * PAGE);
	unsigned char *p = map_file(fd, 4 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	region = region_of(p, 4 * PAGE);
	assert_non_null(own_of(region));
	assert_int_equal(in_child(expect_locked, &fd, true), 0);
	p[0] = 1;
	assert_int_equal(flush(region, p, 4 * PAGE), 0);
	assert_int_equal(in_child(expect_locked, &fd, true), 0);
	persist_region_put(region);
	assert_int_equal(in_child(expect_locked, &fd, true), 0);
	munmap(p, 4 * PAGE);
	unlink("locked");
	close(fd);
}

static void a_region_holds_one_descriptor(void **state)
{
	struct backed m;
	int before = open_fds(), fd;

	backed_init(&m, NULL, PAGE);
	fd = m.fd;
	assert_int_equal(open_fds(), before + 1 + here_is_persistent());
	assert_int_equal(flush(m.region, m.p, PAGE), 0);
	assert_int_equal(open_fds(), before + 1 + here_is_persistent());
	assert_true(fd >= 0);
	backed_fini(&m);
	assert_int_equal(open_fds(), before);
}

static void a_file_that_grows_is_mapped_further(void **state)
{
	int fd = file_create(NULL, PAGE);
	unsigned char *p = map_file(fd, 64 * PAGE);
	struct persist_region *first = region_of(p, PAGE), *last;
	struct ownmap *own;

	if (!here_is_persistent())
		skip();
	own = own_of(first);
	assert_non_null(own);
	assert_int_equal(own->len, PAGE);
	assert_int_equal(ftruncate(fd, (off_t)(64 * PAGE)), 0);
	last = region_of(p + 63 * PAGE, PAGE);
	assert_ptr_equal(own_of(first), own_of(last));
	assert_true(own_of(last)->len >= 64 * PAGE);
	/* The old mapping is kept, because a thread of the pool may be using it. */
	assert_ptr_equal(own_of(last)->older, own);
	p[0] = p[63 * PAGE] = 1;
	assert_int_equal(flush(first, p, PAGE), 0);
	assert_int_equal(flush(last, p + 63 * PAGE, PAGE), 0);
	assert_int_equal(dirty_kib(p), 0);
	/* Release the region at the end of the file; a flush of the other region still works. */
	persist_region_put(last);
	p[0] = 2;
	assert_int_equal(flush(first, p, PAGE), 0);
	assert_int_equal(dirty_kib(p), 0);
	persist_region_put(first);
	munmap(p, 64 * PAGE);
	close(fd);
}

static int use_own_of_child(void *arg)
{
	struct backed *inherited = arg;
	struct persist_region *region;

	CHECK(!own_of(inherited->region));
	inherited->p[0] = 3;
	CHECK(flush(inherited->region, inherited->p, PAGE) == 0);
	region = region_of(inherited->p, PAGE);
	CHECK(own_of(region));
	CHECK(flush(region, inherited->p, PAGE) == 0);
	persist_region_put(region);
	return 0;
}

/* If parent and child shared a file description, only one of them would get an error. */
static void a_child_has_a_description_of_its_own(void **state)
{
	struct ownmap *own;
	struct backed m;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, 2 * PAGE);
	own = own_of(m.region);
	assert_int_equal(in_child(use_own_of_child, &m, true), 0);
	assert_ptr_equal(own_of(m.region), own);
	assert_int_equal(flush(m.region, m.p, 2 * PAGE), 0);
	backed_fini(&m);
}

/* msync() of a read-only mapping does nothing in the kernel. */
static void a_flush_through_a_mapping_that_is_read_only_reaches_the_medium(void **state)
{
	int fd = file_create("alias", 2 * PAGE), read_only = open("alias", O_RDONLY | O_CLOEXEC);
	unsigned char *p = map_file(fd, 2 * PAGE);
	void *q = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, read_only, 0);
	struct persist_region *region = region_of(q, 2 * PAGE);

	if (!here_is_persistent())
		skip();
	memset(p, 1, 2 * PAGE);
	assert_int_equal(msync(q, 2 * PAGE, MS_SYNC), 0);
	assert_true(dirty_kib(p) > 0);
	assert_int_equal(flush(region, q, 2 * PAGE), 0);
	assert_int_equal(dirty_kib(p), 0);
	persist_region_put(region);
	munmap(p, 2 * PAGE);
	munmap(q, 2 * PAGE);
	unlink("alias");
	close(fd);
	close(read_only);
}

struct aliases {
	unsigned char *p; /* a writable mapping */
	void *q;          /* a mapping of a read-only descriptor */
};

static int flush_without_own(void *arg)
{
	struct aliases *a = arg;
	struct persist_region *region = region_of(a->p, 2 * PAGE),
			      *alias = region_of(a->q, 2 * PAGE);

	CHECK(!own_of(region));
	CHECK(!persist_region_is_detachable(region, a->p, PAGE));
	CHECK(!strncmp(region->why, "file, errors shared: ", 21));
	CHECK(strstr(region->why, "/guarded (") && strstr(region->why, "Permission denied"));
	CHECK(persist_region_class(region, a->p, PAGE) == VEXT_DURABILITY_FILE);
	a->p[0] = 1;
	CHECK(dirty_kib(a->p) > 0);
	CHECK(flush(region, a->p, PAGE) == 0);
	CHECK(dirty_kib(a->p) == 0);
	a->p[0] = 2;
	CHECK(dirty_kib(a->p) > 0);
	CHECK(flush(alias, a->q, PAGE) == 0);
	CHECK(dirty_kib(a->p) == 0);
	persist_region_put(region);
	persist_region_put(alias);
	return 0;
}

/* The application opened the file before it gave up its privileges. */
static void without_a_description_of_our_own_a_flush_still_reaches_the_medium(void **state)
{
	int fd = file_create("guarded", 2 * PAGE), read_only;
	struct aliases a;

	if (!here_is_persistent() || geteuid() != 0)
		skip();
	assert_int_equal(fchmod(fd, 0644), 0);
	read_only = open("guarded", O_RDONLY | O_CLOEXEC);
	a.p = map_file(fd, 2 * PAGE);
	a.q = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, read_only, 0);
	assert_int_equal(in_child(flush_without_own, &a, false), 0);
	munmap(a.p, 2 * PAGE);
	munmap(a.q, 2 * PAGE);
	unlink("guarded");
	close(fd);
	close(read_only);
}

static int register_in_narrow_space(void *arg)
{
	struct persist_region *region;
	struct rlimit limit;
	unsigned long pages;
	FILE *statm = fopen("/proc/self/statm", "re");

	CHECK(statm && fscanf(statm, "%lu", &pages) == 1);
	fclose(statm);
	limit.rlim_cur = limit.rlim_max = pages * PAGE + 64 * MIB;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	region = region_of(arg, PAGE);
	CHECK(!own_of(region));
	CHECK(!strncmp(region->why, "file, errors shared: ", 21));
	CHECK(flush(region, arg, PAGE) == 0);
	persist_region_put(region);
	return 0;
}

/* The library's own mapping begins at offset 0 of the file. */
static void without_address_space_the_explanation_states_it(void **state)
{
	size_t far = 1024 * MIB;
	int fd = file_create("far", far + PAGE);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)far);

	if (!here_is_persistent())
		skip();
	assert_int_equal(in_child(register_in_narrow_space, p, true), 0);
	munmap(p, PAGE);
	unlink("far");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_application_keeps_its_posix_locks),
		cmocka_unit_test(a_region_holds_one_descriptor),
		cmocka_unit_test(a_file_that_grows_is_mapped_further),
		cmocka_unit_test(a_child_has_a_description_of_its_own),
		cmocka_unit_test(a_flush_through_a_mapping_that_is_read_only_reaches_the_medium),
		cmocka_unit_test(without_a_description_of_our_own_a_flush_still_reaches_the_medium),
		cmocka_unit_test(without_address_space_the_explanation_states_it),
	};

	return cmocka_run_group_tests_name("persist-ownmap", tests, NULL, NULL);
}
