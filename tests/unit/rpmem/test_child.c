/* SPDX-License-Identifier: BSD-3-Clause */
/* ssh as a child process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/poll.h"
#include "rpmem/child.h"

static struct child c;

static void run(const char *script)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};

	assert_int_equal(child_start(&c, argv), 0);
}

static void its_streams_are_connected(void **state)
{
	char buf[16];

	run("read x; echo got $x");
	assert_int_equal(write(c.in, "you\n", 4), 4);
	assert_int_equal(child_wait_readable(&c, CLOCK_NEVER), 0);
	assert_int_equal(read(c.out, buf, sizeof(buf)), 8);
	assert_memory_equal(buf, "got you\n", 8);
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, 0);
	child_end(&c, 0);
}

static void its_status_is_kept(void **state)
{
	run("exit 7");
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, 7);
	child_end(&c, 0);
	run("kill -9 $$");
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, 128 + 9);
	child_end(&c, 0);
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	char *argv[] = {(char *)"/no/such/program", NULL};

	assert_int_equal(child_start(&c, argv), ENOENT);
}

/* The child writes more than any buffer of the kernel holds, so it hangs if its output is not
 * read. */
static void what_it_says_is_taken_while_it_is_waited_for(void **state)
{
	char words[256];

	run("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 3");
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, 3);
	assert_int_equal(c.said_len, CHILD_SAID);
	assert_memory_equal(c.said + CHILD_SAID - 4, "end\n", 4);
	assert_true(strlen(child_words(&c, words, sizeof(words))) < sizeof(words));
	child_end(&c, 0);
}

static void its_words_are_one_line(void **state)
{
	char words[256];

	run("printf 'Permission\\033 denied\\r\\nbye\\n' >&2");
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_string_equal(child_words(&c, words, sizeof(words)), "Permission? denied; bye");
	child_end(&c, 0);
}

static void one_that_does_not_end_is_killed(void **state)
{
	run("trap '' TERM HUP; while :; do sleep 1000; done");
	assert_int_equal(child_wait(&c, poll_deadline(10)), ETIMEDOUT);
	child_end(&c, 10);
	assert_true(c.ended);
	assert_int_equal(c.status, 128 + 9);
}

static void one_that_the_application_waited_for_has_no_status(void **state)
{
	run("exit 7");
	assert_int_equal(waitpid(-1, NULL, 0), c.pid);
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, -1);
	child_end(&c, 0);
}

static void one_of_an_application_that_ignores_its_children_ends(void **state)
{
	signal(SIGCHLD, SIG_IGN);
	run("exit 7");
	assert_int_equal(child_wait(&c, CLOCK_NEVER), 0);
	assert_int_equal(c.status, -1);
	child_end(&c, 0);
	signal(SIGCHLD, SIG_DFL);
}

/* A daemon may have closed the descriptors 0 to 2, so the sockets may get these numbers. */
static void closed_standard_streams_are_no_trouble(void **state)
{
	int saved[3];
	char buf[16];
	ssize_t n;

	for (int i = 0; i < 3; i++) {
		saved[i] = dup(i);
		close(i);
	}
	run("read x; echo $x; exit 4");
	n = write(c.in, "y\n", 2);
	if (n == 2 && !child_wait_readable(&c, CLOCK_NEVER))
		n = read(c.out, buf, sizeof(buf));
	child_wait(&c, CLOCK_NEVER);
	child_end(&c, 0);
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	assert_int_equal(n, 2);
	assert_memory_equal(buf, "y\n", 2);
	assert_int_equal(c.status, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_streams_are_connected),
		cmocka_unit_test(its_status_is_kept),
		cmocka_unit_test(a_program_that_is_not_there_is_an_error),
		cmocka_unit_test(what_it_says_is_taken_while_it_is_waited_for),
		cmocka_unit_test(its_words_are_one_line),
		cmocka_unit_test(one_that_does_not_end_is_killed),
		cmocka_unit_test(one_that_the_application_waited_for_has_no_status),
		cmocka_unit_test(one_of_an_application_that_ignores_its_children_ends),
		cmocka_unit_test(closed_standard_streams_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
