/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/mpa_scan.h"

#include <assert.h>

#include "softrnic/proto/mpa.h"
#include "softrnic/proto/mpa_marker.h"

static_assert(MPA_SCAN_HEAD_MAX == MPA_START_HDR, "a start-up frame's length is in its header");

size_t mpa_scan_head(const struct mpa_scan *s)
{
	return s->operational ? MPA_SCAN_FPDU_MIN : MPA_SCAN_HEAD_MAX;
}

static size_t mpa_scan_start_len(struct mpa_scan *s, const uint8_t *head)
{
	int len = mpa_start_decode_header(head);

	s->foreign = len < 0;
	s->operational = true;
	s->wants_markers = !s->foreign && mpa_start_wants_markers(head);
	return s->foreign ? 0 : (size_t)len;
}

static size_t mpa_scan_fpdu_len(struct mpa_scan *s, const uint8_t *head)
{
	const uint8_t *length = head;
	size_t len;

	if (s->markers && s->pos % MPA_MARKER_PERIOD == 0)
		length += MPA_MARKER_LEN;
	len = mpa_fpdu_len((size_t)length[0] << 8 | length[1]);
	if (s->markers)
		len += mpa_marker_count(s->pos, len) * (size_t)MPA_MARKER_LEN;
	s->pos += len;
	return len;
}

size_t mpa_scan(struct mpa_scan *s, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	size_t at = s->left < len ? s->left : len;

	s->left -= at;
	while (!s->foreign && len - at >= mpa_scan_head(s)) {
		size_t frame = s->operational ? mpa_scan_fpdu_len(s, p + at)
					      : mpa_scan_start_len(s, p + at);
		size_t here = frame < len - at ? frame : len - at;

		at += here;
		s->left = frame - here;
	}
	return s->foreign ? len : at;
}
