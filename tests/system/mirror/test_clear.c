/* SPDX-License-Identifier: BSD-3-Clause */
/* A member clears unreadable blocks while its disk takes a long time to read them
 * (medium_preload.c). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "player.h"
#include "system/lib/check.h"

#define PATIENCE_MS 20000
#define STOP_MS     300 /* many times the time that the daemon needs to end */
#define PART        8192
#define GROWN       (16u << 20)
#define WORD        0x1122334455667788ull

static char hang[300], hang_env[320];

static int set_up(void **state)
{
	const struct hosts_opts opts = {.count = 1};
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, hang_env, NULL};

	hosts_start(&hosts, &opts);
	snprintf(hang, sizeof(hang), "%s/hang", hosts.folder);
	snprintf(hang_env, sizeof(hang_env), "MEDIUM_HANG=%s", hang);
	host_stop(&hosts, 0);
	host_start(&hosts, 0, envs);
	return 0;
}

static int tear_down(void **state)
{
	unlink(hang);
	hosts_stop(&hosts);
	return 0;
}

static void begin_to_hang(void)
{
	int fd = open(hang, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void open_control(struct talk *t, struct mirror_epoch epoch)
{
	assert_int_equal(talk_open(t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(t, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
}

/* Send a request to clear. Returns false if the daemon has exited. */
static bool try_to_clear(struct talk *t)
{
	struct message m = {.type = MESSAGE_CLEAR_ERRORS,
			    .uuid = t->greeting.uuid,
			    .epoch = t->greeting.epoch,
			    .clear = {0, PART}};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	return talk_send(t, buf, sizeof(buf)) && talk_receive(t);
}

static const struct message_cleared *ask_to_clear(struct talk *t)
{
	assert_true(try_to_clear(t));
	assert_int_equal(t->in.type, MESSAGE_ERRORS_CLEARED);
	return &t->in.cleared;
}

static void expect_data(enum greeting_kind kind, struct mirror_epoch epoch,
			enum greeting_status status)
{
	struct talk t;

	assert_int_equal(talk_open(&t, &hosts, 0, 1, kind, epoch), status);
	talk_close(&t);
}

static void expect_not_mapped(uint8_t flags)
{
	struct player p;

	player_open(&p, &hosts, 0);
	assert_int_equal(player_map(&p, flags), PACKET_BUSY);
	player_close(&p);
}

/*
 * No primary must write to the copy meanwhile, because the clearing could overwrite the new bytes.
 */
static void expect_no_writers(struct talk *t)
{
	expect_data(GREETING_BULK, t->greeting.epoch, GREETING_BUSY);
	expect_data(GREETING_LANE, t->greeting.epoch, GREETING_BUSY);
	assert_int_equal(talk_ask(t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_BUSY);
	assert_int_equal(talk_ask(t, MESSAGE_RESYNC_END)->done.status, GREETING_BUSY);
	expect_not_mapped(0);
	expect_not_mapped(PACKET_MAP_FORCE);
}

static void await_begin(struct talk *t)
{
	for (int waited = 0; talk_ask(t, MESSAGE_RESYNC_BEGIN)->done.status == GREETING_BUSY;
	     waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
	assert_int_equal(t->in.done.status, GREETING_OK);
}

static void await_cleared(struct talk *t)
{
	for (int waited = 0; ask_to_clear(t)->is_under_way; waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
	assert_int_equal(t->in.cleared.blocks, 0);
	assert_int_equal(t->in.cleared.error, 0);
}

static void a_long_read_of_a_block_delays_no_call_and_keeps_writers_out(void **state)
{
	struct mirror_epoch epoch = hosts_promote(&hosts, 0);
	struct talk t, next, lane;

	open_control(&t, epoch);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	begin_to_hang();
	assert_true(ask_to_clear(&t)->is_under_way);
	assert_true(ask_to_clear(&t)->is_under_way);
	assert_int_equal(talk_ask(&t, MESSAGE_PING)->type, MESSAGE_PONG);
	expect_no_writers(&t);
	/* The primary of another promised epoch has to wait, too. */
	epoch = hosts_promote(&hosts, 0);
	open_control(&next, epoch);
	talk_close(&t);
	expect_no_writers(&next);
	unlink(hang);
	await_begin(&next);
	expect_data(GREETING_BULK, epoch, GREETING_OK);
	assert_int_equal(talk_open(&lane, &hosts, 0, 1, GREETING_LANE, epoch), GREETING_OK);
	assert_int_equal(talk_flush(&lane, 0, WORD), IBV_WC_SUCCESS);
	talk_close(&lane);
	await_cleared(&next);
	assert_int_equal(talk_ask(&next, MESSAGE_RESYNC_END)->done.status, GREETING_OK);
	assert_int_equal(host_read_word(&hosts, 0, 0), WORD);
	talk_close(&next);
}

/* A child that has exited but was not waited for still accepts signals, so check its state. */
static bool daemon_runs(void)
{
	siginfo_t end = {0};

	assert_int_equal(
		waitid(P_PID, (id_t)hosts.hosts[0].daemon.pid, &end, WEXITED | WNOHANG | WNOWAIT),
		0);
	return !end.si_pid;
}

/* The daemon exits only after its clearing thread has finished, so that no zeros are written after
 * the next daemon has granted access. */
static void a_daemon_that_is_stopped_waits_for_it(void **state)
{
	struct talk t;

	open_control(&t, hosts_promote(&hosts, 0));
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	begin_to_hang();
	assert_true(ask_to_clear(&t)->is_under_way);
	kill(hosts.hosts[0].daemon.pid, SIGTERM);
	usleep(STOP_MS * 1000);
	assert_true(daemon_runs());
	talk_close(&t);
	unlink(hang);
	assert_int_equal(host_stop(&hosts, 0), 0);
	host_start(&hosts, 0, NULL);
	open_control(&t, hosts_promote(&hosts, 0));
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	await_cleared(&t);
	talk_close(&t);
}

/* The result of an earlier resync must not be the answer in the next resync. */
static void an_answer_that_was_not_fetched_is_forgotten(void **state)
{
	struct talk t;

	open_control(&t, hosts_promote(&hosts, 0));
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	assert_true(ask_to_clear(&t)->is_under_way);
	await_begin(&t);
	assert_true(ask_to_clear(&t)->is_under_way);
	await_cleared(&t);
	talk_close(&t);
}

static void make_room(struct talk *t, uint64_t size)
{
	struct message m = {.type = MESSAGE_RESERVE,
			    .uuid = t->greeting.uuid,
			    .epoch = t->greeting.epoch,
			    .reserve = {.size = size}};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		assert_true(talk_send(t, buf, sizeof(buf)) && talk_receive(t));
		assert_int_equal(t->in.type, MESSAGE_RESERVED);
		if (t->in.reserve.state == MESSAGE_RESERVE_DONE)
			return;
		usleep(1000);
	}
	fail_msg("the files do not get longer");
}

/* A growth would close the copy's files, so it has to wait. */
static void a_copy_does_not_grow_meanwhile(void **state)
{
	struct talk t;

	open_control(&t, hosts_promote(&hosts, 0));
	make_room(&t, GROWN);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	begin_to_hang();
	assert_true(ask_to_clear(&t)->is_under_way);
	assert_int_equal(host_run_tool(&hosts, 0, "grow " HOSTS_SET " 16M"), 0);
	usleep(STOP_MS * 1000);
	assert_true(ask_to_clear(&t)->is_under_way);
	unlink(hang);
	assert_true(host_wait_log(&hosts, 0, "the copy has 16777216 bytes now", PATIENCE_MS));
	talk_close(&t);
}

/* ---- the daemon is killed ---- */

static void store_word(struct talk *t)
{
	struct talk lane;

	assert_int_equal(talk_open(&lane, &hosts, 0, 1, GREETING_LANE, t->greeting.epoch),
			 GREETING_OK);
	assert_int_equal(talk_flush(&lane, 0, WORD), IBV_WC_SUCCESS);
	talk_close(&lane);
}

static enum packet_status map_copy(void)
{
	enum packet_status status;
	struct player p;

	player_open(&p, &hosts, 0);
	status = player_map(&p, 0);
	player_close(&p);
	return status;
}

/* Flush data to a block, make it unreadable, and begin to clear it. */
static struct mirror_epoch begin_to_clear(const char *env)
{
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, "MEDIUM_BAD=0:4096", env,
				    NULL};
	struct mirror_epoch epoch = hosts_promote(&hosts, 0);
	struct talk t;

	open_control(&t, epoch);
	store_word(&t);
	talk_close(&t);
	host_stop(&hosts, 0);
	host_start(&hosts, 0, envs);
	open_control(&t, epoch);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	try_to_clear(&t); /* the daemon answers, or it is killed */
	talk_close(&t);
	return epoch;
}

/* After the kill no member counts the copy as whole until a resync has ended. The copy then has the
 * resync's bytes. */
static void goes_on_after_it_was_killed(struct mirror_epoch epoch, uint64_t word)
{
	struct talk t;

	assert_int_equal(host_read_word(&hosts, 0, 0), word);
	host_start(&hosts, 0, NULL);
	assert_int_equal(map_copy(), PACKET_NOT_INSYNC);
	open_control(&t, epoch);
	assert_int_equal(t.in.promised.copy, MIRROR_COPY_SYNCING);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	await_cleared(&t);
	assert_int_equal(map_copy(), PACKET_NOT_INSYNC);
	store_word(&t);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_END)->done.status, GREETING_OK);
	talk_close(&t);
	assert_int_equal(host_read_word(&hosts, 0, 0), WORD);
	assert_int_equal(map_copy(), PACKET_OK);
}

static void it_is_killed_before_it_overwrites_a_block(void **state)
{
	struct mirror_epoch epoch;

	begin_to_hang();
	epoch = begin_to_clear(hang_env);
	host_kill(&hosts, 0);
	goes_on_after_it_was_killed(epoch, WORD);
}

static void is_killed_at(const char *env)
{
	struct mirror_epoch epoch = begin_to_clear(env);

	assert_int_equal(proc_wait(&hosts.hosts[0].daemon, PATIENCE_MS), SIGKILL);
	goes_on_after_it_was_killed(epoch, 0);
}

static void it_is_killed_before_zeros_are_durable(void **state)
{
	is_killed_at("MIRROR_KILL_AT=placed_before");
}

static void it_is_killed_before_it_reports_durable_zeros(void **state)
{
	is_killed_at("MIRROR_KILL_AT=placed_after");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_read_of_a_block_delays_no_call_and_keeps_writers_out),
		TEST(a_daemon_that_is_stopped_waits_for_it),
		TEST(an_answer_that_was_not_fetched_is_forgotten),
		TEST(a_copy_does_not_grow_meanwhile),
		TEST(it_is_killed_before_it_overwrites_a_block),
		TEST(it_is_killed_before_zeros_are_durable),
		TEST(it_is_killed_before_it_reports_durable_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
