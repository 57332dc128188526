/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that their owner abandons. The test itself resolves page faults, and so holds a slice that
 * accesses the memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"

#define SIZE (2 * MIB) /* two slices of a digest */

/* Let faults in the memory wait for the test. Returns a userfaultfd, or -1 if the kernel has none
 * or this process lacks the privilege. */
static int catch_faults(unsigned char *p, size_t len)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)p, len},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (uffd < 0)
		return -1;
	assert_int_equal(ioctl(uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &range), 0);
	return uffd;
}

/* Wait until a thread faults. The thread then waits until the descriptor is closed. After that the
 * memory is ordinary again. */
static void wait_for_fault(int uffd)
{
	struct pollfd fd = {.fd = uffd, .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(fd.revents, POLLIN);
}

static void memory_that_is_being_read_must_stay_until_the_job_is_done(void **state)
{
	unsigned char *p = map_anonymous(SIZE);
	struct persist_region *region = region_of(p, SIZE);
	int uffd = catch_faults(p, SIZE);
	struct vext_digest d = {.len = 77};
	struct flush f;

	if (uffd < 0)
		skip();
	digest_start(&f, region, p, SIZE, VEXT_DIGEST_CRC32C, &d);
	wait_for_fault(uffd);
	assert_false(persist_abandon(&f.job));
	assert_int_equal(flush_wait(&f, 50), -ETIMEDOUT);
	close(uffd);
	assert_int_equal(flush_wait(&f, 10000), -ECANCELED);
	assert_int_equal(d.len, 77);
	persist_region_put(region);
	munmap(p, SIZE);
}

static void a_job_that_is_done_touches_nothing(void **state)
{
	struct backed m;
	struct flush f;

	backed_init(&m, NULL, PAGE);
	flush_start(&f, m.region, m.p, PAGE);
	assert_int_equal(flush_wait(&f, 10000), 0);
	assert_true(persist_abandon(&f.job));
	/* New jobs for the memory are possible again. */
	assert_int_equal(flush(m.region, m.p, PAGE), 0);
	backed_fini(&m);
}

/* Anonymous memory has no file, so a job can reach it only through its one mapping. */
static void volatile_memory_needs_no_mapping_to_be_written_back(void **state)
{
	unsigned char *p = map_anonymous(4 * PAGE);
	struct persist_region *region = region_of(p, 4 * PAGE);

	assert_true(persist_region_is_detachable(region, p, 4 * PAGE));
	assert_true(persist_region_is_detachable(region, p + 1, 1));
	assert_false(persist_region_is_detachable(region, p, 4 * PAGE + 1));
	munmap(p, 4 * PAGE);
	assert_int_equal(flush(region, p, 4 * PAGE), 0);
	persist_region_put(region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_is_being_read_must_stay_until_the_job_is_done),
		cmocka_unit_test(a_job_that_is_done_touches_nothing),
		cmocka_unit_test(volatile_memory_needs_no_mapping_to_be_written_back),
	};

	return cmocka_run_group_tests_name("persist-abandon", tests, NULL, NULL);
}
