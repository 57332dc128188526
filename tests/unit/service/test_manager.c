/* SPDX-License-Identifier: BSD-3-Clause */
/* Status reports to the service manager (systemd). */
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "service/manager.h"

static int receiver;
static unsigned warnings;

static void count_line(enum log_level level, const char *file, int line, const char *func,
		       const char *text)
{
	warnings++;
}

/* name: a path, or '@' followed by the name of an abstract socket */
static void receive_at(const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

	memcpy(at.sun_path, name, strlen(name));
	if (name[0] == '@')
		at.sun_path[0] = '\0';
	receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(receiver, (struct sockaddr *)&at, len + (name[0] == '/')), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	manager_begin();
	assert_null(getenv("NOTIFY_SOCKET"));
}

static void assert_received(const char *text)
{
	char got[1024];
	ssize_t n = recv(receiver, got, sizeof(got) - 1, 0);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, text);
}

static void test_reports(void)
{
	char got[64];
	unsigned long long us;

	manager_ready("at %s", "10.0.0.1:7204");
	assert_received("READY=1\nSTATUS=at 10.0.0.1:7204");
	manager_status("%u of %u", 1, 2);
	assert_received("STATUS=1 of 2");
	manager_reloading();
	got[recv(receiver, got, sizeof(got) - 1, 0)] = '\0';
	assert_int_equal(sscanf(got, "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
	assert_true(us > 0);
	manager_reloaded();
	assert_received("READY=1");
	manager_stopping();
	assert_received("STOPPING=1");
	close(receiver);
}

static void reports_reach_a_path(void **state)
{
	char path[] = "/tmp/test_manager.XXXXXX", name[64];

	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/notify", path);
	receive_at(name);
	test_reports();
	unlink(name);
	rmdir(path);
}

static void reports_reach_an_abstract_address(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "@test_manager.%d", (int)getpid());
	receive_at(name);
	test_reports();
}

/* Each line of a report is an assignment, so a text from a peer must not add a line. */
static void a_text_stays_one_line(void **state)
{
	char name[64], text[2048];

	snprintf(name, sizeof(name), "@test_manager.%d", (int)getpid());
	receive_at(name);
	manager_status("a\nMAINPID=1");
	assert_received("STATUS=a?MAINPID=1");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	manager_status("%s", text);
	assert_true(recv(receiver, text, sizeof(text), 0) < 600);
	close(receiver);
}

static void without_a_manager_nothing_happens(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	manager_begin();
	setenv("NOTIFY_SOCKET", "", 1);
	manager_begin();
	log_set(count_line, LOG_LVL_WARNING);
	manager_ready("here");
	manager_stopping();
	assert_int_equal(warnings, 0);
}

static void an_address_that_is_none_is_reported_once(void **state)
{
	static const char *const names[] = {"relative", "vsock:2:1234"};
	char name[256];

	log_set(count_line, LOG_LVL_WARNING);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		warnings = 0;
		setenv("NOTIFY_SOCKET", names[i], 1);
		manager_begin();
		manager_ready("here");
		assert_int_equal(warnings, 1);
	}
	memset(name, '/', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	warnings = 0;
	setenv("NOTIFY_SOCKET", name, 1);
	manager_begin();
	manager_ready("here");
	assert_int_equal(warnings, 1);
}

static void a_manager_that_has_gone_is_a_warning(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "@test_manager.%d", (int)getpid());
	receive_at(name);
	close(receiver);
	log_set(count_line, LOG_LVL_WARNING);
	warnings = 0;
	manager_ready("here");
	assert_int_equal(warnings, 1);
}

static int no_log(void **state)
{
	log_set(NULL, LOG_LVL_OFF);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_reach_a_path),
		cmocka_unit_test(reports_reach_an_abstract_address),
		cmocka_unit_test(a_text_stays_one_line),
		cmocka_unit_test_teardown(without_a_manager_nothing_happens, no_log),
		cmocka_unit_test_teardown(an_address_that_is_none_is_reported_once, no_log),
		cmocka_unit_test_teardown(a_manager_that_has_gone_is_a_warning, no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
