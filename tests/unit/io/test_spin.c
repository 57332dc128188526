/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of the engine spins for a while on connections that were active, and then sleeps. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ends.h"
#include "link_pair.h"

#define SPIN_US  "50000"
#define SPIN_MS  50
#define LIMIT_MS 10000

static void connect_ends(struct ends *e)
{
	ends_open(e);
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
}

/* Wait until this many links report no bytes. */
static void expect_silent(unsigned n)
{
	for (int ms = 0; pair_silent() != n && ms < LIMIT_MS; ms++)
		usleep(1000);
	assert_int_equal(pair_silent(), n);
}

/* No thread polls the server's CQ, so the engine's thread receives there. */
static void message(struct ends *e, uint64_t id)
{
	assert_int_equal(end_post_recv(&e->server, id), 0);
	assert_int_equal(end_post_send(&e->client, id, 6), 0);
	assert_int_equal(end_wait_wc(&e->client).wr_id, id);
	assert_int_equal(end_wait_wc(&e->server).wr_id, id);
}

static void messages(struct ends *e, unsigned n)
{
	for (uint64_t id = 1; id <= n; id++)
		message(e, id);
}

static void it_looks_for_a_while_at_what_was_active(void **state)
{
	struct ends e;

	connect_ends(&e);
	messages(&e, 20);
	expect_silent(2);
	messages(&e, 20);
	expect_silent(0);
	messages(&e, 20);
	ends_close(&e);
}

/* At first three of four gaps between events, and later all gaps, are longer than the time for
 * which the thread spins. */
static void it_does_not_look_when_messages_are_rare(void **state)
{
	struct ends e;

	connect_ends(&e);
	for (uint64_t id = 1; id <= 12; id++) {
		usleep(4 * SPIN_MS * 1000);
		message(&e, id);
	}
	assert_int_equal(pair_silent(), 0);
	ends_close(&e);
}

static void connections_end_while_it_looks(void **state)
{
	struct ends e;

	for (int i = 0; i < 5; i++) {
		connect_ends(&e);
		messages(&e, 5);
		ends_close(&e);
	}
}

static void more_connections_than_it_looks_at_are_all_served(void **state)
{
	struct ends e[6];

	for (int i = 0; i < 6; i++)
		connect_ends(&e[i]);
	for (uint64_t id = 1; id <= 20; id++)
		for (int i = 0; i < 6; i++)
			message(&e[i], id);
	for (int i = 0; i < 6; i++)
		ends_close(&e[i]);
}

static void a_child_forked_while_it_looks_leaves_the_parent_alone(void **state)
{
	struct ends e;
	int status = 0;
	pid_t child;

	connect_ends(&e);
	messages(&e, 20);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(softrnic_destroy_id(e.server.id) || softrnic_destroy_id(e.client.id));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	messages(&e, 20);
	ends_close(&e);
}

static int on_a_pair(void **state)
{
	end_host = PAIR_IN_PLACE;
	pair_allow(SIZE_MAX);
	return setenv("SOFTRNIC_SPIN_US", SPIN_US, 1) || setenv("SOFTRNIC_THREADS", "1", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_looks_for_a_while_at_what_was_active),
		cmocka_unit_test(it_does_not_look_when_messages_are_rare),
		cmocka_unit_test(connections_end_while_it_looks),
		cmocka_unit_test(more_connections_than_it_looks_at_are_all_served),
		cmocka_unit_test(a_child_forked_while_it_looks_leaves_the_parent_alone),
	};

	return cmocka_run_group_tests_name("spin", tests, on_a_pair, NULL);
}
