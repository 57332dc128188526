/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that maps a set, and its daemon: when the process counts as ended, and which
 * processes are informed.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps.h"
#include "player.h"
#include "system/lib/check.h"

#define LEASE_MS    600000 /* longer than any wait in the tests */
#define PATIENCE_MS 20000
#define FAILURES    5

static struct player other, tool;
static char failing[300];

static void wait_failures(void)
{
	struct stat st = {0};

	for (int waited = 0; st.st_size < FAILURES; waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		assert_int_equal(stat(failing, &st), 0);
		usleep(1000);
	}
}

static enum packet_status map_at(unsigned host, uint8_t flags)
{
	enum packet_status status;

	player_open(&other, &hosts, host);
	status = player_map(&other, flags);
	player_close(&other);
	return status;
}

/* A daemon without a free descriptor cannot watch the process. The process keeps its copy and its
 * lease, continues to work, and is watched as soon as a descriptor is free. */
static void a_process_that_cannot_be_watched_counts_as_living(void **state)
{
	char fail[320];
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_PIDFD, fail, NULL};

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 3", "put 64 1");
	host_kill(&hosts, 0);
	snprintf(failing, sizeof(failing), "%s/failing", hosts.folder);
	snprintf(fail, sizeof(fail), "PIDFD_FAIL=%s", failing);
	close(open(failing, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	host_start(&hosts, 0, envs);
	wait_failures();
	assert_int_equal(map_at(0, 0), PACKET_BUSY);
	assert_int_equal(map_at(1, 0), PACKET_BUSY);
	ask(0, "durable 3", "put 64 2");
	unlink(failing);
	ask(0, "durable 3", "put 64 3");
	proc_kill(&apps[0]);
	assert_int_equal(map_at(1, PACKET_MAP_WAIT), PACKET_OK);
}

/* The process exits while the starting daemon searches for it. No process can then report whether a
 * write-back failed, so the daemon does not trust the page cache. */
static void a_process_that_ends_while_it_is_looked_for_is_noticed(void **state)
{
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_PIDFD, "PIDFD_KILL=1", NULL};

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 3", "put 64 1");
	host_kill(&hosts, 0);
	signal(SIGCHLD, SIG_IGN);
	host_start(&hosts, 0, envs);
	assert_true(host_wait_log(&hosts, 0, "the cached pages are written again", PATIENCE_MS));
	signal(SIGCHLD, SIG_DFL);
	apps[0].pid = 0;
	assert_int_equal(map_at(0, PACKET_MAP_WAIT), PACKET_OK);
}

static void wait_event(const char *wanted)
{
	struct pollfd pfd = {.fd = tool.fd, .events = POLLIN};
	char text[65536];
	ssize_t n;

	do {
		if (poll(&pfd, 1, PATIENCE_MS) != 1)
			fail_msg("no event says %s", wanted);
		n = recv(tool.fd, text, sizeof(text) - 1, 0);
		assert_true(n > 0);
		text[n] = '\0';
	} while (!strstr(text, wanted));
}

static void the_end_of_the_primary_is_an_event(void **state)
{
	static const char request[] = "{\"op\":\"events\",\"set\":\"" HOSTS_SET "\"}";
	char wanted[64];

	player_open(&tool, &hosts, 0);
	assert_int_equal(send(tool.fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	wait_event("dumped");
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	snprintf(wanted, sizeof(wanted), "process %d, the primary, has ended", (int)apps[0].pid);
	proc_kill(&apps[0]);
	wait_event(wanted);
	player_close(&tool);
}

/* The process sends nothing after its request. The set is then free again, whether or not the grant
 * arrived. */
static void a_grant_counts_when_the_process_has_it(void **state)
{
	assert_int_equal(map_at(0, 0), PACKET_OK);
	assert_int_equal(map_at(0, PACKET_MAP_WAIT), PACKET_OK);
}

#define TEST(name) APPS_TEST(name, .count = 2, .lease_ms = LEASE_MS, .automatic = true)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_that_cannot_be_watched_counts_as_living),
		TEST(a_process_that_ends_while_it_is_looked_for_is_noticed),
		TEST(the_end_of_the_primary_is_an_event),
		TEST(a_grant_counts_when_the_process_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
