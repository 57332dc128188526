/* SPDX-License-Identifier: BSD-3-Clause */
/* A real daemon uses TLS to etcd, and reads the file of the certificate authority again after
 * SIGHUP. */
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "player.h"
#include "system/lib/check.h"
#include "system/register/etcd.h"

#define PATIENCE 3000 /* number of checks, one every 20 ms */

static struct cluster etcd;
static struct player tool;

static json_t *ask_status(void)
{
	static const char ask[] = "{\"op\":\"status\"}";
	static char buf[PACKET_MAX];
	struct pollfd pfd = {.fd = tool.fd, .events = POLLIN};
	ssize_t n;
	json_t *in;

	assert_int_equal(send(tool.fd, ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
	assert_int_equal(poll(&pfd, 1, PLAYER_WAIT_MS), 1);
	n = recv(tool.fd, buf, sizeof(buf), 0);
	assert_true(n > 0);
	in = json_loadb(buf, (size_t)n, 0, NULL);
	assert_non_null(in);
	return in;
}

/* Wait until the daemon has this epoch, and reports whether the register answers as `answers`
 * requires. */
static void wait_until(json_int_t epoch, bool answers)
{
	for (unsigned tries = 0; tries < PATIENCE; tries++) {
		json_t *in = ask_status();
		json_t *set = json_array_get(json_object_get(in, "sets"), 0);
		json_t *reg = json_object_get(set, "register");
		bool is = json_integer_value(json_object_get(set, "epoch")) == epoch &&
			  json_is_true(json_object_get(reg, "answers")) == answers;

		json_decref(in);
		if (is)
			return;
		usleep(20000);
	}
	fail_msg("the register does not %s, or epoch %d is not known",
		 answers ? "answer" : "stay away", (int)epoch);
}

/* Wait until the status contains this reason why the register cannot be reached. */
static void wait_register_says(const char *words)
{
	bool is = false;

	for (unsigned tries = 0; tries < PATIENCE && !is; tries++, usleep(20000)) {
		json_t *in = ask_status();
		json_t *set = json_array_get(json_object_get(in, "sets"), 0);
		const char *error = json_string_value(
			json_object_get(json_object_get(set, "register"), "error"));

		is = error && strcasestr(error, words);
		json_decref(in);
	}
	assert_true(is);
}

static void wait_logged(const char *words)
{
	char command[500];

	snprintf(command, sizeof(command), "grep -q -e '%s' '%s'", words, hosts.hosts[0].log);
	for (unsigned tries = 0; system(command); tries++) {
		if (tries == PATIENCE)
			fail_msg("the daemon does not say '%s'", words);
		usleep(20000);
	}
}

static void in_folder(const char *command)
{
	char text[700];

	snprintf(text, sizeof(text), "cd '%s' && %s", etcd.folder, command);
	assert_int_equal(system(text), 0);
}

static void use_authority(const char *name)
{
	snprintf(hosts.register_uri, sizeof(hosts.register_uri), "%.100s?ca=%.150s/%s", etcd.uri,
		 etcd.folder, name);
}

static void a_new_authority_counts_after_a_reload_and_a_wrong_file_does_not(void **state)
{
	char uri[300];
	struct hosts_opts opts = {.count = 1, .register_uri = uri};

	snprintf(uri, sizeof(uri), "%.100s?ca=%.150s/ca.pem", etcd.uri, etcd.folder);
	hosts_start(&hosts, &opts);
	player_open(&tool, &hosts, 0);
	wait_until(0, true);
	/* If the file is no certificate or does not exist, the daemon continues to use the previous
	 * file. */
	in_folder("echo nonsense >wrong.pem");
	use_authority("wrong.pem");
	host_reload(&hosts, 0);
	wait_logged("the former ones are kept: .*wrong.pem has no CERTIFICATE in PEM");
	use_authority("absent.pem");
	host_reload(&hosts, 0);
	wait_logged("the former ones are kept: cannot open .*absent.pem");
	use_authority("ca.pem");
	hosts_promote(&hosts, 0);
	wait_until(1, true);
	/* etcd uses another authority, whose file has another path. */
	in_folder("cp ca.pem former.pem");
	assert_int_equal(cluster_change_authority(&etcd), 0);
	in_folder("mv ca.pem next.pem && mv former.pem ca.pem");
	/* Restart the member, which ends the earlier connections. */
	cluster_member_kill(&etcd, 0);
	assert_int_equal(cluster_member_start(&etcd, 0), 0);
	wait_until(1, false);
	wait_register_says("certificate");
	use_authority("next.pem");
	host_reload(&hosts, 0);
	wait_until(1, true);
	hosts_promote(&hosts, 0);
	wait_until(2, true);
	player_close(&tool);
	hosts_stop(&hosts);
}

static int start(void **state)
{
	return cluster_start(&etcd, 1, true);
}

static int stop(void **state)
{
	cluster_stop(&etcd);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_authority_counts_after_a_reload_and_a_wrong_file_does_not),
	};

	if (!cluster_is_possible()) {
		printf("skipped: etcd is not installed\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
