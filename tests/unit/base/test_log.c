/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static unsigned lines;
static enum log_level last_level;
static char last_text[2048];

static void remember(enum log_level level, const char *file, int line, const char *func,
		     const char *text)
{
	lines++;
	last_level = level;
	snprintf(last_text, sizeof(last_text), "%s", text);
	assert_non_null(strstr(file, "test_log.c"));
	assert_true(line > 0);
	assert_non_null(func);
}

static int reset(void **state)
{
	log_set(NULL, LOG_LVL_OFF);
	log_to_stderr(LOG_LVL_OFF);
	unsetenv("TEST_LOG");
	lines = 0;
	return 0;
}

static void without_a_sink_nothing_is_written(void **state)
{
	LOG_ERROR("nobody %s", "listens");
	log_set(NULL, LOG_LVL_DEBUG);
	LOG_ERROR("nobody %s", "listens");
	assert_int_equal(lines, 0);
	assert_int_equal(log_threshold, LOG_LVL_OFF);
}

static void the_threshold_decides(void **state)
{
	log_set(remember, LOG_LVL_WARNING);
	LOG_NOTICE("not this");
	assert_int_equal(lines, 0);
	LOG_WARNING("this %d", 42);
	assert_int_equal(lines, 1);
	assert_int_equal(last_level, LOG_LVL_WARNING);
	assert_string_equal(last_text, "this 42");
}

/* The level of each output can be changed without a change of the other. */
static void the_sink_and_standard_error_have_levels_of_their_own(void **state)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert_true(saved >= 0 && null >= 0);
	dup2(null, STDERR_FILENO);
	log_set(remember, LOG_LVL_ERROR);
	log_to_stderr(LOG_LVL_INFO);
	assert_int_equal(log_threshold, LOG_LVL_INFO);
	LOG_NOTICE("not for the sink");
	assert_int_equal(lines, 0);
	LOG_ERROR("for both");
	assert_int_equal(lines, 1);
	log_set(NULL, LOG_LVL_DEBUG);
	assert_int_equal(log_threshold, LOG_LVL_INFO);
	log_set(remember, LOG_LVL_DEBUG);
	log_to_stderr(LOG_LVL_OFF);
	assert_int_equal(log_threshold, LOG_LVL_DEBUG);
	LOG_DEBUG("for the sink");
	assert_int_equal(lines, 2);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
}

static int side_effects;

static int count(void)
{
	return ++side_effects;
}

static void a_disabled_level_does_not_evaluate_its_arguments(void **state)
{
	log_set(remember, LOG_LVL_ERROR);
	LOG_DEBUG("%d", count());
	assert_int_equal(side_effects, 0);
	LOG_ERROR("%d", count());
	assert_int_equal(side_effects, 1);
}

static void a_long_line_is_cut(void **state)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	log_set(remember, LOG_LVL_ERROR);
	LOG_ERROR("%s", text);
	assert_true(strlen(last_text) > 500);
	assert_true(strlen(last_text) < sizeof(text));
}

/* Capture the output of fn(text) on stderr. */
static size_t capture_stderr(char *out, size_t size, void (*fn)(const char *text), const char *text)
{
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	fn(text);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	n = read(fds[0], out, size - 1);
	close(fds[0]);
	out[n > 0 ? n : 0] = 0;
	return strlen(out);
}

static void say_both(const char *text)
{
	LOG_INFO("%s", text);
	LOG_DEBUG("below the level");
}

static void the_environment_sends_lines_to_stderr(void **state)
{
	char out[4096], text[3000];

	setenv("TEST_LOG", "Info", 1);
	log_set_from_env("TEST_LOG");
	capture_stderr(out, sizeof(out), say_both, "hello");
	assert_non_null(strstr(out, "info test_log.c:"));
	assert_non_null(strstr(out, "say_both: hello\n"));
	assert_null(strstr(out, "below"));

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_int_equal(out[capture_stderr(out, sizeof(out), say_both, text) - 1], '\n');
}

static void an_unknown_word_in_the_environment_is_complained_about(void **state)
{
	char got[256] = "";

	setenv("TEST_LOG", "", 1);
	log_set_from_env("TEST_LOG");
	log_set_from_env("TEST_LOG_THAT_IS_NOT_SET");
	assert_int_equal(log_threshold, LOG_LVL_OFF);
	setenv("TEST_LOG", "chatty", 1);
	capture_stderr(got, sizeof(got), log_set_from_env, "TEST_LOG");
	assert_int_equal(log_threshold, LOG_LVL_WARNING);
	assert_non_null(strstr(got, "TEST_LOG=chatty: no such level"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_a_sink_nothing_is_written, reset),
		cmocka_unit_test_setup(the_threshold_decides, reset),
		cmocka_unit_test_setup(the_sink_and_standard_error_have_levels_of_their_own, reset),
		cmocka_unit_test_setup(a_disabled_level_does_not_evaluate_its_arguments, reset),
		cmocka_unit_test_setup(a_long_line_is_cut, reset),
		cmocka_unit_test_setup(the_environment_sends_lines_to_stderr, reset),
		cmocka_unit_test_setup(an_unknown_word_in_the_environment_is_complained_about,
				       reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
