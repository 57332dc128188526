/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_log_default.c -- the default log function with arguments that the library never passes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"
#include "rpma/log_default.h"

static char line[2048];

/* Log one message, and capture its output on stderr. */
static void log_at(int level, const char *file, const char *func)
{
	FILE *out = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	assert_non_null(out);
	fflush(stderr);
	dup2(fileno(out), STDERR_FILENO);
	rpma_log_default_function((enum rpma_log_level)level, file, 7, func, "%s\n", "words");
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(out);
	len = fread(line, 1, sizeof(line) - 1, out);
	line[len] = '\0';
	fclose(out);
}

static int setup(void **state)
{
	return rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
}

static void a_level_that_is_none_is_not_logged(void **state)
{
	log_at(RPMA_LOG_DISABLED, "x/y.c", "f");
	assert_string_equal(line, "");
	log_at(RPMA_LOG_LEVEL_DEBUG + 1, "x/y.c", "f");
	assert_string_equal(line, "");
	log_at(RPMA_LOG_LEVEL_FATAL, "x/y.c", "f");
	assert_non_null(strstr(line, "] *FATAL* y.c:   7: f: words\n"));
	log_at(RPMA_LOG_LEVEL_DEBUG, "y.c", "f");
	assert_non_null(strstr(line, "] *DEBUG* y.c:   7: f: words\n"));
}

static void an_origin_is_whole_or_left_out(void **state)
{
	log_at(RPMA_LOG_LEVEL_INFO, NULL, "f");
	assert_non_null(strstr(line, "] *INFO*  words\n"));
	log_at(RPMA_LOG_LEVEL_INFO, "y.c", NULL);
	assert_non_null(strstr(line, "] *INFO*  words\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_level_that_is_none_is_not_logged),
		cmocka_unit_test(an_origin_is_whole_or_left_out),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
