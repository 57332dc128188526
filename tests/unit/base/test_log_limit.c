/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define PERIOD  (LOG_LIMIT_PERIOD_MS * NSEC_PER_MS)
#define START   (7 * PERIOD + 1) /* a time shortly after the beginning of a period */
#define THREADS 4
#define EACH    1000

static unsigned admitted(struct log_limit *limit, uint64_t now, unsigned times)
{
	unsigned n = 0;
	uint32_t left_out;

	for (unsigned i = 0; i < times; i++)
		n += log_limit_admits(limit, now, &left_out);
	return n;
}

static void a_few_lines_are_written_in_a_period(void **state)
{
	struct log_limit limit = {0};

	assert_int_equal(admitted(&limit, START, 3), 3);
	assert_int_equal(admitted(&limit, START, 1000), LOG_LIMIT_LINES - 3);
	assert_int_equal(admitted(&limit, START + PERIOD / 2, 1000), 0);
}

static void the_next_line_counts_what_was_left_out(void **state)
{
	struct log_limit limit = {0};
	uint32_t left_out;

	admitted(&limit, START, LOG_LIMIT_LINES + 100);
	assert_true(log_limit_admits(&limit, START + 3 * PERIOD, &left_out));
	assert_int_equal(left_out, 100);
	assert_true(log_limit_admits(&limit, START + 3 * PERIOD, &left_out));
	assert_int_equal(left_out, 0);
}

static void nothing_is_counted_where_nothing_was_left_out(void **state)
{
	struct log_limit limit = {0};
	uint32_t left_out;

	assert_true(log_limit_admits(&limit, START, &left_out));
	assert_int_equal(left_out, 0);
	admitted(&limit, START, LOG_LIMIT_LINES - 1);
	assert_true(log_limit_admits(&limit, START + PERIOD, &left_out));
	assert_int_equal(left_out, 0);
}

static void a_clock_that_was_read_a_little_earlier_begins_no_period(void **state)
{
	struct log_limit limit = {0};

	assert_int_equal(admitted(&limit, START, LOG_LIMIT_LINES), LOG_LIMIT_LINES);
	assert_int_equal(admitted(&limit, START - 2, 10), 0);
	assert_int_equal(admitted(&limit, START, 10), 0);
}

static void the_first_moments_after_booting_are_a_period_too(void **state)
{
	struct log_limit limit = {0};

	assert_int_equal(admitted(&limit, 0, 1000), LOG_LIMIT_LINES);
}

struct crowd {
	struct log_limit limit;
	atomic_uint admitted;
};

static void *ask_often(void *arg)
{
	struct crowd *c = arg;

	atomic_fetch_add(&c->admitted, admitted(&c->limit, START, EACH));
	return NULL;
}

static void threads_share_a_limit(void **state)
{
	struct crowd c = {0};
	pthread_t thread[THREADS];
	uint32_t left_out;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_often, &c), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&c.admitted), LOG_LIMIT_LINES);
	assert_true(log_limit_admits(&c.limit, START + PERIOD, &left_out));
	assert_int_equal(left_out, THREADS * EACH - LOG_LIMIT_LINES);
}

/* --- in lines of the log --------------------------------------------------------------------- */

static unsigned lines;
static char last_text[256];

static void remember(enum log_level level, const char *file, int line, const char *func,
		     const char *text)
{
	lines++;
	snprintf(last_text, sizeof(last_text), "%s", text);
}

static void one_place(int i)
{
	errno = ENOENT;
	LOG_WARNING_LIMITED("number %d: %m", i);
}

static void each_place_has_its_own_limit(void **state)
{
	lines = 0;
	log_set(remember, LOG_LVL_WARNING);
	for (int i = 0; i < 100; i++)
		one_place(i);
	/* A period may have ended during the loop, so twice the limit is permitted. */
	assert_in_range(lines, LOG_LIMIT_LINES, 2 * LOG_LIMIT_LINES);
	assert_non_null(strstr(last_text, ": No such file or directory"));
	LOG_WARNING_LIMITED("another place");
	assert_string_equal(last_text, "another place");
	log_set(NULL, LOG_LVL_OFF);
}

static void a_line_says_how_many_were_left_out(void **state)
{
	struct log_limit limit = {.state = 1ull << 32 | (LOG_LIMIT_LINES + 41)};

	lines = 0;
	log_set(remember, LOG_LVL_WARNING);
	log_emit_limited(&limit, LOG_LVL_WARNING, __FILE__, __LINE__, __func__, "it is %d", 7);
	assert_string_equal(last_text, "it is 7 (and 41 more like this before)");
	log_set(NULL, LOG_LVL_OFF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_few_lines_are_written_in_a_period),
		cmocka_unit_test(the_next_line_counts_what_was_left_out),
		cmocka_unit_test(nothing_is_counted_where_nothing_was_left_out),
		cmocka_unit_test(a_clock_that_was_read_a_little_earlier_begins_no_period),
		cmocka_unit_test(the_first_moments_after_booting_are_a_period_too),
		cmocka_unit_test(threads_share_a_limit),
		cmocka_unit_test(each_place_has_its_own_limit),
		cmocka_unit_test(a_line_says_how_many_were_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
