/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_log.c -- thresholds, a log function of the application, and the layout of the default
 * function's lines, through the public interface only. To make the library log a message, the test
 * passes a descriptor that is too short.
 */
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <librpma.h>

static struct {
	int calls;
	enum rpma_log_level level;
	char text[1024], file[256], func[128];
	int line;
} heard;

static void listen_to(enum rpma_log_level level, const char *file_name, const int line_no,
		      const char *function_name, const char *message_format, ...)
{
	va_list ap;

	heard.calls++;
	heard.level = level;
	heard.line = line_no;
	snprintf(heard.file, sizeof(heard.file), "%s", file_name);
	snprintf(heard.func, sizeof(heard.func), "%s", function_name);
	va_start(ap, message_format);
	vsnprintf(heard.text, sizeof(heard.text), message_format, ap);
	va_end(ap);
}

static void provoke_an_error(void)
{
	struct rpma_mr_remote *mr = NULL;

	assert_int_equal(rpma_mr_remote_from_descriptor("", 1, &mr), RPMA_E_INVAL);
}

static void provoke_an_info(void)
{
	struct rpma_peer_cfg *pcfg = NULL;

	assert_int_equal(rpma_peer_cfg_from_descriptor("\1", 1, &pcfg), 0);
	assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
}

static int reset(void **state)
{
	memset(&heard, 0, sizeof(heard));
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
	return 0;
}

static void the_default_is_to_log_warnings_and_to_keep_stderr_clean(void **state)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_DEBUG;

#ifdef RPMA_LOG_VERBOSE
	skip(); /* a debug build logs more lines */
#endif
	assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), 0);
	assert_int_equal(level, RPMA_LOG_LEVEL_WARNING);
	assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level), 0);
	assert_int_equal(level, RPMA_LOG_DISABLED);
}

static void thresholds_are_kept(void **state)
{
	enum rpma_log_level level;

	for (int l = RPMA_LOG_DISABLED; l <= RPMA_LOG_LEVEL_DEBUG; l++) {
		for (int t = 0; t < RPMA_LOG_THRESHOLD_MAX; t++) {
			level = (enum rpma_log_level)l;
			assert_int_equal(rpma_log_set_threshold((enum rpma_log_threshold)t, level),
					 0);
			assert_int_equal(rpma_log_get_threshold((enum rpma_log_threshold)t, &level),
					 0);
			assert_int_equal(level, l);
		}
	}
}

static void the_callers_function_gets_a_message_with_its_origin(void **state)
{
	assert_int_equal(rpma_log_set_function(listen_to), 0);
	provoke_an_error();
	assert_int_equal(heard.calls, 1);
	assert_int_equal(heard.level, RPMA_LOG_LEVEL_ERROR);
	assert_true(heard.line > 0);
	assert_non_null(strchr(heard.file, '/'));
	assert_string_equal(heard.func, "rpma_mr_remote_from_descriptor");
	assert_int_equal(heard.text[strlen(heard.text) - 1], '\n');
}

static void what_is_above_the_threshold_is_not_heard(void **state)
{
	rpma_log_set_function(listen_to);
	provoke_an_info();
	assert_int_equal(heard.calls, 0);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
	provoke_an_info();
	assert_int_equal(heard.calls, 1);
	assert_int_equal(heard.level, RPMA_LOG_LEVEL_INFO);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	provoke_an_error();
	assert_int_equal(heard.calls, 1);
	/* The auxiliary threshold only concerns the default function. */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
	provoke_an_error();
	assert_int_equal(heard.calls, 1);
}

/* Thread function. */
static void *set_level(void *level)
{
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)(intptr_t)level);
	return NULL;
}

static void of_two_threads_that_set_it_one_wins_completely(void **state)
{
	rpma_log_set_function(listen_to);
	for (int i = 0; i < 300; i++) {
		enum rpma_log_level level;
		pthread_t other;

		assert_int_equal(pthread_create(&other, NULL, set_level,
						(void *)(intptr_t)RPMA_LOG_DISABLED),
				 0);
		set_level((void *)(intptr_t)RPMA_LOG_LEVEL_ERROR);
		pthread_join(other, NULL);
		rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level);
		heard.calls = 0;
		provoke_an_error();
		assert_int_equal(heard.calls, level == RPMA_LOG_LEVEL_ERROR);
	}
}

/* Call provoke(), and write what the library prints on stderr to buf. */
static void capture_stderr(void (*provoke)(void), char *buf, size_t len)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t got;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	provoke();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	got = fread(buf, 1, len - 1, file);
	buf[got] = '\0';
	fclose(file);
}

static void the_default_function_keeps_the_known_layout_on_stderr(void **state)
{
	static const char *const pattern =
		"^[A-Z][a-z]{2} [0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} \\[[0-9]+\\] "
		"\\*ERROR\\* [a-z_]+\\.c: [ 0-9]{2}[0-9]: rpma_mr_remote_from_descriptor: "
		"[^\n]+\n$";
	char line[2048];
	regex_t re;

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);
	capture_stderr(provoke_an_error, line, sizeof(line));
	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&re, line, 0, NULL, 0))
		fail_msg("unexpected layout: %s", line);
	regfree(&re);
}

static void stderr_gets_only_what_passes_both_thresholds(void **state)
{
	char line[2048];

	capture_stderr(provoke_an_error, line, sizeof(line));
	assert_string_equal(line, "");
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
	capture_stderr(provoke_an_info, line, sizeof(line));
	assert_string_equal(line, "");
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
	capture_stderr(provoke_an_info, line, sizeof(line));
	assert_non_null(strstr(line, "] *INFO*  "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_to_log_warnings_and_to_keep_stderr_clean),
		cmocka_unit_test_setup(thresholds_are_kept, reset),
		cmocka_unit_test_setup(the_callers_function_gets_a_message_with_its_origin, reset),
		cmocka_unit_test_setup(what_is_above_the_threshold_is_not_heard, reset),
		cmocka_unit_test_setup(of_two_threads_that_set_it_one_wins_completely, reset),
		cmocka_unit_test_setup(the_default_function_keeps_the_known_layout_on_stderr,
				       reset),
		cmocka_unit_test_setup(stderr_gets_only_what_passes_both_thresholds, reset),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
