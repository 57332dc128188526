/* SPDX-License-Identifier: BSD-3-Clause */
/* A full link: bytes that wait are sent when the link has space, even while a thread polls. */
#include <unistd.h>

#include "base/clock.h"
#include "ends.h"
#include "link_pair.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)
#define LEN      64

static void connect_ends(struct ends *e)
{
	ends_open(e);
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
}

static void poll_empty(struct end *e)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* Poll until the link no longer reports arrived bytes to the engine. */
static void poll_until_owned(struct end *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	while (pair_silent() == 0 && clock_now_ns() < until)
		poll_empty(e);
	assert_int_equal(pair_silent(), 1);
}

/* Start to poll at the client, and post a Send for which the link has no space. */
static void send_into_the_full_link(struct ends *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	unsigned before = pair_full();

	connect_ends(e);
	assert_int_equal(end_post_recv(&e->server, 1), 0);
	poll_until_owned(&e->client);
	pair_allow(0);
	assert_int_equal(end_post_send(&e->client, 2, LEN), 0);
	while (pair_full() == before && clock_now_ns() < until)
		poll_empty(&e->client);
	assert_true(pair_full() > before);
}

/* Polls do not retry the send, so no send fails for lack of space. */
static void it_is_sent_when_there_is_room_while_a_thread_polls(void **state)
{
	struct ends e;
	unsigned full;

	send_into_the_full_link(&e);
	poll_until_owned(&e.client);
	full = pair_full();
	for (int i = 0; i < 1000; i++)
		poll_empty(&e.client);
	assert_in_range(pair_full(), full,
			/* one send of the engine is allowed, in case the polls ceased meanwhile */
			full + 1);
	pair_allow(SIZE_MAX);
	assert_int_equal(end_wait_wc(&e.client).wr_id, 2);
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	ends_close(&e);
}

static void it_is_sent_although_no_thread_polls_any_more(void **state)
{
	struct ends e;

	send_into_the_full_link(&e);
	pair_allow(SIZE_MAX);
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	assert_int_equal(end_wait_wc(&e.client).wr_id, 2);
	ends_close(&e);
}

static void it_is_sent_after_the_queue_was_armed(void **state)
{
	struct ends e;

	send_into_the_full_link(&e);
	assert_int_equal(ibv_req_notify_cq(e.client.cq, 0), 0);
	pair_allow(SIZE_MAX);
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	assert_int_equal(end_wait_wc(&e.client).wr_id, 2);
	ends_close(&e);
}

static void a_full_link_is_closed(void **state)
{
	struct ends e;

	send_into_the_full_link(&e);
	pair_allow(SIZE_MAX);
	ends_close(&e);
}

static int on_a_pair(void **state)
{
	end_host = PAIR_IN_PLACE;
	pair_allow(SIZE_MAX);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_sent_when_there_is_room_while_a_thread_polls),
		cmocka_unit_test(it_is_sent_although_no_thread_polls_any_more),
		cmocka_unit_test(it_is_sent_after_the_queue_was_armed),
		cmocka_unit_test(a_full_link_is_closed),
	};

	return cmocka_run_group_tests_name("room", tests, on_a_pair, NULL);
}
