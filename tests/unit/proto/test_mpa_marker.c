/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/mpa.h"
#include "softrnic/proto/mpa_marker.h"

#define MARKERS_MAX 200

static size_t flatten(const struct iovec *iov, int n, uint8_t *out)
{
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		memcpy(out + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return len;
}

/* Write an FPDU with markers and CRC to `out`, which is at stream position pos. Returns the number
 * of bytes in `out`. */
static size_t send_fpdu(uint64_t pos, uint8_t *fpdu, size_t len, uint8_t *out)
{
	struct iovec in[] = {{fpdu, 20}, {fpdu + 20, len - 24}, {fpdu + len - 4, 4}};
	struct iovec gather[3 + 2 * MARKERS_MAX];
	uint8_t markers[MARKERS_MAX * MPA_MARKER_LEN];
	unsigned count = mpa_marker_count(pos, len);
	int n = mpa_marker_gather(pos, in, 3, markers, gather, (int)(3 + 2 * count));

	assert_true(n > 0);
	mpa_crc_encode(fpdu + len - 4, mpa_crc(gather, n, len + count * MPA_MARKER_LEN - 4));
	assert_int_equal(flatten(gather, n, out), len + count * MPA_MARKER_LEN);
	return len + count * MPA_MARKER_LEN;
}

/* RFC 5044 appendix A.3: a Send of 24 zero bytes after the marker that begins the stream. */
static void the_first_fpdu_of_rfc_5044_begins_with_a_marker(void **state)
{
	static const uint8_t wire[52] = {
		[4] = 0x00, 0x2a, 0x41, 0x43, [19] = 1, [48] = 0x52, 0x23, 0x99, 0x83};
	uint8_t fpdu[48] = {0x00, 0x2a, 0x41, 0x43, [15] = 1}, out[64];

	assert_int_equal(send_fpdu(0, fpdu, sizeof(fpdu), out), sizeof(wire));
	assert_memory_equal(out, wire, sizeof(wire));
}

/* The second FPDU of the example has the second marker 20 bytes after the FPDU's start. */
static void the_second_fpdu_of_rfc_5044_has_its_marker_inside(void **state)
{
	static const uint8_t wire[52] = {
		0x00, 0x2a, 0x41, 0x43, [15] = 2, [23] = 0x14, [48] = 0x84, 0x92, 0x58, 0x98};
	uint8_t fpdu[48] = {0x00, 0x2a, 0x41, 0x43, [15] = 2}, out[64];

	assert_int_equal(send_fpdu(512 - 20, fpdu, sizeof(fpdu), out), sizeof(wire));
	assert_memory_equal(out, wire, sizeof(wire));
}

/* Walk the stream as a receiver does: remove the marker at every 512th byte, and check each one. */
static void markers_stand_where_a_receiver_looks_for_them(void **state)
{
	static uint8_t stream[1 << 20], fpdu[70000];
	size_t pos = 0, starts[200], lens[200];
	unsigned n = 0;
	uint64_t seed = 7;

	while (pos < sizeof(stream) - 70000 && n < 200) {
		size_t ulpdu = 30 + test_random(&seed) % (n % 8 ? 700 : 60000);
		size_t len = mpa_fpdu_len(ulpdu);

		for (size_t i = 0; i < len; i++)
			fpdu[i] = (uint8_t)test_random(&seed);
		fpdu[0] = (uint8_t)(ulpdu >> 8);
		fpdu[1] = (uint8_t)ulpdu;
		starts[n] = pos;
		lens[n++] = len;
		pos += send_fpdu(pos, fpdu, len, stream + pos);
	}
	assert_true(n > 20);
	for (unsigned i = 0; i < n; i++) {
		size_t at = starts[i], first, got = 0;
		size_t end = i + 1 < n ? starts[i + 1] : pos;

		first = at % MPA_MARKER_PERIOD ? at : at + MPA_MARKER_LEN;
		for (; at < end; at++) {
			if (at % MPA_MARKER_PERIOD) {
				got++;
				continue;
			}
			assert_int_equal(stream[at] << 8 | stream[at + 1], 0);
			assert_int_equal(stream[at + 2] << 8 | stream[at + 3],
					 at < first ? 0 : at - first);
			at += MPA_MARKER_LEN - 1;
		}
		assert_int_equal(got, lens[i]);
		assert_int_equal(mpa_fpdu_len((size_t)(stream[first] << 8 | stream[first + 1])),
				 lens[i]);
	}
}

static void a_marker_behind_the_last_byte_is_the_next_fpdus(void **state)
{
	assert_int_equal(mpa_marker_count(0, 48), 1);
	assert_int_equal(mpa_marker_count(4, 508), 0);
	assert_int_equal(mpa_marker_count(4, 512), 1);
	assert_int_equal(mpa_marker_count(512, 508), 1);
	assert_int_equal(mpa_marker_count(512, 512), 2);
	assert_int_equal(mpa_marker_count(UINT64_C(1) << 40, 20), 1);
}

static void too_small_a_gather_list_is_refused(void **state)
{
	uint8_t fpdu[48] = {0}, markers[4];
	struct iovec in = {fpdu, sizeof(fpdu)}, out[3];

	assert_int_equal(mpa_marker_gather(492, &in, 1, markers, out, 3), 3);
	assert_int_equal(mpa_marker_gather(492, &in, 1, markers, out, 2), -ENOSPC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_fpdu_of_rfc_5044_begins_with_a_marker),
		cmocka_unit_test(the_second_fpdu_of_rfc_5044_has_its_marker_inside),
		cmocka_unit_test(markers_stand_where_a_receiver_looks_for_them),
		cmocka_unit_test(a_marker_behind_the_last_byte_is_the_next_fpdus),
		cmocka_unit_test(too_small_a_gather_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
