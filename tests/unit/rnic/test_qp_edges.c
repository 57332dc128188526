/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_qp_edges.c -- FPDUs at the limits of their headers, as the first FPDU and after another, in
 * one piece and byte by byte. A wrong FPDU is answered with the right Terminate, and the bytes
 * after it are ignored. A correct FPDU leaves the stream intact.
 */
#include <string.h>

#include "lib/header_edges.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"

#define LEN 4096

struct manner {
	bool crc, behind_another, in_pieces;
};

static void inject(struct bench *t, const uint8_t *bytes, size_t len, bool in_pieces)
{
	size_t piece = in_pieces ? 1 : len;

	for (size_t at = 0; at < len; at += piece)
		end_inject(t->b, bytes + at, piece);
}

static void write_word(struct bench *t, const char word[8])
{
	struct ddp_hdr hdr = hdr_tagged(RDMAP_WRITE, t->mrb->ibv.rkey, t->mrb->iova, true);

	end_inject_fpdu(t->b, &hdr, word, 8);
}

static void judge(struct bench *t, const struct header_edge *edge)
{
	if (!edge->error) {
		if (qp_is_failed(t->b->qp))
			fail_msg("refused: %s", edge->name);
		write_word(t, "goes on!");
		assert_memory_equal(t->mb, "goes on!", 8);
		return;
	}
	if (!qp_is_failed(t->b->qp))
		fail_msg("not refused: %s", edge->name);
	expect_terminated(t->b, true, edge->error);
	write_word(t, "goes on?");
	assert_memory_not_equal(t->mb, "goes on?", 8);
	pair_run(&t->p);
	expect_terminated(t->a, false, edge->error);
}

static void try(const struct header_edge *edge, const struct manner *how)
{
	struct pair_options o = pair_defaults();
	uint8_t fpdu[EDGE_FPDU_MAX], before[LEN];
	size_t len = header_edge_fpdu(edge, fpdu);
	struct bench t;

	o.stream.crc = how->crc;
	o.stream.consent = false;
	bench_open(&t, &o, LEN);
	if (how->behind_another)
		write_word(&t, "another.");
	memcpy(before, t.mb, LEN);
	inject(&t, fpdu, len, how->in_pieces);
	assert_memory_equal(t.mb, before, LEN);
	judge(&t, edge);
	bench_close(&t);
}

static void fpdus_at_the_edges_of_their_headers_are_judged_and_no_more(void **state)
{
	for (size_t i = 0; i < header_edges_count; i++)
		for (unsigned how = 0; how < 8; how++)
			try(&header_edges[i], &(struct manner){how & 1, how & 2, how & 4});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fpdus_at_the_edges_of_their_headers_are_judged_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
