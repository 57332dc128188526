/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that breaks a rule is answered by the right Terminate, and none of its bytes is placed.
 * Some messages here break no rule.
 */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

/* The memory that a tagged segment addresses. */
enum target { NOBODY, MINE, OTHER_PD, READONLY };

struct offence {
	const char *what;
	unsigned error;
	bool tagged;
	unsigned opcode;
	enum target target; /* of tagged segments; `to` is an offset in the target */
	uint64_t to;
	uint32_t qn, msn, mo;
	size_t len;
	uint8_t ddp, rdmap; /* versions, if they are not 1 */
	bool consent;
	uint8_t kind; /* the kind, if this is an extension message */
};

#define TAGGED(op, where, offset)  .tagged = true, .opcode = (op), .target = (where), .to = (offset)
#define UNTAGGED(op, q, n, offset) .opcode = (op), .qn = (q), .msn = (n), .mo = (offset)

static const struct offence offences[] = {
	{"STag", TERM_DDP_INVALID_STAG, TAGGED(0, NOBODY, 0), .len = 8},
	{"PD", TERM_DDP_STAG_NOT_ASSOCIATED, TAGGED(0, OTHER_PD, 0), .len = 8},
	{"rights", TERM_RDMAP_ACCESS, TAGGED(0, READONLY, 0), .len = 8},
	{"below", TERM_DDP_BASE_BOUNDS, TAGGED(0, MINE, (uint64_t)-1), .len = 8},
	{"above", TERM_DDP_BASE_BOUNDS, TAGGED(0, MINE, 4089), .len = 8},
	{"far above", TERM_DDP_BASE_BOUNDS, TAGGED(0, MINE, 1ull << 62), .len = 8},
	{"wrap", TERM_DDP_TO_WRAP, TAGGED(0, MINE, UINT64_MAX), .len = 8},
	{"DDP version, tagged", TERM_DDP_TAGGED_BAD_VERSION, TAGGED(0, MINE, 0), .len = 8,
	 .ddp = 2},
	{"DDP version, untagged", TERM_DDP_UNTAGGED_BAD_VERSION, UNTAGGED(3, 0, 1, 0), .ddp = 3},
	{"RDMAP version", TERM_RDMAP_BAD_VERSION, UNTAGGED(3, 0, 1, 0), .rdmap = 2},
	{"QN", TERM_DDP_BAD_QN, UNTAGGED(3, 5, 1, 0)},
	{"QN that is none, MSN 0", TERM_DDP_BAD_QN, UNTAGGED(3, DDP_QN_COUNT, 0, 0), .len = 8},
	{"QN of another opcode", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(3, 1, 1, 0)},
	{"tagged Send", TERM_RDMAP_UNEXPECTED_OPCODE, TAGGED(3, MINE, 0), .len = 8},
	{"untagged Write", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0, 0, 1, 0), .len = 8},
	{"Flush without consent", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 1, 1, 0), .len = 24},
	{"Immediate without consent", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(8, 0, 1, 0), .len = 8},
	{"Atomic without consent", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xa, 1, 1, 0), .len = 52},
	{"Send with Immediate without consent", TERM_RDMAP_UNEXPECTED_OPCODE,
	 UNTAGGED(0xe, 0, 1, 0), .len = 8},
	{"Send, MSN 0", TERM_DDP_BAD_MSN, UNTAGGED(3, 0, 0, 0), .len = 8},
	{"Send, MSN 2", TERM_DDP_BAD_MSN, UNTAGGED(3, 0, 2, 0), .len = 8},
	{"Read, MSN 2", TERM_DDP_BAD_MSN, UNTAGGED(1, 1, 2, 0), .len = 28},
	{"Terminate, MSN 2", TERM_DDP_BAD_MSN, UNTAGGED(7, 2, 2, 0), .len = 4},
	{"Send, MO", TERM_DDP_BAD_MO, UNTAGGED(3, 0, 1, 8), .len = 8},
	{"Read, MO", TERM_DDP_BAD_MO, UNTAGGED(1, 1, 1, 8), .len = 20},
	{"answer to nothing", TERM_RDMAP_UNEXPECTED_OPCODE, TAGGED(2, MINE, 0), .len = 8},
	{"short Read Request", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(1, 1, 1, 0), .len = 20},
	{"longer than its receive", TERM_DDP_TOO_LONG, UNTAGGED(3, 0, 1, 0), .len = 9},
	{"unassigned opcode", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xf, 4, 2, 0), .len = 16,
	 .consent = true},
	{"Flush answer to nothing", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xd, 3, 1, 0), .len = 8,
	 .consent = true, .kind = EXT_FLUSH},
	{"request of kind 0", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 1, 1, 0), .len = 24,
	 .consent = true},
	{"request of the first unknown kind", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 1, 1, 0),
	 .len = 24, .consent = true, .kind = EXT_KINDS},
	{"request of kind 255", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 1, 1, 0), .len = 4,
	 .consent = true, .kind = 255},
	{"HELLO as a request", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 1, 1, 0), .len = 40,
	 .consent = true, .kind = EXT_HELLO},
	{"answer of kind 0", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xd, 3, 1, 0), .len = 8,
	 .consent = true},
	{"short Flush", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xc, 1, 1, 0), .len = 20,
	 .consent = true, .kind = EXT_FLUSH},
	{"long Flush", TERM_DDP_TOO_LONG, UNTAGGED(0xc, 1, 1, 0), .len = 28, .consent = true,
	 .kind = EXT_FLUSH},
	{"long Flush of everything", TERM_DDP_TOO_LONG, UNTAGGED(0xc, 1, 1, 0), .len = 24,
	 .consent = true, .kind = EXT_FLUSH_ALL},
	{"short Atomic Write", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xc, 1, 1, 0), .len = 16,
	 .consent = true, .kind = EXT_ATOMIC_WRITE},
	{"half a word", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xc, 1, 1, 0), .len = 2,
	 .consent = true, .kind = EXT_FLUSH_ALL},
	{"Flush, MSN 2", TERM_DDP_BAD_MSN, UNTAGGED(0xc, 1, 2, 0), .len = 24, .consent = true,
	 .kind = EXT_FLUSH},
	{"Flush on the queue of answers", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xc, 3, 1, 0),
	 .len = 24, .consent = true, .kind = EXT_FLUSH},
	{"short heartbeat", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xc, 4, 2, 0), .len = 12,
	 .consent = true, .kind = EXT_HEARTBEAT},
	{"heartbeat, MSN 1", TERM_DDP_BAD_MSN, UNTAGGED(0xc, 4, 1, 0), .len = 16, .consent = true,
	 .kind = EXT_HEARTBEAT},
	{"second HELLO", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xc, 4, 2, 0), .len = 40,
	 .consent = true, .kind = EXT_HELLO},
	{"Atomic answer to nothing", TERM_RDMAP_UNEXPECTED_OPCODE, UNTAGGED(0xb, 3, 1, 0),
	 .len = 12, .consent = true},
	{"short Immediate", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(8, 0, 1, 0), .len = 4,
	 .consent = true},
	{"Immediate, MSN 2", TERM_DDP_BAD_MSN, UNTAGGED(8, 0, 2, 0), .len = 8, .consent = true},
	{"short Atomic", TERM_RDMAP_STREAM_CATASTROPHIC, UNTAGGED(0xa, 1, 1, 0), .len = 44,
	 .consent = true},
};

static struct ddp_hdr hdr_of(const struct offence *f, uint32_t stag, uint64_t start)
{
	struct ddp_hdr hdr = f->tagged ? hdr_tagged(f->opcode, stag, start + f->to, true)
				       : hdr_untagged(f->opcode, f->qn, f->msn, f->mo, true);

	if (f->to == UINT64_MAX && f->error == TERM_DDP_TO_WRAP)
		hdr.to = f->to;
	if (f->ddp)
		hdr.version = f->ddp & 3;
	if (f->rdmap)
		hdr.ulp = (uint8_t)(f->rdmap << 6 | (hdr.ulp & 0xf));
	return hdr;
}

static enum ibv_event_type event_of(unsigned error)
{
	bool access = error >> 8 == 0x01 || error >> 8 == 0x11;

	return access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR;
}

static void commit(const struct offence *f, struct bench *t, uint32_t stag)
{
	struct ddp_hdr hdr = hdr_of(f, stag, t->mrb->iova);
	uint8_t payload[64] = {f->kind};

	end_inject_fpdu(t->b, &hdr, payload, f->len);
	if (!qp_is_failed(t->b->qp))
		fail_msg("not refused: %s", f->what);
	expect_terminated(t->b, true, f->error);
	assert_int_equal(t->b->asyncs, 1);
	assert_int_equal(t->b->async, event_of(f->error));
	pair_run(&t->p);
	expect_terminated(t->a, false, f->error);
	assert_true(qp_tx_is_done(t->b->qp));
	assert_int_equal(qp_counters(t->b->qp)->terminates_out, 1);
	assert_int_equal(qp_counters(t->a->qp)->terminates_in, 1);
}

static void try(const struct offence *f)
{
	struct pair_options o = pair_defaults();
	struct ibv_pd pd = {0};
	struct mr *other, *readonly;
	uint8_t before[4096];
	struct bench t;

	o.stream.consent = f->consent;
	bench_open(&t, &o, sizeof(before));
	memcpy(before, t.mb, sizeof(before));
	assert_int_equal(
		mr_new(t.b->mrs, &pd, t.mb, sizeof(before), t.mrb->iova, REMOTE_ALL, NULL, &other),
		0);
	readonly = end_reg(t.b, t.mb, sizeof(before), IBV_ACCESS_REMOTE_READ);
	const uint32_t stags[] = {
		[NOBODY] = t.mrb->ibv.rkey ^ 0x5555,
		[MINE] = t.mrb->ibv.rkey,
		[OTHER_PD] = other->ibv.rkey,
		[READONLY] = readonly->ibv.rkey,
	};
	assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 8), 0);
	commit(f, &t, stags[f->target]);
	assert_memory_equal(t.mb, before, sizeof(before));
	bench_dereg(t.b, &other);
	bench_dereg(t.b, &readonly);
	bench_close(&t);
}

static void every_broken_rule_has_its_terminate(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(offences); i++)
		try(&offences[i]);
}

static void a_continued_write_must_go_on_where_it_was(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	for (int right = 0; right < 2; right++) {
		struct ddp_hdr first, second;

		bench_open(&t, &o, 4096);
		first = hdr_tagged(RDMAP_WRITE, t.mrb->ibv.rkey, t.mrb->iova, false);
		second = hdr_tagged(RDMAP_WRITE, t.mrb->ibv.rkey, t.mrb->iova + (right ? 8 : 16),
				    true);
		end_inject_fpdu(t.b, &first, "AAAAAAAA", 8);
		end_inject_fpdu(t.b, &second, "BBBBBBBB", 8);
		if (right)
			assert_memory_equal(t.mb, "AAAAAAAABBBBBBBB", 16);
		else
			expect_terminated(t.b, true, TERM_DDP_BASE_BOUNDS);
		bench_close(&t);
	}
}

static void a_continued_send_must_go_on_where_it_was(void **state)
{
	static const struct {
		unsigned opcode, msn, mo, error;
	} cases[] = {{RDMAP_SEND, 1, 16, TERM_DDP_BAD_MO},
		     {RDMAP_SEND, 2, 0, TERM_DDP_BAD_MSN},
		     {RDMAP_SEND_SE, 1, 8, TERM_RDMAP_UNEXPECTED_OPCODE}};
	struct pair_options o = pair_defaults();
	struct bench t;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ddp_hdr first = hdr_untagged(RDMAP_SEND, 0, 1, 0, false);
		struct ddp_hdr second =
			hdr_untagged(cases[i].opcode, 0, cases[i].msn, cases[i].mo, true);

		bench_open(&t, &o, 4096);
		assert_int_equal(end_recv(t.b, 1, t.mrb, 0, 4096), 0);
		end_inject_fpdu(t.b, &first, "AAAAAAAA", 8);
		end_inject_fpdu(t.b, &second, "BBBBBBBB", 8);
		expect_terminated(t.b, true, cases[i].error);
		expect_wc(&t.b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
		bench_close(&t);
	}
}

static void messages_of_different_classes_may_interleave(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr;
	struct bench t;

	bench_open(&t, &o, 4096);
	assert_int_equal(end_recv(t.b, 1, t.mrb, 100, 100), 0);
	assert_int_equal(end_read(t.b, 2, t.mrb, 200, 16, t.mra, 0), 0);
	end_send_all(t.b);
	for (unsigned half = 0; half < 2; half++) {
		hdr = hdr_tagged(RDMAP_WRITE, t.mrb->ibv.rkey, t.mrb->iova + 8 * half, half);
		end_inject_fpdu(t.b, &hdr, "WRITE...", 8);
		hdr = hdr_untagged(RDMAP_SEND, 0, 1, 8 * half, half);
		end_inject_fpdu(t.b, &hdr, "SEND....", 8);
		hdr = hdr_tagged(RDMAP_READ_RESP, t.mrb->ibv.rkey, t.mrb->iova + 200 + 8 * half,
				 half);
		end_inject_fpdu(t.b, &hdr, "READ....", 8);
	}
	assert_memory_equal(t.mb, "WRITE...WRITE...", 16);
	assert_memory_equal(t.mb + 100, "SEND....SEND....", 16);
	assert_memory_equal(t.mb + 200, "READ....READ....", 16);
	expect_wc(&t.b->rcq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.b->scq, 2, IBV_WC_SUCCESS);
	bench_close(&t);
}

static void a_read_response_must_be_the_one_asked_for(void **state)
{
	static const struct {
		unsigned stag, to, len, last, error;
	} cases[] = {{1, 0, 16, true, TERM_DDP_INVALID_STAG},
		     {0, 8, 16, true, TERM_DDP_BASE_BOUNDS},
		     {0, 0, 8, true, TERM_DDP_BASE_BOUNDS},
		     {0, 0, 24, true, TERM_DDP_BASE_BOUNDS},
		     {0, 0, 24, false, TERM_DDP_BASE_BOUNDS}};
	static const uint8_t payload[24];
	struct pair_options o = pair_defaults();
	struct bench t;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ddp_hdr hdr;

		bench_open(&t, &o, 4096);
		assert_int_equal(end_read(t.b, 1, t.mrb, 64, 16, t.mra, 0), 0);
		end_send_all(t.b);
		hdr = hdr_tagged(RDMAP_READ_RESP, t.mrb->ibv.rkey + cases[i].stag,
				 t.mrb->iova + 64 + cases[i].to, cases[i].last);
		end_inject_fpdu(t.b, &hdr, payload, cases[i].len);
		expect_terminated(t.b, true, cases[i].error);
		expect_wc(&t.b->scq, 1, IBV_WC_WR_FLUSH_ERR);
		bench_close(&t);
	}
}

static void an_empty_write_is_not_checked(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr = hdr_tagged(RDMAP_WRITE, 0, UINT64_MAX, true);
	struct bench t;

	bench_open(&t, &o, 4096);
	end_inject_fpdu(t.b, &hdr, NULL, 0);
	assert_false(qp_is_failed(t.b->qp));
	assert_int_equal(qp_counters(t.b->qp)->writes_in, 1);
	bench_close(&t);
}

static void nothing_is_looked_at_after_a_failure(void **state)
{
	struct pair_options o = pair_defaults();
	struct ddp_hdr hdr;
	uint8_t before[16];
	struct bench t;

	bench_open(&t, &o, 4096);
	memcpy(before, t.mb, sizeof(before));
	hdr = hdr_untagged(RDMAP_SEND, 0, 7, 0, true);
	end_inject_fpdu(t.b, &hdr, NULL, 0);
	hdr = hdr_tagged(RDMAP_WRITE, t.mrb->ibv.rkey, t.mrb->iova, true);
	/* the QP takes these bytes, so that the LLP can close in good order */
	end_inject_fpdu(t.b, &hdr, "AAAAAAAA", 8);
	assert_memory_equal(t.mb, before, sizeof(before));
	expect_terminated(t.b, true, TERM_DDP_BAD_MSN);
	assert_int_equal(t.b->asyncs, 1);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_broken_rule_has_its_terminate),
		cmocka_unit_test(a_continued_write_must_go_on_where_it_was),
		cmocka_unit_test(a_continued_send_must_go_on_where_it_was),
		cmocka_unit_test(messages_of_different_classes_may_interleave),
		cmocka_unit_test(a_read_response_must_be_the_one_asked_for),
		cmocka_unit_test(an_empty_write_is_not_checked),
		cmocka_unit_test(nothing_is_looked_at_after_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
