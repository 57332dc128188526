/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lib/unit.h"
#include "mirror/core/resync.h"

#define SIZE  (1ull << 20)
#define WORDS 4

static struct resync rs;
static uint64_t bits[WORDS], unsure[WORDS], wake;
static struct resync_piece piece;

static void begin(enum resync_mode mode, uint32_t piece_len)
{
	struct resync_config config = {
		.size = SIZE, .bits = bits, .unsure = unsure, .piece = piece_len};

	resync_init(&rs, mode, &config, 0);
}

static int setup(void **state)
{
	memset(bits, 0, sizeof(bits));
	memset(unsure, 0, sizeof(unsure));
	begin(RESYNC_CATCH_UP, RESYNC_PIECE_MAX);
	return 0;
}

static void mark(uint64_t offset, uint64_t len, bool is_unsure)
{
	struct mirror_range range = {offset, len};

	resync_mark(&rs, &range, 1, is_unsure);
}

static void expect_piece(enum resync_op op, uint64_t offset, uint32_t len, uint64_t blocks)
{
	assert_int_equal(resync_next(&rs, 0, &piece, &wake), RESYNC_HAS_PIECE);
	assert_int_equal(piece.op, op);
	assert_int_equal(piece.offset, offset);
	assert_int_equal(piece.len, len);
	assert_int_equal(piece.blocks, blocks);
}

static void test_a_range_of_bytes_becomes_its_blocks(void **state)
{
	mark(5000, 1, false);
	mark(3 * 4096, 4097, false);
	assert_int_equal(rs.remaining, 3);
	expect_piece(RESYNC_OP_COPY, 4096, 4 * 4096, 0xd);
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(rs.remaining, 0);
	assert_int_equal(resync_next(&rs, 0, &piece, &wake), RESYNC_MAY_JOIN);
}

static void test_a_file_that_ends_inside_a_word_is_not_exceeded(void **state)
{
	struct resync_config config = {.size = 70 * 4096, .bits = bits, .piece = RESYNC_PIECE_MIN};
	struct mirror_range all = {0, 70 * 4096}, compare = {69 * 4096, 4096};

	assert_int_equal(resync_words(70 * 4096), 2);
	resync_init(&rs, RESYNC_CATCH_UP, &config, 0);
	resync_mark(&rs, &all, 1, false);
	assert_int_equal(rs.remaining, 70);
	for (unsigned i = 0; i < 4; i++) {
		expect_piece(RESYNC_OP_COPY, i * 65536, 65536, 0xffff);
		resync_done(&rs, &piece, true, 0);
	}
	expect_piece(RESYNC_OP_COPY, 4 * 65536, 6 * 4096, 0x3f);
	resync_done(&rs, &piece, true, 0);
	begin(RESYNC_VERIFY, RESYNC_PIECE_MIN);
	rs.config.size = 70 * 4096;
	resync_mark(&rs, &compare, 1, false);
	expect_piece(RESYNC_OP_COMPARE, 4 * 65536, 6 * 4096, 0x20);
}

static void test_holes_that_are_not_marked_are_not_sent(void **state)
{
	uint64_t sent = 0;

	mark(0, 4096, false);
	mark(SIZE - 8192, 8192, false);
	while (resync_next(&rs, 0, &piece, &wake) == RESYNC_HAS_PIECE) {
		sent += (uint64_t)__builtin_popcountll(piece.blocks) * 4096;
		resync_done(&rs, &piece, true, 0);
	}
	assert_int_equal(sent, 3 * 4096);
}

static void test_equal_runs_cost_one_digest(void **state)
{
	mark(0, RESYNC_COMPARE, true);
	expect_piece(RESYNC_OP_COMPARE, 0, RESYNC_COMPARE, 0xffff);
	assert_false(resync_compared(&rs, &piece, 0, 0));
	assert_int_equal(rs.remaining, 0);
	assert_int_equal(rs.equal, 16);
	assert_int_equal(rs.copied, 0);
}

static void test_of_a_differing_run_only_differing_blocks_are_copied(void **state)
{
	mark(0, RESYNC_COMPARE, true);
	expect_piece(RESYNC_OP_COMPARE, 0, RESYNC_COMPARE, 0xffff);
	assert_true(resync_compared(&rs, &piece, 1, 0));
	assert_int_equal(piece.op, RESYNC_OP_COMPARE_BLOCKS);
	assert_true(resync_compared(&rs, &piece, 0x24, 0));
	assert_int_equal(piece.op, RESYNC_OP_COPY);
	assert_int_equal(piece.blocks, 0x24);
	assert_int_equal(rs.remaining, 2);
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(rs.remaining, 0);
	assert_int_equal(rs.equal, 14);
	assert_int_equal(rs.copied, 2);
}

static void test_what_is_known_to_differ_is_not_compared(void **state)
{
	mark(4096, 4096, false);
	mark(0, 4 * 4096, true);
	expect_piece(RESYNC_OP_COMPARE, 0, RESYNC_COMPARE, 0xd);
	expect_piece(RESYNC_OP_COPY, 4096, 4096, 1);
}

static void test_a_failed_piece_sets_its_bits_again(void **state)
{
	mark(0, 3 * 4096, false);
	resync_join(&rs, 0);
	expect_piece(RESYNC_OP_COPY, 0, 3 * 4096, 7);
	resync_done(&rs, &piece, false, 0);
	assert_int_equal(rs.remaining, 3);
	assert_int_equal(bits[0], 7);
	assert_int_equal(rs.failed, 1);
}

static void test_what_a_flush_touches_while_it_is_copied_is_copied_again(void **state)
{
	struct mirror_range flush = {4096 + 8, 8};

	mark(0, 3 * 4096, false);
	expect_piece(RESYNC_OP_COPY, 0, 3 * 4096, 7);
	resync_on_flush(&rs, &flush, 1);
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(bits[0], 2);
}

static void test_the_end_of_a_piece_of_a_lost_connection_is_ignored(void **state)
{
	struct resync_piece old;

	mark(0, 4096, false);
	expect_piece(RESYNC_OP_COPY, 0, 4096, 1);
	old = piece;
	resync_break(&rs, 0);
	resync_done(&rs, &old, true, 0);
	assert_int_equal(rs.remaining, 1);
	expect_piece(RESYNC_OP_COPY, 0, 4096, 1);
	resync_done(&rs, &old, true, 0);
	assert_int_equal(rs.remaining, 1);
	assert_int_equal(rs.in_flight, 1);
}

static void test_it_may_join_when_a_pass_leaves_most_of_what_it_found(void **state)
{
	struct mirror_range hot = {0, 7 * 4096};

	mark(0, 10 * 4096, false);
	expect_piece(RESYNC_OP_COPY, 0, 10 * 4096, 0x3ff);
	resync_on_flush(&rs, &hot, 1);
	resync_done(&rs, &piece, true, 0);
	/* 7 of 10 blocks differ again, so another pass begins. */
	expect_piece(RESYNC_OP_COPY, 0, 7 * 4096, 0x7f);
	assert_int_equal(rs.pass, 1);
	resync_on_flush(&rs, &hot, 1);
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(resync_next(&rs, 0, &piece, &wake), RESYNC_MAY_JOIN);
	resync_join(&rs, 0);
	resync_on_flush(&rs, &hot, 1);
	assert_int_equal(rs.remaining, 7);
	expect_piece(RESYNC_OP_COPY, 0, 7 * 4096, 0x7f);
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(resync_next(&rs, 0, &piece, &wake), RESYNC_ENDED);
}

static void test_a_joining_flush_and_a_piece_exclude_each_other(void **state)
{
	struct mirror_range flush = {4096, 16}, other = {SIZE / 2, 16};
	struct resync_hold hold = {.ranges = &flush, .count = 1},
			   far = {.ranges = &other, .count = 1};

	mark(0, 2 * 4096, false);
	resync_join(&rs, 0);
	expect_piece(RESYNC_OP_COPY, 0, 2 * 4096, 3);
	assert_true(resync_flush_enter(&rs, &far));
	resync_flush_leave(&rs, &far);
	assert_false(resync_flush_enter(&rs, &hold));
	resync_done(&rs, &piece, false, 0);
	/* The flush came first, so only the other block may be copied. */
	expect_piece(RESYNC_OP_COPY, 0, 4096, 1);
	assert_true(resync_flush_enter(&rs, &hold));
	resync_done(&rs, &piece, true, 0);
	assert_int_equal(resync_next(&rs, 0, &piece, &wake), RESYNC_WAITS);
	resync_flush_leave(&rs, &hold);
	expect_piece(RESYNC_OP_COPY, 4096, 4096, 1);
}

static void test_a_resync_goes_on_from_its_bitmap(void **state)
{
	mark(0, 4096, false);
	mark(SIZE / 2, 4096, false);
	expect_piece(RESYNC_OP_COPY, 0, 4096, 1);
	resync_done(&rs, &piece, true, 0);
	begin(RESYNC_CATCH_UP, RESYNC_PIECE_MIN);
	assert_int_equal(rs.remaining, 1);
	expect_piece(RESYNC_OP_COPY, SIZE / 2, 4096, 1);
}

/* Compare blocks, with these differences. Returns how many blocks were compared one by one; the
 * digests must not change the result. */
static unsigned verify(uint64_t differing, const struct mirror_range *flush, unsigned in_pass)
{
	unsigned compared = 0;

	begin(RESYNC_VERIFY, RESYNC_PIECE_MIN);
	mark(0, RESYNC_COMPARE, false);
	while (resync_next(&rs, 0, &piece, &wake) == RESYNC_HAS_PIECE) {
		assert_int_equal(piece.op, RESYNC_OP_COMPARE);
		if (!resync_compared(&rs, &piece, differing, 0))
			continue;
		assert_int_equal(piece.op, RESYNC_OP_COMPARE_BLOCKS);
		compared++;
		if (flush && rs.pass == in_pass)
			resync_on_flush(&rs, flush, 1);
		assert_false(resync_compared(&rs, &piece, differing & piece.blocks, 0));
	}
	return compared;
}

static void test_verify_leaves_the_bits_of_what_differs_three_times(void **state)
{
	struct mirror_range flush = {4096, 8};

	assert_int_equal(verify(0, NULL, 0), 0);
	assert_int_equal(rs.remaining, 0);
	assert_int_equal(verify(2, NULL, 0), 3);
	assert_int_equal(bits[0], 2);
	bits[0] = 0;
	assert_int_equal(verify(2, &flush, 2), 3);
	assert_int_equal(bits[0], 0);
}

static void test_the_slowest_of_several_members_leads(void **state)
{
	static struct resync other;
	static uint64_t other_bits[WORDS];
	struct resync_config config = {.size = SIZE, .bits = other_bits, .piece = RESYNC_PIECE_MAX};
	struct mirror_range both = {0, 4096}, ahead = {SIZE / 2, 4096};
	struct resync *list[2] = {&rs, &other};
	struct resync_piece pieces[2];
	enum resync_step steps[2];

	resync_init(&other, RESYNC_CATCH_UP, &config, 0);
	resync_mark(&other, &both, 1, false);
	resync_mark(&rs, &both, 1, false);
	resync_mark(&rs, &ahead, 1, false);
	assert_true(resync_next_of(list, 2, 0, pieces, steps, &wake));
	assert_int_equal(steps[0], RESYNC_HAS_PIECE);
	assert_int_equal(steps[1], RESYNC_HAS_PIECE);
	assert_int_equal(pieces[0].offset, 0);
	assert_int_equal(pieces[1].offset, 0);
	resync_done(&other, &pieces[1], true, 0);
	assert_true(resync_next_of(list, 2, 0, pieces, steps, &wake));
	assert_int_equal(steps[0], RESYNC_HAS_PIECE);
	assert_int_equal(pieces[0].offset, SIZE / 2);
	assert_int_equal(steps[1], RESYNC_MAY_JOIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_range_of_bytes_becomes_its_blocks, setup),
		cmocka_unit_test_setup(test_a_file_that_ends_inside_a_word_is_not_exceeded, setup),
		cmocka_unit_test_setup(test_holes_that_are_not_marked_are_not_sent, setup),
		cmocka_unit_test_setup(test_equal_runs_cost_one_digest, setup),
		cmocka_unit_test_setup(test_of_a_differing_run_only_differing_blocks_are_copied,
				       setup),
		cmocka_unit_test_setup(test_what_is_known_to_differ_is_not_compared, setup),
		cmocka_unit_test_setup(test_a_failed_piece_sets_its_bits_again, setup),
		cmocka_unit_test_setup(test_what_a_flush_touches_while_it_is_copied_is_copied_again,
				       setup),
		cmocka_unit_test_setup(test_the_end_of_a_piece_of_a_lost_connection_is_ignored,
				       setup),
		cmocka_unit_test_setup(test_it_may_join_when_a_pass_leaves_most_of_what_it_found,
				       setup),
		cmocka_unit_test_setup(test_a_joining_flush_and_a_piece_exclude_each_other, setup),
		cmocka_unit_test_setup(test_a_resync_goes_on_from_its_bitmap, setup),
		cmocka_unit_test_setup(test_verify_leaves_the_bits_of_what_differs_three_times,
				       setup),
		cmocka_unit_test_setup(test_the_slowest_of_several_members_leads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
