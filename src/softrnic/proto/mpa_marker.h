/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpa_marker.h -- inserts markers into the output, for a peer that requests markers (RFC 5044
 * s4.3).
 *
 * A marker stands at every 512th byte of the stream. The count starts at the first byte after the
 * start-up, and markers are counted as well. This end never requests markers, so no function here
 * removes markers.
 */
#ifndef PROTO_MPA_MARKER_H
#define PROTO_MPA_MARKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define MPA_MARKER_LEN    4
#define MPA_MARKER_PERIOD 512

/*
 * Returns the number of markers in and directly before an FPDU of fpdu_len bytes (without markers)
 * that starts at stream position pos. With its markers the FPDU takes fpdu_len + count *
 * MPA_MARKER_LEN bytes of the stream.
 */
unsigned mpa_marker_count(uint64_t pos, size_t fpdu_len);

/*
 * Insert markers. The gather list `in` is one whole FPDU that starts at stream position pos (a
 * multiple of 4); its last entry is the CRC field. `out` receives the same bytes with the markers
 * between them. The caller provides memory for mpa_marker_count() markers in `markers`. Returns the
 * number of entries, at most n + 2 * mpa_marker_count(), or -ENOSPC. The caller then computes the
 * CRC over `out` without its last 4 bytes (RFC 5044 s4.4).
 */
int mpa_marker_gather(uint64_t pos, const struct iovec *in, int n, uint8_t *markers,
		      struct iovec *out, int max);

#endif
