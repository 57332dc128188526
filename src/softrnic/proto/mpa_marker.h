/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpa_marker.h -- markers in our output, for a peer that requests them (RFC 5044 s4.3).
 *
 * A marker stands at every 512th byte of the stream, counted from the first byte of full operation
 * and counting markers. We never request markers, so no function here removes them.
 */
#ifndef PROTO_MPA_MARKER_H
#define PROTO_MPA_MARKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define MPA_MARKER_LEN    4
#define MPA_MARKER_PERIOD 512

/*
 * Number of markers in and directly before an FPDU of fpdu_len bytes (without markers) that starts
 * at stream position pos. The FPDU then takes fpdu_len + count * MPA_MARKER_LEN bytes of the
 * stream.
 */
unsigned mpa_marker_count(uint64_t pos, size_t fpdu_len);

/*
 * Insert markers. The gather list `in` is one whole FPDU that starts at stream position pos (a
 * multiple of 4); its last entry is the CRC field. `out` receives the same bytes with the markers
 * between them; `markers` has room for mpa_marker_count() of them. Returns the number of entries,
 * at most n + 2 * mpa_marker_count(), or -ENOSPC. The caller sets the CRC over `out`, without its
 * last 4 bytes (RFC 5044 s4.4).
 */
int mpa_marker_gather(uint64_t pos, const struct iovec *in, int n, uint8_t *markers,
		      struct iovec *out, int max);

#endif
