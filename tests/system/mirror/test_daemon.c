/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the daemon's interfaces to primaries and libraries: maps, promotions, grants, fences,
 * restarts. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "player.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

static struct player a = PLAYER_NONE, b = PLAYER_NONE;
static struct register_entry now;

static int teardown(void **state)
{
	player_close(&b);
	player_close(&a);
	return hosts_teardown(state);
}

static uint64_t file_word(unsigned host, uint64_t offset)
{
	int fd = open(hosts.hosts[host].data, O_RDONLY | O_CLOEXEC);
	uint64_t word = 0;

	assert_int_equal(pread(fd, &word, sizeof(word), (off_t)offset), sizeof(word));
	close(fd);
	return word;
}

static void unmap(struct player *p, bool clean)
{
	static struct packet out;

	memset(&out, 0, sizeof(out));
	out.type = PACKET_UNMAP;
	out.unmap.clean = clean;
	assert_int_equal(player_ask(p, &out, PACKET_DONE)->done.status, PACKET_OK);
	player_close(p);
}

static void heartbeat(struct player *p)
{
	static struct packet out = {.type = PACKET_HEARTBEAT};

	player_send(p, &out);
}

/* Send heartbeats, as a library does, until the daemon reports a renewal after `since`. Returns the
 * time of this renewal. */
static uint64_t wait_for_lease(struct player *p, uint64_t since)
{
	for (unsigned beats = 0; beats < PLAYER_WAIT_MS / 20; beats++) {
		struct pollfd pfd = {.fd = p->fd, .events = POLLIN};

		heartbeat(p);
		if (poll(&pfd, 1, 20) < 1 || player_next(p, 0)->type != PACKET_LEASE)
			continue;
		if (p->in.lease.sent_ns > since)
			return p->in.lease.sent_ns;
	}
	fail_msg("the alive key is not renewed");
	return 0;
}

static void a_primary_flushes_to_the_members_that_promised(void **state)
{
	struct talk control, lane;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	assert_true(a.data_fd >= 0 && a.meta_fd >= 0);
	player_promote(&a, &now);
	assert_int_equal(now.record.view.phase, MIRROR_PHASE_SERVING);
	wait_for_lease(&a, 0);

	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(
			talk_open(&control, &hosts, i, 0, GREETING_CONTROL, now.record.view.epoch),
			GREETING_OK);
		assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
		assert_int_equal(control.in.promised.flags & MESSAGE_REPORT_HELD, 0);
		assert_int_equal(control.in.promised.ranges, 0);
		assert_int_equal(
			talk_open(&lane, &hosts, i, 0, GREETING_LANE, now.record.view.epoch),
			GREETING_OK);
		assert_int_equal(talk_flush(&lane, 4096 * i, 0x1234 + i), IBV_WC_SUCCESS);
		assert_int_equal(file_word(i, 4096 * i), 0x1234 + i);
		assert_int_equal(talk_ask(&control, MESSAGE_PING)->type, MESSAGE_PONG);
		talk_close(&lane);
		talk_close(&control);
	}
	unmap(&a, true);
}

static void a_lane_needs_the_promise_first(void **state)
{
	struct mirror_epoch epoch;
	struct talk control, lane;

	player_open(&a, &hosts, 0); /* the daemon answers, so its copies are open */
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, PACKET_MAP_READONLY), PACKET_OK);
	epoch = hosts_promote(&hosts, 0);
	assert_int_equal(talk_open(&lane, &hosts, 1, 0, GREETING_LANE, epoch), GREETING_EPOCH);
	talk_close(&lane);
	assert_int_equal(talk_open(&control, &hosts, 1, 0, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(talk_open(&lane, &hosts, 1, 0, GREETING_LANE, epoch), GREETING_OK);
	talk_close(&lane);
	talk_close(&control);
}

static void a_connection_for_restoring_can_only_read(void **state)
{
	struct mirror_epoch epoch;
	struct talk control, restore;
	enum rpma_conn_event event;

	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, PACKET_MAP_READONLY), PACKET_OK);
	epoch = hosts_promote(&hosts, 0);
	assert_int_equal(talk_open(&control, &hosts, 1, 0, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_open(&restore, &hosts, 1, 0, GREETING_RESTORE, epoch),
			 GREETING_EPOCH);
	talk_close(&restore);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(talk_open(&restore, &hosts, 1, 0, GREETING_RESTORE, epoch), GREETING_OK);
	assert_null(restore.ring);
	memset(restore.page, 0x55, sizeof(restore.page));
	OK(rpma_write(restore.conn, restore.data, 0, restore.page_mr, 0, sizeof(restore.page),
		      RPMA_F_COMPLETION_ALWAYS, NULL));
	OK(rpma_conn_next_event_timeout(restore.conn, PLAYER_WAIT_MS, &event));
	assert_int_not_equal(event, RPMA_CONN_ESTABLISHED);
	assert_int_equal(file_word(1, 0), 0);
	talk_close(&restore);
	talk_close(&control);
}

static void a_second_process_may_not_map(void **state)
{
	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_open(&b, &hosts, 0);
	assert_int_equal(player_map(&b, 0), PACKET_BUSY);
	assert_int_equal(player_map(&b, PACKET_MAP_READONLY), PACKET_OK);
	assert_true(b.data_fd >= 0);
	assert_int_equal(fcntl(b.data_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	player_close(&b);
	unmap(&a, true);
	player_open(&b, &hosts, 0);
	assert_int_equal(player_map(&b, 0), PACKET_OK);
}

/* ---- fences ---- */

static void open_lane(struct talk *control, struct talk *lane, unsigned i, unsigned from,
		      struct mirror_epoch epoch)
{
	assert_int_equal(talk_open(control, &hosts, i, from, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(talk_open(lane, &hosts, i, from, GREETING_LANE, epoch), GREETING_OK);
}

/*
 * Start a process that plays an earlier primary: it continually writes growing values to one word.
 */
static pid_t start_writer(unsigned i, struct mirror_epoch epoch, int *ready)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct talk control, lane;
		uint64_t n = 1;

		proc_die_with_parent();
		open_lane(&control, &lane, i, 0, epoch);
		do {
			if (n == 10 && write(fds[1], "", 1) != 1)
				_exit(2);
		} while (talk_flush(&lane, 0, n++) == IBV_WC_SUCCESS);
		_exit(n > 10 ? 0 : 1);
	}
	close(fds[1]);
	*ready = fds[0];
	return pid;
}

static void nothing_is_placed_any_more_when_a_promise_is_answered(void **state)
{
	int status, ready;

	for (unsigned round = 1; round <= 10; round++) {
		pid_t writer = start_writer(1, hosts_promote(&hosts, 0), &ready);
		struct talk control;
		uint64_t word;
		char byte;

		assert_int_equal(read(ready, &byte, 1), 1);
		close(ready);
		assert_int_equal(talk_open(&control, &hosts, 1, 1, GREETING_CONTROL,
					   hosts_promote(&hosts, 1)),
				 GREETING_OK);
		assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
		word = file_word(1, 0);
		assert_int_equal(waitpid(writer, &status, 0), writer);
		assert_int_equal(status, 0);
		assert_int_equal(file_word(1, 0), word);
		talk_close(&control);
	}
}

static void a_lower_epoch_is_refused_with_the_one_that_is_known(void **state)
{
	struct mirror_epoch older, newer, twin;
	struct talk control, lane, old;

	older = hosts_promote(&hosts, 0);
	twin = newer = hosts_promote(&hosts, 0);
	open_lane(&control, &lane, 1, 0, newer);
	assert_int_equal(talk_connect(&old, &hosts, 1, 0, GREETING_LANE, older), GREETING_EPOCH);
	assert_int_equal(old.reply.known.number, newer.number);
	assert_int_equal(old.reply.known.nonce, newer.nonce);
	talk_close(&old);
	/* This epoch has the same number, but another process began it. */
	twin.nonce++;
	assert_int_equal(talk_open(&old, &hosts, 1, 0, GREETING_LANE, twin), GREETING_EPOCH);
	talk_close(&old);
	assert_int_equal(talk_flush(&lane, 0, 1), IBV_WC_SUCCESS);
	talk_close(&lane);
	talk_close(&control);
}

static void a_promise_outlives_the_daemon(void **state)
{
	struct mirror_epoch older, newer;
	struct talk control, lane;

	older = hosts_promote(&hosts, 0);
	newer = hosts_promote(&hosts, 0);
	open_lane(&control, &lane, 1, 0, newer);
	host_kill(&hosts, 1);
	talk_close(&lane);
	talk_close(&control);
	host_start(&hosts, 1, NULL);
	assert_int_equal(talk_connect(&control, &hosts, 1, 0, GREETING_CONTROL, older),
			 GREETING_EPOCH);
	assert_int_equal(control.reply.known.number, newer.number);
	talk_close(&control);
}

static void a_primary_on_this_host_learns_of_a_higher_epoch(void **state)
{
	struct talk control;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	assert_int_equal(
		talk_open(&control, &hosts, 0, 1, GREETING_CONTROL, (struct mirror_epoch){9, 90}),
		GREETING_OK);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(control.in.promised.flags & MESSAGE_REPORT_HELD, MESSAGE_REPORT_HELD);
	assert_int_equal(player_expect(&a, PACKET_FENCED)->fenced.known.number, 9);
	talk_close(&control);
}

/* ---- processes ---- */

/* Start a process that plays a library: it maps, is promoted, reports this, and then sends
 * heartbeats. */
static pid_t start_primary(unsigned i, int *ready)
{
	static struct packet beat = {.type = PACKET_HEARTBEAT};
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		proc_die_with_parent();
		player_open(&a, &hosts, i);
		if (player_map(&a, PACKET_MAP_WAIT) != PACKET_OK)
			_exit(1);
		player_recover(&a, &now);
		if (write(fds[1], "", 1) != 1)
			_exit(2);
		/* The process continues even after its daemon has exited. */
		for (;;) {
			player_try_send(&a, &beat);
			usleep(PACKET_HEARTBEAT_MS * 1000);
		}
	}
	close(fds[1]);
	*ready = fds[0];
	return pid;
}

static void wait_ready(int ready)
{
	char byte;

	assert_int_equal(read(ready, &byte, 1), 1);
	close(ready);
}

static void kill_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void another_host_waits_until_the_primary_has_died(void **state)
{
	int ready_a, ready_b;
	pid_t first, second;

	first = start_primary(0, &ready_a);
	wait_ready(ready_a);
	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, 0), PACKET_BUSY);
	player_close(&b);
	/* The lease is ten minutes, longer than any wait of this test. So the test succeeds only if
	 * the daemon detects the exit of the process and clears the key. */
	second = start_primary(1, &ready_b);
	kill_process(first);
	wait_ready(ready_b);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.primary, 1);
	assert_int_equal(now.record.view.epoch.number, 2);
	kill_process(second);
}

static void another_host_waits_for_the_lease_of_a_host_that_died(void **state)
{
	int ready_a, ready_b;
	pid_t first, second;

	first = start_primary(0, &ready_a);
	wait_ready(ready_a);
	host_kill(&hosts, 0); /* the alive key is neither cleared nor renewed */
	second = start_primary(1, &ready_b);
	wait_ready(ready_b);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.primary, 1);
	kill_process(first);
	kill_process(second);
}

static void without_auto_no_process_takes_over_by_waiting(void **state)
{
	static struct packet out = {.type = PACKET_MAP, .map = {.flags = PACKET_MAP_WAIT}};
	int ready;
	pid_t first;

	first = start_primary(0, &ready);
	wait_ready(ready);
	player_open(&b, &hosts, 1);
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	player_send(&b, &out);
	kill_process(first);
	/* A request without WAIT comes from an operator. It is granted when the key is cleared. */
	player_open(&a, &hosts, 1);
	while (player_map(&a, 0) != PACKET_OK)
		usleep(10000);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.epoch.number, 1);
}

static void a_restarted_daemon_finds_its_primary_again(void **state)
{
	static struct packet out;
	struct mirror_epoch epoch;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	epoch = now.record.view.epoch;
	host_kill(&hosts, 0);
	player_close(&a);
	host_start(&hosts, 0, NULL);
	/* No other process gets the set. */
	player_open(&b, &hosts, 0);
	assert_int_equal(player_map(&b, 0), PACKET_BUSY);
	player_close(&b);
	/* The process that has the set continues to work: its alive key is renewed. */
	player_open(&a, &hosts, 0);
	memset(&out, 0, sizeof(out));
	out.type = PACKET_MAP;
	out.map.flags = PACKET_MAP_RESUME;
	out.map.epoch = epoch;
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	assert_int_equal(player_ask(&a, &out, PACKET_MAPPED)->mapped.status, PACKET_OK);
	wait_for_lease(&a, wait_for_lease(&a, 0));
	unmap(&a, true);
}

static void a_restarted_daemon_releases_a_process_that_died(void **state)
{
	int ready;
	pid_t first;

	first = start_primary(0, &ready);
	wait_ready(ready);
	host_kill(&hosts, 0);
	kill_process(first);
	host_start(&hosts, 0, NULL);
	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, PACKET_MAP_WAIT), PACKET_OK);
}

static void without_heartbeats_the_lease_ends(void **state)
{
	int ready, status;
	pid_t first;

	first = start_primary(0, &ready);
	wait_ready(ready);
	kill(first, SIGSTOP);
	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, PACKET_MAP_WAIT), PACKET_OK);
	player_promote(&b, &now);
	assert_int_equal(now.record.view.primary, 1);
	kill(first, SIGKILL);
	assert_int_equal(waitpid(first, &status, 0), first);
}

#define TEST(name, ...) HOSTS_TEST(name, .count = 2, __VA_ARGS__)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOSTS_TEST(a_primary_flushes_to_the_members_that_promised, .count = 3),
		TEST(a_lane_needs_the_promise_first),
		TEST(a_connection_for_restoring_can_only_read),
		TEST(a_second_process_may_not_map),
		TEST(nothing_is_placed_any_more_when_a_promise_is_answered),
		TEST(a_lower_epoch_is_refused_with_the_one_that_is_known),
		TEST(a_promise_outlives_the_daemon),
		TEST(a_primary_on_this_host_learns_of_a_higher_epoch),
		TEST(another_host_waits_until_the_primary_has_died, .lease_ms = 600000,
		     .automatic = true),
		TEST(another_host_waits_for_the_lease_of_a_host_that_died, .lease_ms = 1000,
		     .automatic = true),
		TEST(without_auto_no_process_takes_over_by_waiting, .lease_ms = 1000),
		TEST(a_restarted_daemon_finds_its_primary_again),
		TEST(a_restarted_daemon_releases_a_process_that_died, .lease_ms = 600000,
		     .automatic = true),
		TEST(without_heartbeats_the_lease_ends, .lease_ms = 1000, .automatic = true),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
