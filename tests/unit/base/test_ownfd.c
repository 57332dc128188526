/* SPDX-License-Identifier: BSD-3-Clause */
/* Checking that a descriptor still refers to the library's own file does not make the next
 * write-back of the file slower. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/ownfd.h"
#include "lib/unit.h"

#define ROUNDS 40

static int file_new(void)
{
	char name[] = "ownfd-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	return fd;
}

static void file_write(int fd)
{
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
}

/* Returns true if the file's time of change is exactly that of its last write, not that of an
 * earlier tick of the clock. */
static bool file_has_exact_time(int fd, const struct timespec *before_write)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_mtim.tv_sec > before_write->tv_sec ||
	       (st.st_mtim.tv_sec == before_write->tv_sec &&
		st.st_mtim.tv_nsec >= before_write->tv_nsec);
}

/* A file with an exact time has a changed inode, which the next fdatasync() writes, too. */
static void a_look_gives_the_file_no_exact_time(void **state)
{
	int fd = file_new(), exact = 0;
	struct ownfd own = ownfd_of(fd);
	struct timespec now;

	for (int i = 0; i < ROUNDS; i++) {
		file_write(fd); /* this write follows the fstat() of the previous round */
		usleep(100);
		assert_false(ownfd_is_lost(&own));
		assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
		file_write(fd);
		exact += file_has_exact_time(fd, &now);
	}
	/* a time may be exact by chance, if the clock's tick came in between */
	assert_true(exact < ROUNDS / 2);
	close(fd);
}

static void another_file_at_the_number_is_found(void **state)
{
	int fd = file_new(), other = file_new();
	struct ownfd own = ownfd_of(fd);

	assert_false(ownfd_is_lost(&own));
	assert_int_equal(dup2(other, fd), fd);
	assert_true(ownfd_is_lost(&own));
	close(fd);
	assert_true(ownfd_is_lost(&own));
	close(other);
}

static void another_socket_at_the_number_is_found(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
	ino_t inode = ownfd_inode(fd);

	assert_true(fd >= 0 && other >= 0 && inode);
	assert_true(ownfd_is_socket(fd, inode));
	assert_false(ownfd_is_socket(other, inode));
	close(fd);
	assert_false(ownfd_is_socket(fd, inode));
	close(other);
}

static void none_is_never_lost(void **state)
{
	struct ownfd none = ownfd_of(-1);

	assert_int_equal(none.fd, -1);
	assert_false(ownfd_is_lost(&none));
	assert_int_equal(ownfd_inode(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_gives_the_file_no_exact_time),
		cmocka_unit_test(another_file_at_the_number_is_found),
		cmocka_unit_test(another_socket_at_the_number_is_found),
		cmocka_unit_test(none_is_never_lost),
	};

	return cmocka_run_group_tests_name("ownfd", tests, NULL, NULL);
}
