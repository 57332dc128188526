/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection sets up rings with its peer only once, so that a peer cannot make it call one socket
 * after another. */
#include "ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic/io/conn_parts.h"
#include "softrnic/io/link_shm_socket.h"
#include "softrnic/verbs/id.h"

static struct ends ends;

static int setup(void **state)
{
	ends_open(&ends);
	assert_int_equal(softrnic_listen(ends.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(ends.client.id, NULL), 0);
	ends_establish(&ends);
	return 0;
}

static int teardown(void **state)
{
	ends_close(&ends);
	return 0;
}

/* Handle this step as if the peer had sent it. */
static void take_step(enum ext_link_step step, const uint8_t *token)
{
	struct conn *c = container_of(ends.client.id, struct cmid, pub)->conn;
	struct qp_link_msg msg = {.step = step};
	struct stream_update u;

	if (token)
		memcpy(msg.token, token, sizeof(msg.token));
	conn_enter(c);
	conn_rings_on_step(c, &msg, &u);
	conn_perform(c, &u);
	conn_leave(c);
}

static bool is_called(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void an_initiator_calls_one_socket(void **state)
{
	const uint8_t name[EXT_LINK_TOKEN] = "once";
	int listener = shm_socket_listen(name, 1);

	assert_true(listener >= 0);
	take_step(EXT_LINK_MEET, name);
	assert_true(is_called(listener));
	take_step(EXT_LINK_STOP, NULL);
	for (int i = 0; i < 3; i++) {
		take_step(EXT_LINK_MEET, name);
		assert_false(is_called(listener));
	}
	close(listener);
	assert_int_equal(end_post_recv(&ends.server, 1), 0);
	assert_int_equal(end_post_send(&ends.client, 2, 8), 0);
	assert_int_equal(end_wait_wc(&ends.client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&ends.server).status, IBV_WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_initiator_calls_one_socket, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
