/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the rpma program that need no process: sizes, percentiles. */
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
		assert_true(cli_parse_size(good[i].text, &got));
		assert_int_equal(got, good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cli_parse_size(bad[i], &got));
}

static void percentiles_are_nearest_ranks(void **state)
{
	struct latency samples;
	struct latency_summary sum;

	assert_int_equal(latency_init(&samples, 200), 0);
	for (uint64_t us = 200; us > 0; us--)
		latency_add(&samples, us * 1000);
	latency_add(&samples, 1); /* no room left: dropped */
	sum = latency_summarise(&samples);
	assert_int_equal(sum.count, 200);
	assert_int_equal((int)sum.min_us, 1);
	assert_int_equal((int)sum.median_us, 100);
	assert_int_equal((int)sum.p99_us, 198);
	assert_int_equal((int)sum.max_us, 200);
	latency_fini(&samples);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(percentiles_are_nearest_ranks),
		cmocka_unit_test(the_bar_is_shorter_than_any_terminal_is_wide),
		cmocka_unit_test(the_bar_tells_part_rate_and_remaining_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
