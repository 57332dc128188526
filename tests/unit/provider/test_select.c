/* SPDX-License-Identifier: BSD-3-Clause */
/* test_select.c -- which provider serves an address, and the explanation of that choice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lib/unit.h"
#include "provider/provider.h"
#include "softrnic/softrnic.h"

static const char *const ADDR = "127.0.0.1";

static struct {
	int lines;
	enum log_level level;
	char text[1024];
} said;

static void listen_to(enum log_level level, const char *file, int line, const char *func,
		      const char *text)
{
	said.lines++;
	said.level = level;
	snprintf(said.text, sizeof(said.text), "%s", text);
}

static int setup(void **state)
{
	memset(&said, 0, sizeof(said));
	log_set(listen_to, LOG_LVL_DEBUG);
	unsetenv("RPMA_PROVIDER");
	unsetenv("RPMA_FAULT_INNER");
	return 0;
}

/* Skip the test if the machine has an RDMA device at the loopback address. */
static void need_no_device(void)
{
	char why[256];

	if (provider_verbs.serves(ADDR, PROVIDER_PASSIVE, why, sizeof(why)))
		skip();
}

static void expect_said(enum log_level level, const char *part)
{
	assert_int_equal(said.lines, 1);
	assert_int_equal(said.level, level);
	if (!strstr(said.text, part))
		fail_msg("\"%s\" is not in: %s", part, said.text);
}

static void without_a_device_auto_takes_the_software_and_says_why(void **state)
{
	static const char *const settings[] = {NULL, "", "auto"};

	need_no_device();
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		setup(state);
		if (settings[i])
			setenv("RPMA_PROVIDER", settings[i], 1);
		assert_ptr_equal(provider_for_addr(ADDR, PROVIDER_PASSIVE), &provider_softrnic);
		expect_said(LOG_LVL_NOTICE, "softrnic");
		expect_said(LOG_LVL_NOTICE, ADDR);
		expect_said(LOG_LVL_NOTICE, "no RDMA device");
	}
}

static void verbs_without_a_device_names_address_device_and_variable(void **state)
{
	need_no_device();
	setenv("RPMA_PROVIDER", "verbs", 1);
	for (int role = PROVIDER_PASSIVE; role <= PROVIDER_ACTIVE; role++) {
		said.lines = 0;
		assert_null(provider_for_addr(ADDR, (enum provider_role)role));
		expect_said(LOG_LVL_ERROR, ADDR);
		expect_said(LOG_LVL_ERROR, "no RDMA device");
		expect_said(LOG_LVL_ERROR, "RPMA_PROVIDER");
	}
}

static void the_software_is_taken_without_a_word_when_asked_for(void **state)
{
	setenv("RPMA_PROVIDER", "softrnic", 1);
	assert_ptr_equal(provider_for_addr(ADDR, PROVIDER_ACTIVE), &provider_softrnic);
	assert_int_equal(said.lines, 0);
}

static void an_unknown_name_is_refused_with_the_known_ones(void **state)
{
	setenv("RPMA_PROVIDER", "hardware", 1);
	assert_null(provider_for_addr(ADDR, PROVIDER_PASSIVE));
	expect_said(LOG_LVL_ERROR, "RPMA_PROVIDER=hardware");
	expect_said(LOG_LVL_ERROR, "softrnic");
}

static void faults_go_around_the_provider_that_would_serve(void **state)
{
	setenv("RPMA_PROVIDER", "fault", 1);
	setenv("RPMA_FAULT_INNER", "softrnic", 1);
	assert_string_equal(provider_for_addr(ADDR, PROVIDER_PASSIVE)->name, "fault");
	setenv("RPMA_FAULT_INNER", "nothing", 1);
	assert_null(provider_for_addr(ADDR, PROVIDER_PASSIVE));
	expect_said(LOG_LVL_ERROR, "RPMA_FAULT_INNER=nothing");
}

static void a_provider_is_found_by_its_name_whatever_the_environment_says(void **state)
{
	setenv("RPMA_PROVIDER", "softrnic", 1);
	assert_ptr_equal(provider_named("verbs"), &provider_verbs);
	assert_ptr_equal(provider_named("softrnic"), &provider_softrnic);
	assert_null(provider_named("auto"));
	assert_null(provider_named(""));
	assert_non_null(strstr(provider_names(), "verbs"));
	assert_non_null(strstr(provider_names(), "softrnic"));
	setenv("RPMA_PROVIDER", "fault", 1);
	assert_string_equal(provider_named("softrnic")->name, "fault");
}

static struct provider_row row_of(const char *provider, const char *addr, enum provider_role role)
{
	struct provider_row found = {0};
	struct provider_rows rows;

	assert_int_equal(provider_rows_init(&rows, addr, role), 0);
	for (size_t i = 0; i < rows.count; i++)
		if (!strcmp(rows.row[i].provider, provider))
			found = rows.row[i];
	provider_rows_fini(&rows);
	assert_non_null(found.provider);
	return found;
}

static void rows_say_why_a_device_would_do_or_not(void **state)
{
	struct provider_row row = row_of("softrnic", NULL, PROVIDER_PASSIVE);

	assert_true(row.usable);
	assert_string_equal(row.why, softrnic_why());
	assert_string_equal(row.device, softrnic_context()->device->name);
	/* an address that no host has (RFC 5737) */
	row = row_of("softrnic", "192.0.2.1", PROVIDER_PASSIVE);
	assert_false(row.usable);
	assert_non_null(strstr(row.why, "rdma_bind_addr"));
	need_no_device();
	row = row_of("verbs", ADDR, PROVIDER_PASSIVE);
	assert_false(row.usable);
	assert_true(strlen(row.why) > 0);
}

static void a_context_that_is_not_ours_is_rdma_cores(void **state)
{
	struct ibv_context foreign = {0};

	assert_ptr_equal(provider_of_context(&foreign), &provider_verbs);
	assert_true(provider_verbs.owns_context(&foreign));
	assert_false(provider_softrnic.owns_context(&foreign));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_a_device_auto_takes_the_software_and_says_why,
				       setup),
		cmocka_unit_test_setup(verbs_without_a_device_names_address_device_and_variable,
				       setup),
		cmocka_unit_test_setup(the_software_is_taken_without_a_word_when_asked_for, setup),
		cmocka_unit_test_setup(an_unknown_name_is_refused_with_the_known_ones, setup),
		cmocka_unit_test_setup(faults_go_around_the_provider_that_would_serve, setup),
		cmocka_unit_test_setup(
			a_provider_is_found_by_its_name_whatever_the_environment_says, setup),
		cmocka_unit_test_setup(rows_say_why_a_device_would_do_or_not, setup),
		cmocka_unit_test_setup(a_context_that_is_not_ours_is_rdma_cores, setup),
	};

	return cmocka_run_group_tests_name("choice of a provider", tests, NULL, NULL);
}
