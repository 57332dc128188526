/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata file is truncated while the daemon has it mapped. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"
#include "mirrord/copies.h"

#define METAFAULT_SIZE 65536

static struct conf conf = {.set_count = 2};
static struct set sets[2];
static struct daemon daemon_of_test = {.conf = &conf, .sets = sets};

static uint8_t *map_cut(struct mapfile *file)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	file->fd = fileno(f);
	file->size = METAFAULT_SIZE;
	assert_int_equal(ftruncate(file->fd, METAFAULT_SIZE), 0);
	file->addr = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	assert_ptr_not_equal(file->addr, MAP_FAILED);
	memset(file->addr, 7, file->size);
	assert_int_equal(ftruncate(file->fd, 4096), 0);
	return file->addr;
}

static void a_page_that_is_gone_becomes_zeros_and_marks_the_set(void **state)
{
	uint8_t *at = map_cut(&sets[1].meta_file);

	assert_int_equal(metafault_open(&daemon_of_test), 0);
	assert_int_equal(at[100], 7);
	assert_false(sets[1].has_meta_fault);
	assert_int_equal(*(volatile uint8_t *)(at + 8192), 0);
	assert_true(sets[1].has_meta_fault);
	*(volatile uint8_t *)(at + METAFAULT_SIZE - 1) = 1;
	assert_false(sets[0].has_meta_fault);
}

/* A fault outside the metadata is an error of the program, and ends it. */
static void a_page_of_no_set_ends_the_process(void **state)
{
	struct mapfile other = {.fd = -1};
	const volatile uint8_t *at = map_cut(&other);
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(20);
		metafault_open(&daemon_of_test);
		_exit(at[8192]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_that_is_gone_becomes_zeros_and_marks_the_set),
		cmocka_unit_test(a_page_of_no_set_ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
