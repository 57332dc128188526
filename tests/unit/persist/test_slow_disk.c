/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A disk that does not answer for a while: an image on a frozen file system. The file system inside
 * the image is not frozen, so stores succeed, and only write-backs wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "helpers.h"

#define SIZE (1 * MIB)

struct mapped {
	int fd;
	unsigned char *p;
	struct persist_region *region;
};

static void mapped_init(struct mapped *m, const char *name)
{
	m->fd = file_create(name, SIZE);
	m->p = map_file(m->fd, SIZE);
	m->region = region_of(m->p, SIZE);
	memset(m->p, 1, SIZE);
	assert_int_equal(flush(m->region, m->p, SIZE), 0);
}

static void mapped_fini(struct mapped *m)
{
	persist_region_put(m->region);
	munmap(m->p, SIZE);
	close(m->fd);
}

static void a_slow_file_does_not_hold_up_another(void **state)
{
	enum { JOBS = 20 };
	struct mapped slow, fast;
	struct flush jobs[JOBS];

	mapped_init(&slow, "inner/slow");
	mapped_init(&fast, "fast");
	disk_freeze("outer");
	for (size_t i = 0; i < JOBS; i++) {
		slow.p[i * PAGE] = 2;
		flush_start(&jobs[i], slow.region, slow.p + i * PAGE, PAGE);
	}
	for (int i = 0; i < 20; i++) {
		fast.p[0] = (unsigned char)i;
		assert_int_equal(flush(fast.region, fast.p, PAGE), 0);
	}
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 0), -ETIMEDOUT);
	/* Two threads wait for the slow file, and the others serve other files. On a busy machine a
	 * flush can be submitted before the thread of the former flush is idle again, so a few more
	 * threads are started, but far fewer than one for each waiting job. */
	assert_true(threads_named("rpma-persist") <= JOBS / 2);
	disk_thaw();
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 20000), 0);
	mapped_fini(&slow);
	mapped_fini(&fast);
	unlink("fast");
}

/* The slots only limit the write-backs of each file, so with many files more write-backs hang than
 * the pool has threads. */
static void many_slow_files_do_not_hold_up_another(void **state)
{
	enum { FILES = 20, JOBS = 2 * FILES };
	struct mapped slow[FILES], fast;
	struct flush jobs[JOBS];
	struct vext_digest d;

	for (int i = 0; i < FILES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "inner/slow%d", i);
		mapped_init(&slow[i], name);
	}
	mapped_init(&fast, "fast");
	disk_freeze("outer");
	for (size_t i = 0; i < JOBS; i++) {
		struct mapped *m = &slow[i / 2];

		m->p[i % 2 * PAGE] = 2;
		flush_start(&jobs[i], m->region, m->p + i % 2 * PAGE, PAGE);
		/* This job is the first one that finds all threads busy and none of them
		 * stalled. */
		if (i == 15) {
			struct flush next;

			flush_start(&next, fast.region, fast.p, PAGE);
			assert_int_equal(flush_wait(&next, 1000), 0);
		}
	}
	for (int i = 0; i < 20; i++) {
		struct flush next;

		fast.p[0] = (unsigned char)i;
		flush_start(&next, fast.region, fast.p, PAGE);
		assert_int_equal(flush_wait(&next, 1000), 0);
	}
	assert_int_equal(digest(fast.region, fast.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 0), -ETIMEDOUT);
	disk_thaw();
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 20000), 0);
	for (int i = 0; i < FILES; i++)
		mapped_fini(&slow[i]);
	mapped_fini(&fast);
	unlink("fast");
}

static void memory_unmapped_while_its_job_waits_is_written_back(void **state)
{
	struct mapped first, second;
	struct flush jobs[3];

	mapped_init(&first, "inner/file");
	second.fd = dup(first.fd);
	second.p = map_file(second.fd, SIZE);
	second.region = region_of(second.p, SIZE);
	disk_freeze("outer");
	/* Both slots of the file are taken when the third job is submitted. */
	for (size_t i = 0; i < 2; i++) {
		first.p[i * PAGE] = 3;
		flush_start(&jobs[i], first.region, first.p + i * PAGE, PAGE);
	}
	usleep(100000);
	second.p[4 * PAGE] = 3;
	flush_start(&jobs[2], second.region, second.p + 4 * PAGE, PAGE);
	munmap(second.p, SIZE);
	assert_int_equal(flush_wait(&jobs[2], 100), -ETIMEDOUT);
	disk_thaw();
	for (int i = 0; i < 3; i++)
		assert_int_equal(flush_wait(&jobs[i], 20000), 0);
	assert_int_equal(dirty_kib(first.p), 0);
	persist_region_put(second.region);
	close(second.fd);
	mapped_fini(&first);
}

/*
 * A connection is closed while its job is running: the memory is released immediately, and the job
 * finishes later.
 */
static void an_abandoned_job_lets_go_of_its_memory_at_once(void **state)
{
	struct mapped m;
	struct flush jobs[4];

	mapped_init(&m, "inner/gone");
	disk_freeze("outer");
	for (size_t i = 0; i < 4; i++) {
		m.p[i * PAGE] = 5;
		flush_start(&jobs[i], m.region, m.p + i * PAGE, PAGE);
		/* begin the later jobs after this write-back has begun, so that they do not share
		 * it */
		if (i == 1)
			assert_int_equal(flush_wait(&jobs[i], 200), -ETIMEDOUT);
	}
	assert_int_equal(flush_wait(&jobs[0], 200), -ETIMEDOUT);
	for (int i = 0; i < 4; i++)
		assert_true(persist_abandon(&jobs[i].job));
	/* Only two slots exist, so the other jobs have not begun. */
	assert_int_equal(flush_wait(&jobs[2], 0), -ECANCELED);
	assert_int_equal(flush_wait(&jobs[3], 0), -ECANCELED);
	assert_int_equal(flush_wait(&jobs[0], 0), -ETIMEDOUT);
	munmap(m.p, SIZE);
	disk_thaw();
	assert_int_equal(flush_wait(&jobs[0], 20000), -ECANCELED);
	assert_int_equal(flush_wait(&jobs[1], 20000), -ECANCELED);
	/* No byte is lost: other jobs of the file still work. */
	m.p = map_file(m.fd, SIZE);
	persist_region_put(m.region);
	m.region = region_of(m.p, SIZE);
	m.p[0] = 6;
	assert_int_equal(flush(m.region, m.p, SIZE), 0);
	assert_int_equal(dirty_kib(m.p), 0);
	mapped_fini(&m);
}

static void *cut_last_page(void *arg)
{
	struct mapped *m = arg;

	return (void *)(intptr_t)ftruncate(m->fd, (off_t)(SIZE - PAGE));
}

static void wait_until_size_is(int fd, size_t size)
{
	struct stat st = {0};

	for (int i = 0; i < 1000 && (size_t)st.st_size != size; i++) {
		usleep(5000);
		assert_int_equal(fstat(fd, &st), 0);
	}
	assert_int_equal(st.st_size, size);
}

static void a_file_truncated_while_its_job_runs_is_an_error(void **state)
{
	struct mapped m;
	struct flush job;
	pthread_t cutter;
	void *cut;

	mapped_init(&m, "inner/cut");
	m.p[SIZE - 1] = 4;
	disk_freeze("outer");
	flush_start(&job, m.region, m.p, SIZE);
	assert_int_equal(flush_wait(&job, 200), -ETIMEDOUT);
	/* The thread changes the size, and then waits for the page that is being written. */
	assert_int_equal(pthread_create(&cutter, NULL, cut_last_page, &m), 0);
	wait_until_size_is(m.fd, SIZE - PAGE);
	disk_thaw();
	assert_int_equal(flush_wait(&job, 20000), -EFAULT);
	pthread_join(cutter, &cut);
	assert_null(cut);
	mapped_fini(&m);
}

/* If the library opened the file for writing, the overlay would copy the file up. The new file
 * would not be the mapped file. */
static void a_file_of_an_overlay_stays_where_it_is_when_it_is_only_read(void **state)
{
	struct persist_region *region;
	void *p;
	int fd;

	assert_int_equal(mkdir("outer/lower", 0755), 0);
	close(file_create("outer/lower/file", SIZE));
	disk_mount_overlay("outer", "merged");
	fd = open("merged/file", O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	region = region_of(p, SIZE);
	assert_false(persist_region_is_detachable(region, p, SIZE));
	assert_int_equal(flush(region, p, SIZE), 0);
	assert_int_not_equal(access("outer/upper/file", F_OK), 0);
	persist_region_put(region);
	munmap(p, SIZE);
	close(fd);
	/* Overlays copy a file up when it is first written. */
	fd = open("merged/file", O_RDWR | O_CLOEXEC);
	p = map_file(fd, SIZE);
	region = region_of(p, SIZE);
	assert_true(persist_region_is_detachable(region, p, SIZE));
	memset(p, 1, SIZE);
	assert_int_equal(flush(region, p, SIZE), 0);
	assert_int_equal(dirty_kib(p), 0);
	persist_region_put(region);
	munmap(p, SIZE);
	close(fd);
}

static void expect_class_on(const char *name, enum vext_durability cls)
{
	int fd = file_create(name, SIZE);
	unsigned char *p = map_file(fd, SIZE);
	struct persist_region *region = region_of(p, SIZE);

	assert_int_equal(persist_region_class(region, p, SIZE), cls);
	persist_region_put(region);
	munmap(p, SIZE);
	close(fd);
}

/* An overlay with the option "volatile" cannot even be mounted again after a crash. */
static void an_overlay_that_syncs_nothing_is_volatile(void **state)
{
	assert_int_equal(mkdir("outer/kept", 0755), 0);
	assert_int_equal(mkdir("outer/thrown", 0755), 0);
	disk_mount_overlay("outer/kept", "synced");
	expect_class_on("synced/file", VEXT_DURABILITY_FILE);
	disk_mount_overlay_with("outer/thrown", "volatile", "volatile");
	expect_class_on("volatile/file", VEXT_DURABILITY_VOLATILE);
}

/* Unfreeze the file system if a failed test has left it frozen, because later tests need it. */
static int thaw(void **state)
{
	disk_thaw();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_slow_file_does_not_hold_up_another, thaw),
		cmocka_unit_test_teardown(many_slow_files_do_not_hold_up_another, thaw),
		cmocka_unit_test_teardown(memory_unmapped_while_its_job_waits_is_written_back,
					  thaw),
		cmocka_unit_test_teardown(an_abandoned_job_lets_go_of_its_memory_at_once, thaw),
		cmocka_unit_test(an_overlay_that_syncs_nothing_is_volatile),
		cmocka_unit_test(a_file_of_an_overlay_stays_where_it_is_when_it_is_only_read),
		cmocka_unit_test_teardown(a_file_truncated_while_its_job_runs_is_an_error, thaw),
	};
	int failed;

	disk_begin();
	disk_mount_image("ext4", "outer.image", 96 * MIB, "outer");
	disk_mount_image("ext4", "outer/inner.image", 48 * MIB, "inner");
	failed = cmocka_run_group_tests_name("persist-slow-disk", tests, NULL, NULL);
	disk_end();
	return failed;
}
