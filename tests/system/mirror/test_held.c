/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to a member is lost, but the network keeps the bytes that were sent on it. The
 * member is excluded, made equal, and becomes in-sync again. Then the kept bytes arrive. The time
 * limit of the daemons is long, so only the step that makes the member equal can end the
 * connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "held.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define HOSTS  3
#define ALL    7
#define OFFSET 4096
#define SIZE   (8u << 20)
/* bytes of a resync that are delivered before the connection is held */
#define PART        (1u << 20)
#define WORDS       64 /* words that are written after a resync, all over the file */
#define PATIENCE_MS 30000
#define ARRIVE_MS   100

static struct held *held;
static unsigned last;

static unsigned rounds(void)
{
	const char *text = getenv("SYSTEM_ROUNDS");

	return text ? (unsigned)atoi(text) : 2;
}

static void begin(void)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	hosts_wait_insync(&hosts, ALL);
}

static void put(const char *wanted, unsigned offset)
{
	ask(0, wanted, "put %u %u", offset, ++last);
}

static void wait_held(void)
{
	for (int waited = 0; !held_bytes(held); waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
}

/* Release the kept bytes, which arrive or are discarded. Then check the copies. */
static void check_arrival(unsigned offset)
{
	assert_true(held_bytes(held));
	held_release(held);
	usleep(ARRIVE_MS * 1000);
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(host_read_word(&hosts, i, offset), last);
}

/* ---- a lane ---- */

static void a_lane_is_lost_and_the_member_returns_in_the_same_epoch(void **state)
{
	begin();
	for (unsigned i = 0; i < rounds(); i++) {
		put("durable 7 flags 0", OFFSET);
		held_hold(held);
		put("durable 3 flags 1", OFFSET);
		hosts_wait_insync(&hosts, ALL);
		put("durable 7 flags 0", OFFSET);
		check_arrival(OFFSET);
	}
}

static void a_primary_is_killed_and_another_one_follows(void **state)
{
	char command[64];

	begin();
	for (unsigned i = 0; i < rounds(); i++) {
		put("durable 7 flags 0", OFFSET);
		held_hold(held);
		snprintf(command, sizeof(command), "put %u %u\n", OFFSET, ++last);
		app_tell(&apps[0], command);
		wait_held();
		proc_kill(&apps[0]);
		begin();
		put("durable 7 flags 0", OFFSET);
		check_arrival(OFFSET);
	}
}

/* ---- a resync ---- */

static void write_all_over(void)
{
	unsigned value = ++last;

	for (unsigned i = 0; i < WORDS; i++)
		ask(0, "durable 7 flags 0", "put %u %u", i * (SIZE / WORDS), value);
}

static void check_all_over(void)
{
	for (unsigned i = 0; i < WORDS; i++)
		for (unsigned host = 0; host < HOSTS; host++)
			assert_int_equal(host_read_word(&hosts, host, i * (SIZE / WORDS)), last);
}

/*
 * The connection has delivered a part of the resync when the rest is held. Another connection makes
 * the member equal.
 */
static void a_resync_is_lost_and_the_next_one_ends(void **state)
{
	begin();
	for (unsigned i = 0; i < rounds(); i++) {
		write_all_over();
		host_kill(&hosts, 2);
		ask(0, "durable 3 flags 1", "flush 0 %u", SIZE);
		held_hold_after(held, PART);
		host_start(&hosts, 2, NULL);
		wait_held();
		hosts_wait_insync(&hosts, ALL);
		write_all_over();
		check_arrival(0);
		check_all_over();
	}
}

/* ---- set-up ---- */

static int setup(void **state)
{
	struct hosts_opts opts = {.count = HOSTS,
				  .size = SIZE,
				  .peer_timeout_ms = 60000,
				  .replica_timeout_ms = 500,
				  .automatic = true};

	held = held_new();
	opts.via[2] = held_port(held);
	hosts_start(&hosts, &opts);
	held_lead_to(held, (uint16_t)atoi(hosts.hosts[2].port));
	return 0;
}

static int teardown(void **state)
{
	apps_teardown(state);
	held_delete(held);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lane_is_lost_and_the_member_returns_in_the_same_epoch),
		TEST(a_primary_is_killed_and_another_one_follows),
		TEST(a_resync_is_lost_and_the_next_one_ends),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
