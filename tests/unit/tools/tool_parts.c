/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the tools that need no process: sizes and percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli.h"
#include "latency.h"
#include "progress.h"

static void sizes_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {{"0", 0},         {"1", 1},         {"4096B", 4096},    {"64k", 65536},
		    {"64KiB", 65536}, {"1Mb", 1 << 20}, {"2G", 2ull << 30}, {"1T", 1ull << 40}};
	static const char *const bad[] = {"",      "k",    "-1",       "1x",
					  "1KiBx", "1.5G", "8388608T", "99999999999999999999"};
	uint64_t got;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(number_parse_size(good[i].text, &got));
		assert_int_equal(got, good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(number_parse_size(bad[i], &got));
}

/* Assert that two values agree within the precision of the histogram. */
static void assert_near(double got, double want)
{
	assert_true(got >= want * 0.996 && got <= want * 1.004);
}

static void percentiles_are_nearest_ranks(void **state)
{
	static struct latency samples;

	latency_reset(&samples);
	assert_true(latency_permille_us(&samples, 500) == 0);
	for (uint64_t us = 2000; us > 0; us--)
		latency_add(&samples, us * 1000);
	assert_int_equal(samples.count, 2000);
	assert_true(latency_permille_us(&samples, 0) == 1);
	assert_near(latency_permille_us(&samples, 500), 1000);
	assert_near(latency_permille_us(&samples, 990), 1980);
	assert_near(latency_permille_us(&samples, 999), 1998);
	assert_true(latency_permille_us(&samples, 1000) == 2000);
	latency_reset(&samples);
	latency_add(&samples, 7);
	assert_true(latency_permille_us(&samples, 500) == 0.007);
	assert_true(latency_permille_us(&samples, 1000) == 0.007);
}

/* Latencies from zero to centuries: three equal ones, a smaller one and a larger one. */
static void latencies_of_any_length_are_kept(void **state)
{
	static struct latency samples;

	for (uint64_t ns = 3; ns < UINT64_MAX / 20; ns = ns * 9 / 7 + 1) {
		latency_reset(&samples);
		latency_add(&samples, 0);
		for (int i = 0; i < 3; i++)
			latency_add(&samples, ns);
		latency_add(&samples, UINT64_MAX);
		assert_near(latency_permille_us(&samples, 500), (double)ns / 1e3);
	}
}

static void the_bar_is_shorter_than_any_terminal_is_wide(void **state)
{
	static const uint64_t totals[] = {0, 1, 5 << 20, 12ull << 30, UINT64_MAX};
	static const double times[] = {0, 0.5, 61, 4000, 1e9};
	struct progress p = {.verb = "verify"};
	char line[256];

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		for (int part = 0; part <= 3; part++)
			for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++)
				for (unsigned columns = 0; columns < 300; columns++) {
					p.total = totals[i];
					p.done = totals[i] / 3 * (uint64_t)part;
					progress_line(&p, times[t], columns, line, sizeof(line));
					assert_true(strlen(line) < (columns ? columns : 1));
				}
}

static void the_bar_tells_part_rate_and_remaining_time(void **state)
{
	struct progress p = {.verb = "put", .total = 400 << 20, .done = 100 << 20};
	char line[256];

	progress_line(&p, 10, 80, line, sizeof(line));
	assert_string_equal(line, "put [#######                       ]  25% 10.0 MiB/s ETA 0:30");
	progress_line(&p, 10, 40, line, sizeof(line));
	assert_string_equal(line, "put [##      ]  25% 10.0 MiB/s ETA 0:30");
	progress_line(&p, 10, 20, line, sizeof(line));
	assert_string_equal(line, "put  25% ETA 0:30");
	p.done = 0;
	progress_line(&p, 10, 80, line, sizeof(line));
	assert_non_null(strstr(line, "  0% 0.0 MiB/s ETA --:--"));
	p = (struct progress){.verb = "put", .done = 100 << 20};
	progress_line(&p, 10, 80, line, sizeof(line));
	assert_string_equal(line, "put 100.0 MiB 10.0 MiB/s");
}

static void the_bar_of_a_time_tells_no_rate(void **state)
{
	struct progress p = {.verb = "read", .total = 4000, .done = 1000, .is_time = true};
	char line[256];

	progress_line(&p, 1, 80, line, sizeof(line));
	assert_string_equal(line, "read [#######                       ]  25% ETA 0:03");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(percentiles_are_nearest_ranks),
		cmocka_unit_test(latencies_of_any_length_are_kept),
		cmocka_unit_test(the_bar_is_shorter_than_any_terminal_is_wide),
		cmocka_unit_test(the_bar_tells_part_rate_and_remaining_time),
		cmocka_unit_test(the_bar_of_a_time_tells_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
