/* SPDX-License-Identifier: BSD-3-Clause */
/* The HELLO is the first message in each direction, and comes only once. It is accepted or refused;
 * the tests check the consequences. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/op.h"

#define LEN        (64u << 10)
#define HELLO_FPDU 64 /* length of the FPDU, with CRC */

static struct bench t;

/* Open two ends that have not sent a message yet. */
static void open_strangers(void)
{
	struct pair_options o = pair_defaults();

	o.stream.limit_ms = 2500;
	o.before_hello = true;
	bench_open(&t, &o, LEN);
}

static void open_bench(void)
{
	struct pair_options o = pair_defaults();

	bench_open(&t, &o, LEN);
}

static const struct ext_hello *hello_at(const struct qp_end *e)
{
	return qp_peer_hello(e->qp);
}

static struct ext_hello usual(void)
{
	return (struct ext_hello){
		.major = EXT_HELLO_MAJOR, .kinds = ~0ull, .max_ulpdu = MPA_ULPDU_MAX};
}

static void say(struct qp_end *to, const struct ext_hello *hello)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);
	uint8_t bytes[EXT_HELLO_LEN];

	ext_hello_encode(bytes, sizeof(bytes), hello);
	end_inject_fpdu(to, &hdr, bytes, sizeof(bytes));
}

static void it_is_the_first_message_each_way_and_nothing_overtakes_it(void **state)
{
	open_strangers();
	assert_int_equal(end_recv(t.b, 7, t.mrb, 0, 64), 0);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 64), 0);
	assert_int_equal(end_write(t.a, 2, t.mra, 0, 64, t.mrb, 128), 0);
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, HELLO_FPDU);
	assert_int_equal(t.a->wire[MPA_LENGTH_LEN + 1], 0x4c);
	assert_int_equal(t.a->wire[MPA_LENGTH_LEN + DDP_UNTAGGED_HDR], EXT_HELLO);
	while (end_take(t.b, 5) > 0)
		;
	assert_non_null(hello_at(t.b));
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, 0); /* b has sent nothing */
	assert_null(hello_at(t.a));
	pair_run(&t.p);
	assert_non_null(hello_at(t.a));
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 2, IBV_WC_SUCCESS);
	expect_wc(&t.b->rcq, 7, IBV_WC_SUCCESS);
	assert_memory_equal(t.ma, t.mb + 128, 64);
	bench_close(&t);
}

static void each_end_learns_what_the_other_states(void **state)
{
	uint32_t all = VEXT_CAP_FLUSH | VEXT_CAP_FLUSH_ALL | VEXT_CAP_VERIFY | VEXT_CAP_QUERY |
		       VEXT_CAP_ATOMIC_WRITE;

	open_strangers();
	assert_int_equal(qp_caps(t.a->qp) & all, 0);
	pair_run(&t.p);
	assert_true(hello_at(t.a)->kinds == op_kinds());
	assert_int_equal(hello_at(t.a)->major, 2);
	assert_int_equal(hello_at(t.a)->limit_ms, 2500);
	assert_int_equal(hello_at(t.a)->max_ulpdu, 64768);
	assert_int_equal(qp_caps(t.a->qp) & all, all);
	assert_int_equal(qp_caps(t.b->qp) & all, all);
	assert_int_equal(qp_peer_limit_ms(t.b->qp), 2500);
	bench_close(&t);
}

static int post_verify(struct qp_end *e)
{
	static struct vext_digest digest;

	return qp_verify(e->qp, 3, t.mrb->ibv.rkey, t.mrb->iova, 64, VEXT_DIGEST_CRC32C, &digest);
}

static int post_atomic_write(struct qp_end *e)
{
	return qp_atomic_write(e->qp, 4, IBV_SEND_SIGNALED, t.mrb->ibv.rkey, t.mrb->iova,
			       "12345678");
}

static void what_the_peer_does_not_name_cannot_be_posted(void **state)
{
	struct ext_hello peer = usual();

	peer.kinds = EXT_BIT(EXT_FLUSH) | EXT_BIT(EXT_ATOMIC_WRITE);
	open_strangers();
	say(t.a, &peer);
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 64, true), 0);
	assert_int_equal(post_atomic_write(t.a), 0);
	assert_int_equal(post_verify(t.a), EINVAL);
	assert_int_equal(qp_flush_all(t.a->qp, 2, VEXT_FLUSH_PERSISTENT), EINVAL);
	assert_int_equal(qp_caps(t.a->qp) & (VEXT_CAP_FLUSH | VEXT_CAP_FLUSH_ALL | VEXT_CAP_VERIFY |
					     VEXT_CAP_ATOMIC_WRITE),
			 VEXT_CAP_FLUSH | VEXT_CAP_ATOMIC_WRITE);
	bench_close(&t);
}

static void a_request_posted_before_the_hello_waits_for_it(void **state)
{
	open_strangers();
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 64, true), 0);
	assert_int_equal(post_atomic_write(t.a), 0);
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, HELLO_FPDU);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 4, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb, "12345678", 8);
	bench_close(&t);
}

static void a_request_posted_before_a_hello_that_does_not_name_it_fails(void **state)
{
	struct ext_hello peer = usual();

	peer.kinds = EXT_BIT(EXT_FLUSH);
	open_strangers();
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 64, true), 0);
	assert_int_equal(post_atomic_write(t.a), 0);
	assert_int_equal(end_flush(t.a, 2, t.mrb, 0, 64, true), 0);
	say(t.a, &peer);
	end_send_all(t.a);
	assert_true(qp_is_failed(t.a->qp));
	expect_wc(&t.a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&t.a->scq, 4, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&t.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	bench_close(&t);
}

/* A HELLO of a later minor version, with unknown kinds, is accepted. */
static void a_later_minor_version_is_understood(void **state)
{
	struct ext_hello peer = usual();

	peer.minor = 9;
	open_strangers();
	say(t.a, &peer);
	assert_false(qp_is_failed(t.a->qp));
	assert_int_equal(hello_at(t.a)->minor, 9);
	assert_int_equal(end_flush(t.a, 1, t.mrb, 0, 64, true), 0);
	bench_close(&t);
}

static void no_fpdu_is_larger_than_the_peer_takes(void **state)
{
	struct ext_hello peer = usual();
	size_t at = 0, most = 0;

	peer.max_ulpdu = 3000;
	open_strangers();
	say(t.a, &peer);
	end_send_all(t.a);
	t.a->wire_len = 0;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, LEN, t.mrb, 0), 0);
	end_send_all(t.a);
	while (at < t.a->wire_len) {
		size_t ulpdu = (size_t)(t.a->wire[at] << 8 | t.a->wire[at + 1]);

		most = ulpdu > most ? ulpdu : most;
		at += mpa_fpdu_len(ulpdu);
	}
	assert_in_range(most, 3000 - 8, 3000);
	bench_close(&t);
}

struct first {
	const char *what;
	bool tagged;
	uint8_t opcode, qn, kind;
	size_t len;
};

static const struct first firsts[] = {
	{"Write", true, RDMAP_WRITE, 0, 0, 8},
	{"Read Response", true, RDMAP_READ_RESP, 0, 0, 8},
	{"Send", false, RDMAP_SEND, DDP_QN_SEND, 0, 8},
	{"Send with Immediate", false, RDMAP_SEND_IMM, DDP_QN_SEND, 0, 0},
	{"Immediate Data", false, RDMAP_IMM, DDP_QN_SEND, 0, 8},
	{"Read Request", false, RDMAP_READ_REQ, DDP_QN_REQUEST, 0, 28},
	{"Atomic Request", false, RDMAP_ATOMIC_REQ, DDP_QN_REQUEST, 0, 52},
	{"Flush", false, RDMAP_EXT_REQ, DDP_QN_REQUEST, EXT_FLUSH, 24},
	{"Flush of everything", false, RDMAP_EXT_REQ, DDP_QN_REQUEST, EXT_FLUSH_ALL, 4},
	{"response", false, RDMAP_EXT_RESP, DDP_QN_RESPONSE, EXT_FLUSH, 8},
	{"ping", false, RDMAP_EXT_REQ, DDP_QN_CONTROL, EXT_HEARTBEAT, 16},
	{"pong", false, RDMAP_EXT_RESP, DDP_QN_CONTROL, EXT_HEARTBEAT, 16},
	{"HELLO as a response", false, RDMAP_EXT_RESP, DDP_QN_CONTROL, EXT_HELLO, 12},
	{"unknown kind", false, RDMAP_EXT_REQ, DDP_QN_CONTROL, 77, 12},
};

static void inject(struct qp_end *to, const struct first *f)
{
	struct ddp_hdr hdr = f->tagged ? hdr_tagged(f->opcode, t.mrb->ibv.rkey, t.mrb->iova, true)
				       : hdr_untagged(f->opcode, f->qn, 1, 0, true);
	uint8_t bytes[64] = {f->kind};

	end_inject_fpdu(to, &hdr, bytes, f->len);
}

static void anything_else_first_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
		uint8_t before[64];

		open_strangers();
		memcpy(before, t.mb, sizeof(before));
		assert_int_equal(end_recv(t.b, 7, t.mrb, 0, 64), 0);
		inject(t.b, &firsts[i]);
		if (!qp_is_failed(t.b->qp))
			fail_msg("%s is taken", firsts[i].what);
		expect_terminated(t.b, true, TERM_RDMAP_UNEXPECTED_OPCODE);
		expect_wc(&t.b->rcq, 7, IBV_WC_WR_FLUSH_ERR);
		assert_memory_equal(before, t.mb, sizeof(before));
		bench_close(&t);
	}
}

/* The peer may refuse this end's HELLO by a Terminate before it sends its own HELLO. */
static void a_terminate_may_come_instead(void **state)
{
	struct terminate term = terminate_of(TERM_RDMAP_STREAM_CATASTROPHIC);
	struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0, true);
	uint8_t bytes[TERM_MAX_LEN];
	int len = terminate_encode(bytes, sizeof(bytes), &term);

	open_strangers();
	end_inject_fpdu(t.a, &hdr, bytes, (size_t)len);
	expect_terminated(t.a, false, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);
}

static void a_second_one_is_refused(void **state)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 2, 0, true);
	struct ext_hello again = usual();
	uint8_t bytes[EXT_HELLO_LEN];

	open_bench();
	ext_hello_encode(bytes, sizeof(bytes), &again);
	end_inject_fpdu(t.b, &hdr, bytes, sizeof(bytes));
	expect_terminated(t.b, true, TERM_RDMAP_STREAM_CATASTROPHIC);
	bench_close(&t);
}

static void what_cannot_be_understood_is_refused(void **state)
{
#define VERSION "\x01\0\0\0\0\x01\0\x04\0\x02\0\0"
	static const struct {
		size_t len;
		unsigned error;
		const char *bytes;
	} cases[] = {
		{4, TERM_RDMAP_STREAM_CATASTROPHIC, "\x01\0\0\0"},
		{12, TERM_RDMAP_STREAM_CATASTROPHIC, "\x01\0\0\0\0\x01\0\x04\0\x01\0\0"},
		{13, TERM_RDMAP_STREAM_CATASTROPHIC, VERSION "x"},
		{16, TERM_RDMAP_STREAM_CATASTROPHIC, VERSION "\0\x10\xff\xff"},
		{20, TERM_RDMAP_STREAM_CATASTROPHIC, VERSION "\0\x04\0\x04\0\0\0\x80"},
		{20, TERM_RDMAP_STREAM_CATASTROPHIC, VERSION "\0\x01\0\x04\0\x02\0\0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);

		open_strangers();
		end_inject_fpdu(t.b, &hdr, cases[i].bytes, cases[i].len);
		expect_terminated(t.b, true, cases[i].error);
		assert_null(hello_at(t.b));
		bench_close(&t);
	}
}

static void a_longest_one_is_read_and_a_longer_one_refused(void **state)
{
	for (size_t more = 0; more < 2; more++) {
		struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);
		uint8_t bytes[EXT_MAX + 1] = VERSION "\0\x21\x03\xf0"; /* an item of 1008 bytes */

		open_strangers();
		end_inject_fpdu(t.b, &hdr, bytes, EXT_MAX + more);
		if (more)
			expect_terminated(t.b, true, TERM_DDP_TOO_LONG);
		else
			assert_non_null(hello_at(t.b));
		bench_close(&t);
	}
}

static void a_peer_without_consent_is_sent_none_and_may_send_none(void **state)
{
	struct pair_options o = pair_defaults();
	struct ext_hello hello = usual();

	o.stream.consent = false;
	bench_open(&t, &o, LEN);
	end_send_all(t.a);
	assert_int_equal(t.a->wire_len, 0);
	assert_null(hello_at(t.a));
	say(t.b, &hello);
	expect_terminated(t.b, true, TERM_DDP_BAD_QN);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_first_message_each_way_and_nothing_overtakes_it),
		cmocka_unit_test(each_end_learns_what_the_other_states),
		cmocka_unit_test(what_the_peer_does_not_name_cannot_be_posted),
		cmocka_unit_test(a_request_posted_before_the_hello_waits_for_it),
		cmocka_unit_test(a_request_posted_before_a_hello_that_does_not_name_it_fails),
		cmocka_unit_test(a_later_minor_version_is_understood),
		cmocka_unit_test(no_fpdu_is_larger_than_the_peer_takes),
		cmocka_unit_test(anything_else_first_is_refused),
		cmocka_unit_test(a_terminate_may_come_instead),
		cmocka_unit_test(a_second_one_is_refused),
		cmocka_unit_test(what_cannot_be_understood_is_refused),
		cmocka_unit_test(a_longest_one_is_read_and_a_longer_one_refused),
		cmocka_unit_test(a_peer_without_consent_is_sent_none_and_may_send_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
