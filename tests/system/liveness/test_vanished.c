/* SPDX-License-Identifier: BSD-3-Clause */
/* test_vanished.c -- the network path to the peer fails silently: no FIN, no reset, no answer. Both
 * processes are in a separate network namespace, whose only interface is switched off. */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "outcome.h"

#define ECHOES 400 /* echoes that an end does not receive: more than can be parked */

static const char *const regions[] = {"anon:65536:0xff", NULL};

static void leave_out(const char *what)
{
	printf("skipped: %s: %s\n", what, strerror(errno));
	exit(SKIPPED);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		leave_out(path);
	close(fd);
}

static void set_way(bool up)
{
	struct ifreq req = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (up)
		req.ifr_flags = IFF_UP;
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
}

/* The namespace ends with the test and its target. It needs no privileges if users are allowed to
 * create namespaces. */
static void enter_network(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (uid == 0) {
		if (unshare(CLONE_NEWNET))
			leave_out("a network of our own");
		return;
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		leave_out("a user and network namespace of our own");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)gid);
	put("/proc/self/gid_map", map);
}

static struct remote target;
static struct client client;

static int start(void **state)
{
	set_way(true);
	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	OK(client_begin(&client, 65536, target.port));
	return 0;
}

static int stop(void **state)
{
	client_drop(&client);
	client_close(&client);
	set_way(true);
	return proc_finish(&target.proc);
}

static void both_ends_of_an_idle_connection_lose_it(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	set_way(false);
	OK(client_wait_event(client.conn, &event, AT_MOST_MS));
	assert_int_equal(event, RPMA_CONN_LOST);
	expect_target_lost(&target, 1);
}

static void what_is_posted_fails(void **state)
{
	uint64_t begun;

	OK(client_write(&client, 0, 0, 4096, NULL));
	begun = clock_now_ns();
	set_way(false);
	post_read(&client);
	expect_lost(&client, begun);
	expect_target_lost(&target, 1);
}

/* The program posts no receives for the echoes, so its device stops reading, and receives no
 * heartbeat, either. */
static void an_end_that_does_not_read_loses_it_as_well(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct ibv_wc wc;

	for (int i = 0; i < ECHOES; i++) {
		OK(rpma_send(client.conn, client.mr, 0, 64, RPMA_F_COMPLETION_ALWAYS, NULL));
		OK(client_wait_wc(client.cq, &wc, CLIENT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(client_wait_event(client.conn, &event, 2 * LIMIT_MS), CLIENT_TIMEOUT);
	set_way(false);
	OK(client_wait_event(client.conn, &event, AT_MOST_MS));
	assert_int_equal(event, RPMA_CONN_LOST);
	expect_target_lost(&target, 1);
}

static void a_short_interruption_is_not_noticed(void **state)
{
	struct ibv_wc wc;

	set_way(false);
	post_read(&client);
	usleep(LIMIT_MS / 4 * 1000);
	set_way(true);
	OK(client_wait_wc(client.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ends_of_an_idle_connection_lose_it, start,
						stop),
		cmocka_unit_test_setup_teardown(what_is_posted_fails, start, stop),
		cmocka_unit_test_setup_teardown(an_end_that_does_not_read_loses_it_as_well, start,
						stop),
		cmocka_unit_test_setup_teardown(a_short_interruption_is_not_noticed, start, stop),
	};

	enter_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
