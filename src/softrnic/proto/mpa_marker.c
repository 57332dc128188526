/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/mpa_marker.h"

#include <errno.h>

#include "base/cursor.h"

/*
 * Number of bytes from stream position pos to the next marker. Returns 0 if a marker stands at pos.
 */
static size_t mpa_marker_distance(uint64_t pos)
{
	return (size_t)(-pos % MPA_MARKER_PERIOD);
}

unsigned mpa_marker_count(uint64_t pos, size_t fpdu_len)
{
	size_t gap = mpa_marker_distance(pos), between = MPA_MARKER_PERIOD - MPA_MARKER_LEN;

	/* A marker directly after the last byte belongs to the next FPDU and is not counted. */
	return fpdu_len <= gap ? 0 : (unsigned)((fpdu_len - gap + between - 1) / between);
}

/* Write one marker: 16 reserved bits, then the FPDUPTR. The FPDUPTR is the distance back to the
 * ULPDU_Length field, including earlier markers. It is zero in a marker directly before an FPDU. */
static void mpa_marker_put(uint8_t *marker, uint16_t fpduptr)
{
	struct wcursor c = wcursor_init(marker, MPA_MARKER_LEN);

	wcursor_be16(&c, 0);
	wcursor_be16(&c, fpduptr);
}

int mpa_marker_gather(uint64_t pos, const struct iovec *in, int n, uint8_t *markers,
		      struct iovec *out, int max)
{
	size_t gap = mpa_marker_distance(pos), done = 0; /* done: bytes since ULPDU_Length */
	int k = 0;

	for (int i = 0; i < n; i++) {
		uint8_t *p = in[i].iov_base;

		for (size_t left = in[i].iov_len; left;) {
			size_t part = left < gap ? left : gap;

			if (k == max)
				return -ENOSPC;
			if (part) {
				out[k++] = (struct iovec){.iov_base = p, .iov_len = part};
				p += part;
				left -= part;
				gap -= part;
				done += part;
				continue;
			}
			mpa_marker_put(markers, (uint16_t)done);
			out[k++] = (struct iovec){.iov_base = markers, .iov_len = MPA_MARKER_LEN};
			markers += MPA_MARKER_LEN;
			/* A marker before the FPDU is not part of the distance to ULPDU_Length. */
			done += done ? MPA_MARKER_LEN : 0;
			gap = MPA_MARKER_PERIOD - MPA_MARKER_LEN;
		}
	}
	return k;
}
