/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpa_scan.c -- an observer finds where each frame begins, however the bytes are cut.
 */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/proto/mpa.h"
#include "softrnic/proto/mpa_marker.h"
#include "softrnic/trace/mpa_scan.h"

#define STREAM_MAX 400000
#define FRAMES_MAX 4000

static struct {
	uint8_t bytes[STREAM_MAX];
	size_t len;
	size_t begin[FRAMES_MAX + 1]; /* the last entry is where a further frame would begin */
	unsigned frames;
} stream;
static uint64_t seed = 20261121;

static void begin_stream(bool wants_markers, size_t pd_len)
{
	static const uint8_t pdata[MPA_PD_MAX];
	struct mpa_start start = {
		.markers = wants_markers, .revision = 1, .pd_len = (uint16_t)pd_len};
	int n = mpa_start_encode(stream.bytes, MPA_START_MAX, &start, pdata);

	assert_true(n > 0);
	stream.begin[0] = 0;
	stream.begin[1] = stream.len = (size_t)n;
	stream.frames = 1;
}

/* Add an FPDU of random bytes; with markers if the stream has them. */
static void add_fpdu(size_t ulpdu_len, bool markers)
{
	uint64_t pos = stream.len - stream.begin[1];
	size_t len = mpa_fpdu_len(ulpdu_len), n = markers ? mpa_marker_count(pos, len) : 0;
	size_t length_at = n && pos % MPA_MARKER_PERIOD == 0 ? MPA_MARKER_LEN : 0;
	uint8_t *p = stream.bytes + stream.len;

	len += n * MPA_MARKER_LEN;
	assert_true(stream.len + len <= STREAM_MAX && stream.frames < FRAMES_MAX);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)test_random(&seed);
	p[length_at] = (uint8_t)(ulpdu_len >> 8);
	p[length_at + 1] = (uint8_t)ulpdu_len;
	stream.len += len;
	stream.begin[++stream.frames] = stream.len;
}

static void make_stream(bool markers)
{
	begin_stream(false, test_random(&seed) % (MPA_PD_MAX + 1));
	while (stream.len < STREAM_MAX - 70000) {
		uint64_t dice = test_random(&seed);

		add_fpdu(dice % 50 ? dice / 50 % 600 : dice / 50 % 65536, markers);
	}
}

static void expect_no_cut_in_a_head(size_t at)
{
	static unsigned i; /* calls for one walk must come in the order of the cuts */

	if (at < stream.begin[i])
		i = 0;
	while (i < stream.frames && stream.begin[i + 1] <= at)
		i++;
	if (at > stream.begin[i] && i < stream.frames)
		assert_true(at - stream.begin[i] >= (i ? MPA_SCAN_FPDU_MIN : MPA_SCAN_HEAD_MAX));
}

/* Scan in pieces of at most this many bytes; the scanner gets undecided bytes again. */
static void walk(struct mpa_scan *s, size_t piece_max)
{
	size_t said = 0, come = 0;

	while (come < stream.len) {
		size_t piece = 1 + test_random(&seed) % piece_max, n;

		come += piece < stream.len - come ? piece : stream.len - come;
		n = mpa_scan(s, stream.bytes + said, come - said);
		assert_true(n <= come - said);
		said += n;
		assert_true(come - said < MPA_SCAN_HEAD_MAX);
		expect_no_cut_in_a_head(said);
	}
	assert_int_equal(said, stream.len);
	assert_int_equal(s->left, 0);
	assert_true(s->operational && !s->foreign);
}

static void no_piece_ends_within_a_head(void **state)
{
	static const size_t piece_max[] = {1, 3, 30, 1000, 70000};

	for (int markers = 0; markers < 2; markers++)
		for (size_t i = 0; i < ARRAY_LEN(piece_max); i++) {
			struct mpa_scan s = {.markers = markers};

			make_stream(markers);
			walk(&s, piece_max[i]);
		}
}

static void nothing_else_is_kept(void **state)
{
	struct mpa_scan s = {0};

	begin_stream(false, 10);
	add_fpdu(100, false);
	assert_int_equal(mpa_scan(&s, stream.bytes, 19), 0);
	assert_int_equal(mpa_scan(&s, stream.bytes, 20), 20);
	assert_int_equal(mpa_scan(&s, stream.bytes + 20, 10 + 7), 10);
	assert_int_equal(mpa_scan(&s, stream.bytes + 30, 8), 8);
	assert_int_equal(mpa_scan(&s, stream.bytes + 38, 1), 1);
	assert_int_equal(mpa_scan(&s, stream.bytes + 39, stream.len - 39), stream.len - 39);
}

static void a_request_for_markers_is_seen(void **state)
{
	for (int asked = 0; asked < 2; asked++) {
		struct mpa_scan s = {0};

		begin_stream(asked, 0);
		assert_int_equal(mpa_scan(&s, stream.bytes, stream.len), stream.len);
		assert_int_equal(s.wants_markers, asked);
	}
}

static void what_is_no_start_up_is_left_alone(void **state)
{
	uint8_t bytes[64] = "GET / HTTP/1.1 and so on";
	struct mpa_scan s = {0};

	assert_int_equal(mpa_scan(&s, bytes, 19), 0);
	assert_int_equal(mpa_scan(&s, bytes, 21), 21);
	for (size_t n = 1; n < sizeof(bytes); n++)
		assert_int_equal(mpa_scan(&s, bytes, n), n);
	assert_true(s.foreign && !s.wants_markers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_piece_ends_within_a_head),
		cmocka_unit_test(nothing_else_is_kept),
		cmocka_unit_test(a_request_for_markers_is_seen),
		cmocka_unit_test(what_is_no_start_up_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
