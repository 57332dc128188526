/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of metrics in both formats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/openmetrics.h"

static const struct openmetrics_family behind = {
	"x_copy_behind_bytes", "Bytes that the copy lacks.", "bytes", OPENMETRICS_GAUGE};
static const struct openmetrics_family flushes = {"x_flushes", "Flushes.", NULL,
						  OPENMETRICS_COUNTER};
static const struct openmetrics_family unused = {"x_unused", "Nothing.", NULL, OPENMETRICS_GAUGE};
static const struct openmetrics_family latency = {"x_latency_seconds", "Of a flush.", "seconds",
						  OPENMETRICS_SUMMARY};

static void write_all(struct openmetrics *om, enum openmetrics_form form)
{
	openmetrics_init(om, form);
	openmetrics_family(om, &behind);
	openmetrics_sample(om, (struct openmetrics_label[]){{"set", "s"}, {"member", "b"}, {0}},
			   4096);
	openmetrics_sample(om, (struct openmetrics_label[]){{"set", "s"}, {"member", NULL}, {0}},
			   0);
	openmetrics_family(om, &unused);
	openmetrics_family(om, &flushes);
	openmetrics_sample(om, NULL, 9007199254740991.0);
	openmetrics_family(om, &latency);
	openmetrics_sample(om, (struct openmetrics_label[]){{"quantile", "0.99"}, {0}}, 0.00025);
	assert_int_equal(openmetrics_end(om), 0);
}

static void openmetrics_has_units_and_an_end(void **state)
{
	struct openmetrics om;

	write_all(&om, OPENMETRICS_1_0);
	assert_string_equal(om.text, "# HELP x_copy_behind_bytes Bytes that the copy lacks.\n"
				     "# TYPE x_copy_behind_bytes gauge\n"
				     "# UNIT x_copy_behind_bytes bytes\n"
				     "x_copy_behind_bytes{set=\"s\",member=\"b\"} 4096\n"
				     "x_copy_behind_bytes{set=\"s\"} 0\n"
				     "# HELP x_flushes Flushes.\n"
				     "# TYPE x_flushes counter\n"
				     "x_flushes_total 9007199254740991\n"
				     "# HELP x_latency_seconds Of a flush.\n"
				     "# TYPE x_latency_seconds summary\n"
				     "# UNIT x_latency_seconds seconds\n"
				     "x_latency_seconds{quantile=\"0.99\"} 0.00025\n"
				     "# EOF\n");
	assert_int_equal(om.len, strlen(om.text));
	openmetrics_fini(&om);
}

static void text_names_a_counter_with_its_suffix(void **state)
{
	struct openmetrics om;

	write_all(&om, OPENMETRICS_TEXT_0_0_4);
	assert_non_null(strstr(om.text, "# HELP x_flushes_total Flushes.\n"
					"# TYPE x_flushes_total counter\n"
					"x_flushes_total 9007199254740991\n"));
	assert_null(strstr(om.text, "UNIT"));
	assert_null(strstr(om.text, "EOF"));
	openmetrics_fini(&om);
}

static void labels_are_escaped(void **state)
{
	static const struct {
		const char *value, *text;
	} rows[] = {
		{"a\"b", "a\\\"b"}, {"a\\b", "a\\\\b"},
		{"a\nb", "a\\nb"},  {"a\033[2J", "a?[2J"},
		{"\377x", "?x"},    {"\303\251", "\303\251"},
		{"", ""},           {"\n\n\"", "\\n\\n\\\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct openmetrics_label labels[] = {{"l", rows[i].value}, {0}};
		struct openmetrics om;
		char want[64];

		openmetrics_init(&om, OPENMETRICS_TEXT_0_0_4);
		openmetrics_family(&om, &unused);
		openmetrics_sample(&om, labels, 1);
		assert_int_equal(openmetrics_end(&om), 0);
		snprintf(want, sizeof(want), "\nx_unused{l=\"%s\"} 1\n", rows[i].text);
		assert_non_null(strstr(om.text, want));
		openmetrics_fini(&om);
	}
}

static void values_are_those_of_the_format(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, " 0\n"},          {-3, " -3\n"},          {0.1, " 0.1\n"},
		{1e300, " 1e+300\n"}, {HUGE_VAL, " +Inf\n"},  {-HUGE_VAL, " -Inf\n"},
		{NAN, " NaN\n"},      {1.5e-6, " 1.5e-06\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct openmetrics om;

		openmetrics_init(&om, OPENMETRICS_1_0);
		openmetrics_family(&om, &unused);
		openmetrics_sample(&om, NULL, rows[i].value);
		assert_int_equal(openmetrics_end(&om), 0);
		assert_non_null(strstr(om.text, rows[i].text));
		openmetrics_fini(&om);
	}
}

static void a_long_text_is_whole(void **state)
{
	static char value[10001];
	struct openmetrics_label labels[] = {{"l", value}, {0}};
	struct openmetrics om;

	memset(value, '"', sizeof(value) - 1);
	openmetrics_init(&om, OPENMETRICS_1_0);
	openmetrics_family(&om, &unused);
	openmetrics_sample(&om, labels, 1);
	assert_int_equal(openmetrics_end(&om), 0);
	assert_true(om.len > 20000);
	assert_string_equal(om.text + om.len - 6, "# EOF\n");
	openmetrics_fini(&om);
	openmetrics_fini(&om);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openmetrics_has_units_and_an_end),
		cmocka_unit_test(text_names_a_counter_with_its_suffix),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(values_are_those_of_the_format),
		cmocka_unit_test(a_long_text_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
