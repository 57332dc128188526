/* SPDX-License-Identifier: BSD-3-Clause */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

static atomic_bool statx_is_old;

/* Replaces libc's statx() to hide the alignment of direct reads. */
int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
	  struct statx *restrict st)
{
	int ret = (int)syscall(SYS_statx, dirfd, path, flags, mask, st);

	if (!ret && atomic_load(&statx_is_old))
		st->stx_mask &= ~STATX_DIOALIGN;
	return ret;
}

/*
 * Returns the source of digests of files in this directory: the file system decides whether files
 * are read directly.
 */
static enum vext_digest_source source_here(void)
{
	struct backed m;
	struct vext_digest d;

	backed_init(&m, NULL, PAGE);
	assert_int_equal(digest(m.region, m.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	backed_fini(&m);
	assert_true(d.source == VEXT_DIGEST_FROM_MEDIUM || d.source == VEXT_DIGEST_FROM_CACHE);
	return (enum vext_digest_source)d.source;
}

/* This test is the first one, so that its pipe exists before the reading thread starts. */
static void what_the_application_closes_is_closed(void **state)
{
	struct backed m;
	struct vext_digest d;
	int fds[2];
	char c;

	if (!here_is_persistent())
		skip();
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	backed_init(&m, NULL, PAGE);
	assert_int_equal(threads_named("rpma-read"), 0);
	assert_int_equal(digest(m.region, m.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	assert_int_equal(threads_named("rpma-read"), 1);
	assert_int_equal(read(fds[0], &c, 1), -1);
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 0);
	close(fds[0]);
	backed_fini(&m);
}

static bool is_locked_for_others(const char *name)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(name, O_RDWR | O_CLOEXEC);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 ? 2 : lock.l_type != F_UNLCK);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

static void a_lock_of_the_application_survives(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct vext_digest d;
	struct backed m;

	backed_init(&m, "locked", 3 * MIB);
	assert_int_equal(fcntl(m.fd, F_SETLK, &lock), 0);
	assert_true(is_locked_for_others("locked"));
	assert_int_equal(digest(m.region, m.p, m.size, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_true(is_locked_for_others("locked"));
	persist_region_put(m.region);
	assert_true(is_locked_for_others("locked"));
	/* Closing any other descriptor of the file releases the lock. So the checks above would
	 * have noticed if the library had closed one. */
	close(open("locked", O_RDONLY | O_CLOEXEC));
	assert_false(is_locked_for_others("locked"));
	m.region = NULL;
	backed_fini(&m);
	unlink("locked");
}

static void any_range_of_a_file_has_its_digest(void **state)
{
	static const struct {
		size_t at, len;
	} ranges[] = {
		{0, 1},
		{5, 1},
		{PAGE - 1, 2},
		{0, PAGE},
		{100, 3 * PAGE},
		{0, MIB},
		{1, MIB},
		{PAGE + 3, 2 * MIB + 11},
		{0, 3 * MIB + 100},
		{3 * MIB + 99, 1},
	};
	struct vext_digest d;
	struct backed m;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, 3 * MIB + 100);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		for (uint32_t alg = VEXT_DIGEST_CRC32C; alg <= VEXT_DIGEST_BLAKE2B; alg++) {
			unsigned char *p = m.p + ranges[i].at;

			p[0]++;
			assert_int_equal(digest(m.region, p, ranges[i].len, alg, &d), 0);
			assert_digest(&d, alg, source_here(), p, ranges[i].len);
			assert_int_equal(d.durability, VEXT_DURABILITY_FILE);
		}
	assert_int_equal(dirty_kib(m.p), 0);
	backed_fini(&m);
}

static void the_length_picks_the_algorithm(void **state)
{
	struct vext_digest d;
	struct backed m;

	backed_init(&m, NULL, 2 * PAGE);
	assert_int_equal(digest(m.region, m.p, VEXT_DIGEST_SMALL, VEXT_DIGEST_AUTO, &d), 0);
	assert_int_equal(d.alg, VEXT_DIGEST_CRC32C);
	assert_int_equal(digest(m.region, m.p, VEXT_DIGEST_SMALL + 1, VEXT_DIGEST_AUTO, &d), 0);
	assert_int_equal(d.alg, VEXT_DIGEST_BLAKE2B);
	assert_int_equal(digest(m.region, m.p, 1, VEXT_DIGEST_BLAKE2B + 1, &d), -EINVAL);
	assert_int_equal(digest(m.region, m.p, 0, VEXT_DIGEST_AUTO, &d), 0);
	assert_int_equal(d.len, 0);
	assert_int_equal(d.source, VEXT_DIGEST_FROM_MEMORY);
	backed_fini(&m);
}

static void a_digest_past_the_end_of_the_file_fails(void **state)
{
	struct vext_digest d;
	struct backed m;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, 2 * PAGE);
	assert_int_equal(ftruncate(m.fd, 100), 0);
	assert_int_equal(digest(m.region, m.p, 100, VEXT_DIGEST_CRC32C, &d), 0);
	assert_int_equal(digest(m.region, m.p, 101, VEXT_DIGEST_CRC32C, &d), -EFAULT);
	assert_int_equal(digest(m.region, m.p + PAGE, 1, VEXT_DIGEST_CRC32C, &d), -EFAULT);
	backed_fini(&m);
}

static void volatile_memory_has_a_digest_unless_strict(void **state)
{
	unsigned char *p = map_anonymous(4 * MIB);
	struct persist_region *region = region_of(p, 4 * MIB);
	struct vext_digest d;
	struct persist_job job = {.region = region,
				  .addr = p,
				  .len = 8,
				  .strict = true,
				  .want = PERSIST_DIGEST,
				  .digest = &d};
	int status;

	memset(p, 0x5a, 4 * MIB);
	assert_int_equal(digest(region, p + 1, 5000, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_MEMORY, p + 1, 5000);
	assert_int_equal(d.durability, VEXT_DURABILITY_VOLATILE);
	assert_int_equal(digest(region, p + 1, 4 * MIB - 1, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEMORY, p + 1, 4 * MIB - 1);
	assert_true(persist_submit(&job, &status));
	assert_int_equal(status, -ENOTSUP);
	munmap(p + 2 * MIB, PAGE);
	assert_int_equal(digest(region, p, 4 * MIB, VEXT_DIGEST_CRC32C, &d), -EFAULT);
	persist_region_put(region);
	munmap(p, 4 * MIB);
}

static void dax_memory_is_read_by_loads(void **state)
{
	static const size_t lengths[] = {1, 16 << 10, 100 << 10, 2 * MIB + 5};
	unsigned char *p = map_anonymous(4 * MIB);
	struct vext_digest d;
	struct fake_dax dax;

	fake_dax_init(&dax, p, 4 * MIB);
	memset(p, 3, 4 * MIB);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(digest(&dax.region, p + 7, lengths[i], VEXT_DIGEST_BLAKE2B, &d),
				 0);
		assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_DAX, p + 7, lengths[i]);
		assert_int_equal(d.durability, VEXT_DURABILITY_DAX);
	}
	munmap(p, 4 * MIB);
}

static void the_weakest_source_and_class_are_reported(void **state)
{
	unsigned char *p = map_anonymous(6 * PAGE);
	struct persist_region *region;
	struct vext_digest d;
	int fd = file_create(NULL, 2 * PAGE);

	assert_ptr_not_equal(
		mmap(p + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		MAP_FAILED);
	region = region_of(p, 6 * PAGE);
	for (size_t i = 0; i < 6 * PAGE; i++)
		p[i] = (unsigned char)(i / 100);
	assert_int_equal(digest(region, p + 1, 6 * PAGE - 2, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEMORY, p + 1, 6 * PAGE - 2);
	assert_int_equal(d.durability, VEXT_DURABILITY_VOLATILE);
	if (here_is_persistent()) {
		assert_int_equal(digest(region, p + 2 * PAGE, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
		assert_digest(&d, VEXT_DIGEST_CRC32C, source_here(), p + 2 * PAGE, PAGE);
		assert_int_equal(d.durability, VEXT_DURABILITY_FILE);
	}
	persist_region_put(region);
	munmap(p, 6 * PAGE);
	close(fd);
}

static void be_unprivileged(bool nobody)
{
	if (geteuid() == 0 || !nobody)
		assert_int_equal(seteuid(nobody ? 65534 : getuid()), 0);
}

static void a_file_that_may_not_be_read_is_read_through_its_mapping(void **state)
{
	struct vext_digest d;
	struct backed m;
	int status;

	if (!here_is_persistent())
		skip();
	backed_init(&m, "secret", 2 * MIB);
	assert_int_equal(fchmod(m.fd, 0), 0);
	be_unprivileged(true);
	status = digest(m.region, m.p + 1, MIB + PAGE, VEXT_DIGEST_CRC32C, &d);
	be_unprivileged(false);
	assert_int_equal(status, 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, m.p + 1, MIB + PAGE);
	backed_fini(&m);
	unlink("secret");
}

static void an_unreachable_file_is_read_through_its_mapping(void **state)
{
	struct vext_digest d;
	struct backed m;
	int status;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, 2 * PAGE);
	persist_region_put(m.region);
	close(m.fd);
	be_unprivileged(true);
	m.region = region_of(m.p, m.size);
	status = digest(m.region, m.p, m.size, VEXT_DIGEST_CRC32C, &d);
	be_unprivileged(false);
	assert_int_equal(status, 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, m.p, m.size);
	persist_region_put(m.region);
	munmap(m.p, m.size);
}

/* Old kernels and some file systems accept O_DIRECT, but do not report which alignment it needs. */
static void an_unreported_direct_read_counts_only_where_it_is_known(void **state)
{
	struct vext_digest d;
	struct backed m;
	struct file *file;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, PAGE);
	file = m.region->ranges[0].file;
	if (!file->medium.direct) /* the file system is neither ext4 nor xfs */
		skip();
	atomic_store(&statx_is_old, true);
	assert_int_equal(digest(m.region, m.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_MEDIUM, m.p, PAGE);
	file->medium.direct = false;
	assert_int_equal(digest(m.region, m.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, m.p, PAGE);
	atomic_store(&statx_is_old, false);
	backed_fini(&m);
}

static void the_bytes_of_another_file_are_never_summed(void **state)
{
	struct vext_digest d;
	struct backed m;
	int others = file_create(NULL, PAGE), ours;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, PAGE);
	ours = m.region->ranges[0].file->medium.fd;
	assert_int_equal(dup2(others, ours), ours);
	assert_int_equal(digest(m.region, m.p, PAGE, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, m.p, PAGE);
	backed_fini(&m);
	close(others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_application_closes_is_closed),
		cmocka_unit_test(a_lock_of_the_application_survives),
		cmocka_unit_test(any_range_of_a_file_has_its_digest),
		cmocka_unit_test(the_length_picks_the_algorithm),
		cmocka_unit_test(a_digest_past_the_end_of_the_file_fails),
		cmocka_unit_test(volatile_memory_has_a_digest_unless_strict),
		cmocka_unit_test(dax_memory_is_read_by_loads),
		cmocka_unit_test(the_weakest_source_and_class_are_reported),
		cmocka_unit_test(a_file_that_may_not_be_read_is_read_through_its_mapping),
		cmocka_unit_test(an_unreachable_file_is_read_through_its_mapping),
		cmocka_unit_test(an_unreported_direct_read_counts_only_where_it_is_known),
		cmocka_unit_test(the_bytes_of_another_file_are_never_summed),
	};

	return cmocka_run_group_tests_name("persist-digest", tests, NULL, NULL);
}
