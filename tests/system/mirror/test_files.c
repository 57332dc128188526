/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a copy that are replaced, removed or cut off while a daemon or an application has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

static struct hosts hosts;
static struct proc app;

static void begin(unsigned primary)
{
	const struct hosts_opts opts = {.count = 2, .lease_ms = 600000};

	hosts_start(&hosts, &opts);
	app_start(&app, &hosts, primary, NULL);
	app_expect(&app, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, primary, "wait orders --until health=healthy"), 0);
	app_expect(&app, "durable 3", "put 64 1");
}

static void end(void)
{
	apps_end(&hosts, &app, 1);
}

/* As `cp` to another name and `mv` over the first one do it. */
static void replace_file(const char *path)
{
	char command[1400];

	snprintf(command, sizeof(command), "cp -p '%s' '%s.new' && mv '%s.new' '%s'", path, path,
		 path, path);
	assert_int_equal(system(command), 0);
}

static bool has_said(const char *words)
{
	char command[700];

	snprintf(command, sizeof(command), "grep -qE -e '%s' '%s/said'", words, hosts.folder);
	return system(command) == 0;
}

static void expect_said(unsigned host, const char *words, const char *command)
{
	for (int tries = 0; tries < 200; tries++, usleep(50000)) {
		host_run_tool(&hosts, host, command);
		if (has_said(words))
			return;
	}
	fail_msg("'%s' does not say '%s'", command, words);
}

/* The application is told, its flushes fail, and the copy does not count any more. */
static void expect_primary_without_copy(void)
{
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until insync.a=no"), 0);
	app_expect(&app, "The local copy has failed", "put 64 2");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_read_word(&hosts, 1, 64), 2); /* the other copy has it */
}

static void a_data_file_that_is_replaced_while_the_daemon_is_away_is_noticed(void **state)
{
	begin(0);
	host_kill(&hosts, 0);
	replace_file(hosts.hosts[0].data);
	host_start(&hosts, 0, NULL);
	expect_primary_without_copy();
	end();
}

static void a_data_file_that_is_replaced_below_the_primary_is_noticed(void **state)
{
	begin(0);
	replace_file(hosts.hosts[0].data);
	expect_primary_without_copy();
	expect_said(0, "copy.*failed", "status orders --json");
	end();
}

static void a_replicas_data_file_that_is_removed_is_noticed(void **state)
{
	begin(0);
	assert_int_equal(unlink(hosts.hosts[1].data), 0);
	app_expect(&app, "durable", "put 64 2");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until insync.b=no,copy.b=failed"),
			 0);
	app_expect(&app, "durable 1", "put 64 3");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_data_file_that_is_replaced_while_the_daemon_is_away_is_noticed),
		cmocka_unit_test(a_data_file_that_is_replaced_below_the_primary_is_noticed),
		cmocka_unit_test(a_replicas_data_file_that_is_removed_is_noticed),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
