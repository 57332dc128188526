/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_qp_terminates.c -- Terminates for other reasons than a broken rule of DDP or RDMAP:
 * malformed FPDUs, and a lack of memory. doc/security.md lists all Terminates.
 */
#include <stdbool.h>
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN 4096

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool exhausted;

void *__wrap_malloc(size_t size)
{
	return exhausted ? NULL : __real_malloc(size);
}

static void expect_told(struct bench *t, unsigned error)
{
	expect_terminated(t->b, true, error);
	pair_run(&t->p);
	expect_terminated(t->a, false, error);
	bench_close(t);
}

/* The ULPDU is shorter than the header that its first bit announces. */
static void an_fpdu_shorter_than_its_header_is_refused(void **state)
{
	uint8_t fpdu[64];

	for (uint8_t len = 0; len < DDP_UNTAGGED_HDR; len++) {
		struct pair_options o = pair_defaults();
		struct bench t;

		bench_open(&t, &o, LEN);
		memset(fpdu, 0, sizeof(fpdu));
		fpdu[1] = len;
		fpdu[2] = len < DDP_TAGGED_HDR ? 0xc1 : 0x41;
		end_inject(t.b, fpdu, mpa_fpdu_len(len));
		expect_told(&t, TERM_MPA_MARKER);
	}
}

static void more_early_bytes_than_a_buffer_holds_are_refused(void **state)
{
	static const uint8_t bytes[QP_RXBUF + 1];
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	qp_rx_push(t.b->qp, bytes, sizeof(bytes));
	expect_told(&t, TERM_MPA_LOCAL_CATASTROPHIC);
}

static void without_memory_early_bytes_are_refused(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	exhausted = true;
	qp_rx_push(t.b->qp, "x", 1);
	exhausted = false;
	expect_told(&t, TERM_MPA_LOCAL_CATASTROPHIC);
}

/* The message finds no receive, and there is no memory to park it. */
static void without_memory_a_message_cannot_be_parked(void **state)
{
	struct pair_options o = pair_defaults();
	struct bench t;

	bench_open(&t, &o, LEN);
	assert_int_equal(end_send(t.a, 1, t.mra, 0, 64), 0);
	end_send_all(t.a);
	exhausted = true;
	end_take(t.b, SIZE_MAX);
	exhausted = false;
	expect_told(&t, TERM_DDP_LOCAL_CATASTROPHIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_fpdu_shorter_than_its_header_is_refused),
		cmocka_unit_test(more_early_bytes_than_a_buffer_holds_are_refused),
		cmocka_unit_test(without_memory_early_bytes_are_refused),
		cmocka_unit_test(without_memory_a_message_cannot_be_parked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
