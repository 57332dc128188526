/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that are refused before a process is started, and the library's version. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <librpmem.h>
#include <sys/mman.h>
#include <unistd.h>

static char *pool;
static const size_t size = 8192;

static int map_pool(void **state)
{
	/* no such program exists, so a run of ssh in spite of a wrong argument is noticed */
	setenv("RPMEM_SSH", "/no/such/ssh", 1);
	setenv("RPMEM_ENABLE_SOCKETS", "1", 1);
	pool = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pool == MAP_FAILED;
}

static void wrong_arguments_are_refused(void **state)
{
	unsigned one = 1, none = 0;
	struct {
		const char *target, *set;
		char *addr;
		size_t size;
		unsigned *nlanes;
	} rows[] = {
		{"host", "set", NULL, size, &one},   {"host", "set", pool + 64, size, &one},
		{"host", "set", pool, 0, &one},      {"host", "set", pool, size - 1, &one},
		{"host", "set", pool, size, NULL},   {"host", "set", pool, size, &none},
		{"", "set", pool, size, &one},       {NULL, "set", pool, size, &one},
		{"host:0", "set", pool, size, &one}, {"host", NULL, pool, size, &one},
		{"host", "", pool, size, &one},      {"[::1", "set", pool, size, &one},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 0;
		assert_null(rpmem_create(rows[i].target, rows[i].set, rows[i].addr, rows[i].size,
					 rows[i].nlanes, NULL));
		assert_int_equal(errno, EINVAL);
		assert_true(strlen(rpmem_errormsg()) > 10);
		errno = 0;
		assert_null(rpmem_open(rows[i].target, rows[i].set, rows[i].addr, rows[i].size,
				       rows[i].nlanes, NULL));
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(one, 1);
}

static void without_a_device_the_error_names_the_variable(void **state)
{
	unsigned lanes = 1;

	setenv("RPMEM_ENABLE_SOCKETS", "0", 1);
	assert_null(rpmem_create("127.0.0.1", "set", pool, size, &lanes, NULL));
	assert_int_equal(errno, ENOMEDIUM);
	assert_non_null(strstr(rpmem_errormsg(), "cannot find provider"));
	assert_non_null(strstr(rpmem_errormsg(), "127.0.0.1"));
	assert_non_null(strstr(rpmem_errormsg(), "RPMEM_ENABLE_SOCKETS=1"));
	setenv("RPMEM_ENABLE_VERBS", "0", 1);
	assert_null(rpmem_create("127.0.0.1", "set", pool, size, &lanes, NULL));
	assert_int_equal(errno, ENOMEDIUM);
	assert_non_null(strstr(rpmem_errormsg(), "RPMEM_ENABLE_VERBS=0"));
}

static void an_ssh_that_is_not_there_is_named(void **state)
{
	unsigned lanes = 1;

	assert_null(rpmem_create("127.0.0.1", "set", pool, size, &lanes, NULL));
	assert_int_equal(errno, ECONNRESET);
	assert_non_null(strstr(rpmem_errormsg(), "/no/such/ssh"));
	assert_int_equal(rpmem_remove("127.0.0.1", "set", 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void a_null_pool_is_refused(void **state)
{
	char byte;

	assert_int_equal(rpmem_persist(NULL, 0, 8, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rpmem_read(NULL, &byte, 0, 1, 0), -1);
	assert_int_equal(rpmem_close(NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void remove_checks_its_flags(void **state)
{
	assert_int_equal(rpmem_remove("host", "set", 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rpmem_remove("host", "", 0), -1);
	assert_int_equal(errno, EINVAL);
}

static void the_version_is_1_3(void **state)
{
	assert_null(rpmem_check_version(1, 0));
	assert_null(rpmem_check_version(1, 3));
	assert_string_equal(rpmem_check_version(1, 4),
			    "librpmem minor version mismatch (need 4, found 3)");
	assert_string_equal(rpmem_check_version(2, 0),
			    "librpmem major version mismatch (need 2, found 1)");
	assert_string_equal(rpmem_errormsg(), "librpmem major version mismatch (need 2, found 1)");
}

static void the_structure_is_that_of_pmdk(void **state)
{
	assert_int_equal(sizeof(struct rpmem_pool_attr), 104);
	assert_int_equal(_Alignof(struct rpmem_pool_attr), 4);
	assert_int_equal(offsetof(struct rpmem_pool_attr, poolset_uuid), 24);
	assert_int_equal(offsetof(struct rpmem_pool_attr, next_uuid), 56);
	assert_int_equal(offsetof(struct rpmem_pool_attr, prev_uuid), 72);
	assert_int_equal(offsetof(struct rpmem_pool_attr, user_flags), 88);
	assert_int_equal(RPMEM_MIN_POOL, 8192);
	assert_int_equal(RPMEM_MIN_PART, 2 << 20);
	assert_int_equal(RPMEM_PERSIST_RELAXED | RPMEM_FLUSH_RELAXED, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wrong_arguments_are_refused, map_pool),
		cmocka_unit_test_setup(without_a_device_the_error_names_the_variable, map_pool),
		cmocka_unit_test_setup(an_ssh_that_is_not_there_is_named, map_pool),
		cmocka_unit_test(a_null_pool_is_refused),
		cmocka_unit_test(remove_checks_its_flags),
		cmocka_unit_test(the_version_is_1_3),
		cmocka_unit_test(the_structure_is_that_of_pmdk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
