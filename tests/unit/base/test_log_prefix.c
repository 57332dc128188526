/* SPDX-License-Identifier: BSD-3-Clause */
/* For the journal each line begins with its level. */
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log_prefix.h"

static int saved_stderr, peer;

/* Make standard error a socket, as systemd does for the journal. */
static int connect_stderr(void **state)
{
	int fds[2];

	saved_stderr = dup(STDERR_FILENO);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -1;
	dup2(fds[0], STDERR_FILENO);
	close(fds[0]);
	peer = fds[1];
	return 0;
}

static int restore_stderr(void **state)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(peer);
	return unsetenv("JOURNAL_STREAM");
}

static void set_stream(const char *format, unsigned long long add_to_inode)
{
	char text[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(text, sizeof(text), format, (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + add_to_inode);
	setenv("JOURNAL_STREAM", text, 1);
}

static void lines_for_the_journal_have_their_level(void **state)
{
	set_stream("%llu:%llu", 0);
	assert_string_equal(log_prefix(LOG_LVL_FATAL), "<2>");
	assert_string_equal(log_prefix(LOG_LVL_ERROR), "<3>");
	assert_string_equal(log_prefix(LOG_LVL_WARNING), "<4>");
	assert_string_equal(log_prefix(LOG_LVL_NOTICE), "<5>");
	assert_string_equal(log_prefix(LOG_LVL_INFO), "<6>");
	assert_string_equal(log_prefix(LOG_LVL_DEBUG), "<7>");
	assert_string_equal(log_prefix(LOG_LVL_OFF), "");
}

/* A process inherits the variable JOURNAL_STREAM, but its standard error may be a terminal or a
 * file. */
static void lines_for_another_descriptor_have_none(void **state)
{
	assert_string_equal(log_prefix(LOG_LVL_ERROR), "");
	set_stream("%llu:%llu", 1);
	assert_string_equal(log_prefix(LOG_LVL_ERROR), "");
	dup2(saved_stderr, STDERR_FILENO);
	set_stream("%llu:%llu", 0);
	dup2(peer, STDERR_FILENO);
	assert_string_equal(log_prefix(LOG_LVL_ERROR), "");
}

static void a_malformed_variable_means_no_journal(void **state)
{
	static const char *const texts[] = {"", ":", "1", "1:", "x:y", "1:2:3"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		setenv("JOURNAL_STREAM", texts[i], 1);
		assert_string_equal(log_prefix(LOG_LVL_ERROR), "");
	}
	set_stream("%llu:%llu ", 0);
	assert_string_equal(log_prefix(LOG_LVL_ERROR), "");
}

static void the_librarys_own_lines_have_it_too(void **state)
{
	char line[256] = "";

	set_stream("%llu:%llu", 0);
	log_to_stderr(LOG_LVL_WARNING);
	LOG_WARNING("the disk is slow");
	log_to_stderr(LOG_LVL_OFF);
	assert_true(read(peer, line, sizeof(line) - 1) > 0);
	assert_memory_equal(line, "<4>warning test_log_prefix.c:", 29);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_for_the_journal_have_their_level,
						connect_stderr, restore_stderr),
		cmocka_unit_test_setup_teardown(lines_for_another_descriptor_have_none,
						connect_stderr, restore_stderr),
		cmocka_unit_test_setup_teardown(a_malformed_variable_means_no_journal,
						connect_stderr, restore_stderr),
		cmocka_unit_test_setup_teardown(the_librarys_own_lines_have_it_too, connect_stderr,
						restore_stderr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
