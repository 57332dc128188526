/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of librpmem, with rpmemd: their effects at the target, and which calls are refused. */
#include "system/librpmem/place.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void compare_with_replica(size_t from)
{
	size_t size;
	const unsigned char *replica = place_map("pool.set.part", &size);

	assert_int_equal(size, PLACE_POOL);
	assert_memory_equal(replica + from, place_local + from, size - from);
	munmap((void *)replica, size);
}

static void what_is_persisted_is_in_the_replica(void **state)
{
	RPMEM_OK(rpmem_persist(place_pool, 4096, PLACE_POOL - 4096, 0, 0));
	compare_with_replica(4096);
	memset(place_local + 5000, 0xee, 77);
	RPMEM_OK(rpmem_persist(place_pool, 5000, 77, 7, RPMEM_PERSIST_RELAXED));
	compare_with_replica(4096);
}

static void what_is_read_is_what_the_replica_holds(void **state)
{
	static const size_t sizes[] = {1, 8, 4097, 65536, 65537, PLACE_POOL - 4096};
	unsigned char *buff = malloc(PLACE_POOL);
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_persist(rpp, 4096, PLACE_POOL - 4096, 0, 0));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		memset(buff, 0, PLACE_POOL);
		RPMEM_OK(rpmem_read(rpp, buff, 4096, sizes[i], (unsigned)i % 8));
		assert_memory_equal(buff, place_local + 4096, sizes[i]);
	}
	RPMEM_OK(rpmem_read(rpp, buff, 0, 4096, 0)); /* the header of the pool can be read, too */
	assert_memory_equal(buff, place_attr.signature, 8);
	RPMEM_OK(rpmem_close(rpp));
	free(buff);
}

static void a_pool_that_is_opened_again_has_its_attributes(void **state)
{
	struct rpmem_pool_attr attr;
	unsigned lanes = 3;
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_persist(rpp, 8192, 64, 0, 0));
	RPMEM_OK(rpmem_close(rpp));
	rpp = rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &lanes, &attr);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	assert_int_equal(lanes, 3);
	assert_memory_equal(&attr, &place_attr, sizeof(attr));
	RPMEM_OK(rpmem_close(rpp));
}

/* pmempool opens only two pages to examine a pool. */
static void two_pages_are_enough_to_open(void **state)
{
	unsigned char *heap = aligned_alloc(4096, 8192);
	unsigned lanes = 1;
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_close(rpp));
	rpp = rpmem_open("localhost", "pool.set", heap, 8192, &lanes, NULL);
	assert_non_null(rpp);
	RPMEM_OK(rpmem_read(rpp, heap, 0, 8192, 0));
	RPMEM_FAILS(rpmem_read(rpp, heap, 4096, 4097, 0), EINVAL);
	RPMEM_OK(rpmem_close(rpp));
	free(heap);
}

static void set_attr_changes_the_header(void **state)
{
	struct rpmem_pool_attr attr = place_attr, got;
	unsigned lanes = 1;
	RPMEMpool *rpp = place_create("localhost");

	memset(attr.uuid, 0x77, sizeof(attr.uuid));
	attr.major = 9;
	RPMEM_OK(rpmem_set_attr(rpp, &attr));
	RPMEM_OK(rpmem_persist(rpp, 4096, 64, 0, 0));
	RPMEM_FAILS(rpmem_set_attr(rpp, NULL), EINVAL);
	RPMEM_OK(rpmem_close(rpp));
	rpp = rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &lanes, &got);
	assert_non_null(rpp);
	assert_memory_equal(&got, &attr, sizeof(attr));
	RPMEM_OK(rpmem_close(rpp));
}

static void wrong_arguments_change_nothing(void **state)
{
	unsigned char byte;
	size_t end = PLACE_POOL;

	RPMEM_FAILS(rpmem_persist(place_pool, 4095, 8, 0, 0), EINVAL);
	RPMEM_FAILS(rpmem_persist(place_pool, 8192, 8, 0, 2), EINVAL);
	RPMEM_FAILS(rpmem_persist(place_pool, 8192, 8, 8, 0), EINVAL);
	RPMEM_FAILS(rpmem_persist(place_pool, end - 7, 8, 0, 0), EINVAL);
	RPMEM_FAILS(rpmem_persist(place_pool, SIZE_MAX - 3, 8, 0, 0), EINVAL);
	RPMEM_FAILS(rpmem_persist(place_pool, 8192, SIZE_MAX, 0, 0), EINVAL);
	RPMEM_FAILS(rpmem_deep_persist(place_pool, 0, 8, 0), EINVAL);
	RPMEM_FAILS(rpmem_flush(place_pool, 0, 8, 0, 0), EINVAL);
	RPMEM_FAILS(rpmem_drain(place_pool, 8, 0), EINVAL);
	RPMEM_FAILS(rpmem_drain(place_pool, 0, 1), EINVAL);
	RPMEM_FAILS(rpmem_read(place_pool, &byte, end, 1, 0), EINVAL);
	RPMEM_FAILS(rpmem_read(place_pool, NULL, 0, 1, 0), EINVAL);
	RPMEM_OK(rpmem_persist(place_pool, 8192, 8, 0, 0));
	RPMEM_OK(rpmem_persist(place_pool, end - 8, 8, 0, 0));
}

static void the_header_is_protected_without_attributes_too(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_close(rpp));
	rpp = place_open("localhost");
	RPMEM_FAILS(rpmem_persist(rpp, 0, 8, 0, 0), EINVAL);
	RPMEM_OK(rpmem_close(rpp));
	RPMEM_OK(rpmem_close(place_open("localhost")));
}

static void nothing_is_a_range(void **state)
{
	RPMEM_OK(rpmem_persist(place_pool, 0, 0, 0, 0));
	RPMEM_OK(rpmem_flush(place_pool, 0, 0, 0, 0));
	RPMEM_OK(rpmem_drain(place_pool, 5, 0));
	RPMEM_OK(rpmem_read(place_pool, NULL, 0, 0, 0));
}

/* Make more flushes than the work queue has slots. Without RPMEM_FLUSH_RELAXED the source is
 * allowed to change after the call. */
static void flushes_are_durable_after_the_drain(void **state)
{
	for (size_t i = 0; i < 200; i++)
		RPMEM_OK(rpmem_flush(place_pool, 4096 + i * 100, 100, 2, RPMEM_FLUSH_RELAXED));
	RPMEM_OK(rpmem_drain(place_pool, 2, 0));
	for (size_t i = 0; i < 200; i++) {
		unsigned char was[100];

		memcpy(was, place_local + 40960 + i * 100, 100);
		RPMEM_OK(rpmem_flush(place_pool, 40960 + i * 100, 100, 2, 0));
		memset(place_local + 40960 + i * 100, 0, 100);
		memcpy(place_local + 40960 + i * 100, was, 100);
	}
	RPMEM_OK(rpmem_persist(place_pool, 4096 + 20000, PLACE_POOL - 24096, 2, 0));
	compare_with_replica(4096);
}

static void deep_persist_reaches_the_replica(void **state)
{
	RPMEM_OK(rpmem_deep_persist(place_pool, 4096, PLACE_POOL - 4096, 1));
	compare_with_replica(4096);
}

static void a_pool_without_headers_is_written_from_its_beginning(void **state)
{
	struct rpmem_pool_attr attr;
	unsigned lanes = 1;
	RPMEMpool *rpp;

	place_add_set("pool.set", "OPTION NOHDRS\n", PLACE_POOL);
	rpp = rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &lanes, NULL);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	RPMEM_OK(rpmem_persist(rpp, 0, PLACE_POOL, 0, 0));
	RPMEM_OK(rpmem_deep_persist(rpp, 0, 64, 0));
	compare_with_replica(0);
	RPMEM_FAILS(rpmem_set_attr(rpp, &place_attr), EINVAL);
	RPMEM_OK(rpmem_set_attr(rpp, NULL));
	RPMEM_OK(rpmem_close(rpp));
	memset(&attr, 1, sizeof(attr));
	rpp = rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &lanes, &attr);
	assert_non_null(rpp);
	assert_int_equal(attr.major, 0);
	assert_int_equal(attr.signature[0], 0);
	RPMEM_OK(rpmem_close(rpp));
}

struct worker {
	RPMEMpool *rpp;
	unsigned lane;
	int rc;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	size_t begin = 4096 + w->lane * 65536;

	for (size_t i = 0; i < 65536 && !w->rc; i += 256) {
		memset(place_local + begin + i, (int)(w->lane + i / 256), 256);
		w->rc = rpmem_persist(w->rpp, begin + i, 256, w->lane, 0);
	}
	return NULL;
}

static void lanes_are_independent(void **state)
{
	struct worker workers[8];
	pthread_t threads[8];

	RPMEM_OK(rpmem_persist(place_pool, 4096, PLACE_POOL - 4096, 0, 0));
	for (unsigned i = 0; i < 8; i++) {
		workers[i] = (struct worker){.rpp = place_pool, .lane = i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].rc, 0);
	}
	compare_with_replica(4096);
}

/* libpmemobj unmaps the pool before it closes it. */
static void close_does_not_touch_the_local_pool(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_persist(rpp, 4096, PLACE_POOL - 4096, 0, 0));
	assert_int_equal(mprotect(place_local, PLACE_POOL, PROT_NONE), 0);
	RPMEM_OK(rpmem_close(rpp));
}

static void expect_errno(RPMEMpool *rpp, int error, const char *words)
{
	assert_null(rpp);
	if (errno != error || !strstr(rpmem_errormsg(), words))
		fail_msg("errno %d, not %d: %s", errno, error, rpmem_errormsg());
}

/* PMDK's programs compare the begin of the text, which is the status. */
static void expect_refusal(RPMEMpool *rpp, int error, const char *begin)
{
	expect_errno(rpp, error, begin);
	assert_ptr_equal(strstr(rpmem_errormsg(), begin), rpmem_errormsg());
	assert_non_null(strstr(rpmem_errormsg(), "(rpmemd on localhost)"));
}

static void refusals_have_their_errno(void **state)
{
	unsigned n = 5;
	RPMEMpool *rpp;

	expect_errno(rpmem_open("localhost", "no.set", place_local, PLACE_POOL, &n, NULL), ENOENT,
		     "no.set");
	expect_errno(rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &n, NULL), ENOENT,
		     "pool.set");
	expect_refusal(rpmem_create("localhost", "/pool.set", place_local, PLACE_POOL, &n, NULL),
		       EINVAL, "Invalid pool descriptor");
	place_add_set("small.set", "", 4 * MIB);
	expect_refusal(
		rpmem_create("localhost", "small.set", place_local, PLACE_POOL, &n, &place_attr),
		EFBIG, "Invalid pool size");
	expect_refusal(rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &n, NULL),
		       EINVAL, "Invalid pool set configuration");
	rpp = place_create("localhost");
	expect_refusal(rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &n, NULL),
		       EBUSY, "Pool already in use");
	RPMEM_OK(rpmem_close(rpp));
	expect_refusal(
		rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &n, &place_attr),
		EEXIST, "Pool already exists");
	assert_int_equal(n, 5);
}

/* The local pool can be private to its user, so the copy must be private, whatever the umask is. */
static void the_copy_is_its_users_alone(void **state)
{
	mode_t was = umask(0);
	struct stat st;

	RPMEM_OK(rpmem_close(place_create("localhost")));
	umask(was);
	assert_int_equal(stat(place_path("pool.set.part"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void the_log_has_the_lines_that_programs_look_for(void **state)
{
	RPMEM_OK(rpmem_close(place_create("localhost")));
	place_expect_log("rpmemd version ");
	place_expect_log("persistency policy:");
	place_expect_log("  persist method: ");
	place_expect_log("  persist flush: ");
}

static void removing_takes_the_parts(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	/* the pool is still in use */
	RPMEM_FAILS(rpmem_remove("localhost", "pool.set", 0), EAGAIN);
	RPMEM_OK(rpmem_close(rpp));
	RPMEM_OK(rpmem_remove("localhost", "pool.set", 0));
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	assert_int_equal(access(place_path("pool.set"), F_OK), 0);
	RPMEM_FAILS(rpmem_remove("localhost", "pool.set", 0), ENOENT);
	assert_non_null(strstr(rpmem_errormsg(), "pool.set")); /* the text comes from rpmemd */
	RPMEM_OK(rpmem_remove("localhost", "pool.set", RPMEM_REMOVE_FORCE | RPMEM_REMOVE_POOL_SET));
	assert_int_equal(access(place_path("pool.set"), F_OK), -1);
}

static void names_with_blanks_are_quoted(void **state)
{
	unsigned n = 1;
	RPMEMpool *rpp;
	char text[1200];
	FILE *f = fopen(place_path("it's a pool.set"), "w");

	assert_non_null(f);
	snprintf(text, sizeof(text), "PMEMPOOLSET\n8M %s/pools/x.part\n", place_dir);
	fputs(text, f);
	fclose(f);
	rpp = rpmem_create("localhost", "it's a pool.set", place_local, PLACE_POOL, &n,
			   &place_attr);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	RPMEM_OK(rpmem_close(rpp));
	RPMEM_OK(rpmem_remove("localhost", "it's a pool.set", RPMEM_REMOVE_POOL_SET));
	assert_int_equal(access(place_path("x.part"), F_OK), -1);
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
#define POOL(f) cmocka_unit_test_setup_teardown(f, place_setup_pool, place_teardown_pool)
	const struct CMUnitTest tests[] = {
		POOL(what_is_persisted_is_in_the_replica),
		TEST(what_is_read_is_what_the_replica_holds),
		TEST(a_pool_that_is_opened_again_has_its_attributes),
		TEST(two_pages_are_enough_to_open),
		TEST(set_attr_changes_the_header),
		POOL(wrong_arguments_change_nothing),
		TEST(the_header_is_protected_without_attributes_too),
		POOL(nothing_is_a_range),
		POOL(flushes_are_durable_after_the_drain),
		POOL(deep_persist_reaches_the_replica),
		TEST(a_pool_without_headers_is_written_from_its_beginning),
		POOL(lanes_are_independent),
		TEST(close_does_not_touch_the_local_pool),
		TEST(refusals_have_their_errno),
		TEST(the_copy_is_its_users_alone),
		TEST(the_log_has_the_lines_that_programs_look_for),
		TEST(removing_takes_the_parts),
		TEST(names_with_blanks_are_quoted),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
