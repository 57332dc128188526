/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In memory that can be made persistent, an aligned word of 8 bytes is placed as a whole: at every
 * moment, and so also after the connection has ended within a payload, the word has its old value
 * or its new value.
 */
#include <string.h>

#include "lib/qp_bench.h"
#include "lib/unit.h"

#define LEN 12288u
#define OLD 0x00
#define NEW 0xff

static const size_t chunks[] = {1, 3, 7, 8, 9, 1000, 1003, 4097, SIZE_MAX};

static void open_memory(struct bench *t)
{
	const struct pair_options o = pair_defaults();

	bench_open(t, &o, LEN);
	memset(t->ma, NEW, LEN);
	memset(t->mb, OLD, LEN);
}

static void check_words(const struct bench *t, size_t from, size_t to)
{
	static const uint64_t old_word = 0, new_word = UINT64_MAX;

	for (size_t at = (from + 7) & ~7ul; at + 8 <= to; at += 8)
		if (memcmp(t->mb + at, &old_word, 8) && memcmp(t->mb + at, &new_word, 8))
			fail_msg("the word at %zu is torn", at);
}

/* Pass the bytes of `a` to `b`, at most `chunk` in one step. Where the bytes cannot be taken in
 * place, they are received. */
static void take_in_steps(struct bench *t, size_t chunk, size_t from, size_t to)
{
	size_t got = 1;

	end_send_all(t->a);
	while (got > 0) {
		size_t n = chunk < t->a->wire_len ? chunk : t->a->wire_len;

		got = t->b->in_place && n ? end_take_in_place(t->b, n) : 0;
		if (!got)
			got = end_take(t->b, n);
		check_words(t, from, to);
	}
	assert_int_equal(t->a->wire_len, 0);
}

static void write_in_steps(size_t chunk, size_t from, size_t to, bool in_place)
{
	struct bench t;

	open_memory(&t);
	t.b->in_place = in_place;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, to - from, t.mrb, from), 0);
	take_in_steps(&t, chunk, from, to);
	assert_memory_equal(t.mb + from, t.ma, to - from);
	for (size_t i = 0; i < LEN; i++)
		assert_true((i >= from && i < to) || t.mb[i] == OLD);
	bench_close(&t);
}

static void a_word_is_never_half_placed(void **state)
{
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
		for (size_t shift = 0; shift < 8; shift += chunks[i] < 100 ? 7 : 1) {
			write_in_steps(chunks[i], shift, LEN, false);
			write_in_steps(chunks[i], shift, LEN - 3, true);
		}
}

/* The memory that a Read fills may be persistent, too. */
static void an_answer_is_placed_by_words_as_well(void **state)
{
	struct bench t;

	open_memory(&t);
	assert_int_equal(end_read(t.b, 1, t.mrb, 5, LEN - 5, t.mra, 0), 0);
	end_send_all(t.b);
	assert_true(end_take(t.a, SIZE_MAX) > 0);
	take_in_steps(&t, 1003, 5, LEN);
	expect_wc(&t.b->scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(t.mb + 5, t.ma, LEN - 5);
	bench_close(&t);
}

/* A part of a word waits in the buffer when the region is exchanged for one without a medium
 * (ibv_rereg_mr). The later bytes must not overtake this part. */
static void waiting_bytes_are_not_overtaken(void **state)
{
	struct bench t;

	open_memory(&t);
	assert_int_equal(end_write(t.a, 1, t.mra, 0, LEN, t.mrb, 0), 0);
	end_send_all(t.a);
	for (size_t left = 5003; left > 0;)
		left -= end_take(t.b, left);
	t.mrb->backing.durable = false;
	pair_run(&t.p);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(t.mb[i], NEW);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	bench_close(&t);
}

/* The end of the stream, also within a word, leaves whole words. */
static void the_end_of_the_stream_leaves_whole_words(void **state)
{
	for (size_t cut = 5000; cut < 5016; cut++) {
		struct bench t;

		open_memory(&t);
		assert_int_equal(end_write(t.a, 1, t.mra, 0, LEN, t.mrb, 0), 0);
		end_send_all(t.a);
		for (size_t left = cut; left > 0;)
			left -= end_take(t.b, left);
		qp_on_eof(t.b->qp);
		check_words(&t, 0, LEN);
		assert_int_equal(t.mb[4096], NEW);
		bench_close(&t);
	}
}

/* Memory without a medium needs no whole words, so its bytes are received straight into it. */
static void other_memory_gets_each_byte_at_once(void **state)
{
	struct bench t;

	open_memory(&t);
	t.mrb->backing.durable = false;
	assert_int_equal(end_write(t.a, 1, t.mra, 0, LEN, t.mrb, 0), 0);
	end_send_all(t.a);
	for (size_t left = 5003; left > 0;)
		left -= end_take(t.b, left);
	assert_int_equal(t.mb[5003 - 16 - 1], NEW);
	assert_int_equal(t.mb[5003 - 16], OLD);
	pair_run(&t.p);
	assert_true(qp_counters(t.b->qp)->rx_direct_bytes > 0);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_never_half_placed),
		cmocka_unit_test(an_answer_is_placed_by_words_as_well),
		cmocka_unit_test(waiting_bytes_are_not_overtaken),
		cmocka_unit_test(the_end_of_the_stream_leaves_whole_words),
		cmocka_unit_test(other_memory_gets_each_byte_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
