/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon as primaries and libraries see it: maps, promotions, grants, fences, restarts. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "player.h"
#include "system/lib/check.h"

static struct hosts hosts;
static struct player a, b;
static struct register_entry now;

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

static void a_primary_flushes_to_the_members_that_promised(void **state)
{
	struct hosts_opts opts = {.count = 3};
	struct talk control, lane;

	hosts_start(&hosts, &opts);
	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	assert_true(a.data_fd >= 0 && a.meta_fd >= 0);
	player_promote(&a, &now);
	assert_int_equal(now.record.view.phase, MIRROR_PHASE_SERVING);
	heartbeat(&a);
	assert_true(player_expect(&a, PACKET_LEASE)->lease.sent_ns > 0);

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
	hosts_stop(&hosts);
}

static void a_lane_needs_the_promise_first(void **state)
{
	struct hosts_opts opts = {.count = 2};
	struct mirror_epoch epoch = {1, 77};
	struct talk control, lane;

	hosts_start(&hosts, &opts);
	player_open(&a, &hosts, 0); /* the copies are open when this is answered */
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_open(&b, &hosts, 1);
	assert_int_equal(player_map(&b, PACKET_MAP_READONLY), PACKET_OK);
	assert_int_equal(talk_open(&lane, &hosts, 1, 0, GREETING_LANE, epoch), GREETING_EPOCH);
	talk_close(&lane);
	assert_int_equal(talk_open(&control, &hosts, 1, 0, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(talk_open(&lane, &hosts, 1, 0, GREETING_LANE, epoch), GREETING_OK);
	talk_close(&lane);
	talk_close(&control);
	player_close(&a);
	player_close(&b);
	hosts_stop(&hosts);
}

static void a_second_process_may_not_map(void **state)
{
	struct hosts_opts opts = {.count = 2};

	hosts_start(&hosts, &opts);
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
	player_close(&b);
	hosts_stop(&hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_primary_flushes_to_the_members_that_promised),
		cmocka_unit_test(a_lane_needs_the_promise_first),
		cmocka_unit_test(a_second_process_may_not_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
