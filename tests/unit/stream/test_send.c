/* SPDX-License-Identifier: BSD-3-Clause */
/* test_send.c -- a link that takes no bytes now, and a link that breaks during a send. */
#include <errno.h>

#include "link.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

/* Make a stream that has bytes to send. */
static void begin_send(struct side *side)
{
	struct iovec iov[QP_TX_IOV];

	assert_int_equal(side_post_send(side, 1), 0);
	assert_true(stream_tx_begin(side->s, iov, &side->u) > 0);
}

static void a_link_that_takes_nothing_now_is_not_broken(void **state)
{
	const int later[] = {-EAGAIN, -EINTR};

	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		link_init(&l, &a, &b);
		side_add_qp(&l.a);
		side_add_qp(&l.b);
		link_establish(&l);
		begin_send(&l.a);
		stream_tx_end(l.a.s, later[i], &l.a.u);
		assert_state(&l.a, LIVE);
		assert_true(l.a.u.todo & STREAM_DO_SEND);
		link_fini(&l);
	}
}

static void a_link_that_breaks_at_a_send_ends_the_stream(void **state)
{
	enum ibv_wc_status status;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	begin_send(&l.a);
	stream_tx_end(l.a.s, -ENETDOWN, &l.a.u);
	assert_state(&l.a, CLOSED);
	assert_int_equal(rig_poll(l.a.rig, &status), 1);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_link_that_takes_nothing_now_is_not_broken, reset),
		cmocka_unit_test_setup(a_link_that_breaks_at_a_send_ends_the_stream, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
