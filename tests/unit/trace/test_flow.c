/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/trace/flow.h"

#define SAID_MAX 64

static struct said {
	enum flow_side from;
	uint32_t seq, ack;
	uint8_t flags;
	size_t len;
} said[SAID_MAX];
static unsigned n_said;

static void record(void *to, const struct tcpip_segment *seg, enum flow_side from, size_t len)
{
	struct flow *f = to;

	assert_true(n_said < SAID_MAX);
	assert_ptr_equal(seg->from, &f->end[from]);
	assert_ptr_equal(seg->to, &f->end[!from]);
	said[n_said++] = (struct said){from, seg->seq, seg->ack, seg->flags, len};
}

static void start(struct flow *f, enum flow_side initiator)
{
	memset(f, 0, sizeof(*f));
	flow_init(f, 1000000000);
	n_said = 0;
	flow_open(f, initiator, record, f);
}

/*
 * The sequence numbers of each side continue where they stopped, and acknowledge all bytes of the
 * other side.
 */
static void expect_consistent(void)
{
	uint32_t next[2] = {0};
	bool known[2] = {false};

	for (unsigned i = 0; i < n_said; i++) {
		const struct said *s = &said[i];
		enum flow_side from = s->from;

		if (known[from])
			assert_int_equal(s->seq, next[from]);
		if (s->flags & TCP_ACK)
			assert_int_equal(s->ack, next[!from]);
		known[from] = true;
		next[from] = s->seq + (uint32_t)s->len + (s->flags & (TCP_SYN | TCP_FIN) ? 1 : 0);
	}
}

static void expect_said(unsigned i, enum flow_side from, uint8_t flags, size_t len)
{
	assert_true(i < n_said);
	assert_int_equal(said[i].from, from);
	assert_int_equal(said[i].flags, flags);
	assert_int_equal(said[i].len, len);
}

static void the_initiator_begins(void **state)
{
	struct flow f;

	for (enum flow_side i = FLOW_US; i <= FLOW_PEER; i++) {
		start(&f, i);
		assert_int_equal(n_said, 3);
		expect_said(0, i, TCP_SYN, 0);
		expect_said(1, !i, TCP_SYN | TCP_ACK, 0);
		expect_said(2, i, TCP_ACK, 0);
		expect_consistent();
	}
}

static void a_later_connection_begins_with_other_numbers(void **state)
{
	struct flow a = {0}, b = {0};

	flow_init(&a, 5000000000);
	flow_init(&b, 5000004000);
	assert_int_not_equal(a.next[FLOW_US], b.next[FLOW_US]);
	assert_int_not_equal(a.next[FLOW_PEER], b.next[FLOW_PEER]);
}

static void what_goes_one_way_only_is_acknowledged_in_time(void **state)
{
	struct flow f;

	start(&f, FLOW_US);
	for (int i = 0; i < 8; i++)
		flow_data(&f, FLOW_PEER, 65000, record, &f);
	assert_int_equal(n_said, 3 + 8 + 1);
	expect_said(3 + 5, FLOW_US, TCP_ACK, 0);
	expect_consistent();
}

static void data_acknowledges_as_well(void **state)
{
	struct flow f;

	start(&f, FLOW_US);
	for (int i = 0; i < 20; i++)
		flow_data(&f, i % 2 ? FLOW_US : FLOW_PEER, 65000, record, &f);
	assert_int_equal(n_said, 3 + 20);
	expect_consistent();
}

static void numbers_wrap(void **state)
{
	struct flow f;

	start(&f, FLOW_US);
	f.next[FLOW_US] = 0xffffffff;
	n_said = 0;
	flow_data(&f, FLOW_US, 100, record, &f);
	flow_data(&f, FLOW_US, 100, record, &f);
	assert_int_equal(said[1].seq, 99);
}

static void each_side_says_farewell_once(void **state)
{
	struct flow f;

	start(&f, FLOW_PEER);
	flow_fin(&f, FLOW_US, record, &f);
	flow_fin(&f, FLOW_US, record, &f);
	flow_data(&f, FLOW_PEER, 10, record, &f);
	flow_fin(&f, FLOW_PEER, record, &f);
	flow_fin(&f, FLOW_PEER, record, &f);
	flow_reset(&f, FLOW_US, record, &f);
	assert_int_equal(n_said, 3 + 4);
	expect_said(3, FLOW_US, TCP_FIN | TCP_ACK, 0);
	expect_said(4, FLOW_PEER, TCP_PSH | TCP_ACK, 10);
	expect_said(5, FLOW_PEER, TCP_FIN | TCP_ACK, 0);
	expect_said(6, FLOW_US, TCP_ACK, 0);
	expect_consistent();
}

static void nothing_follows_a_reset(void **state)
{
	struct flow f;

	start(&f, FLOW_US);
	flow_fin(&f, FLOW_US, record, &f);
	flow_reset(&f, FLOW_PEER, record, &f);
	flow_reset(&f, FLOW_PEER, record, &f);
	flow_data(&f, FLOW_US, 10, record, &f);
	flow_fin(&f, FLOW_PEER, record, &f);
	assert_int_equal(n_said, 3 + 2);
	expect_said(4, FLOW_PEER, TCP_RST | TCP_ACK, 0);
	expect_consistent();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_initiator_begins),
		cmocka_unit_test(a_later_connection_begins_with_other_numbers),
		cmocka_unit_test(what_goes_one_way_only_is_acknowledged_in_time),
		cmocka_unit_test(data_acknowledges_as_well),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(each_side_says_farewell_once),
		cmocka_unit_test(nothing_follows_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
