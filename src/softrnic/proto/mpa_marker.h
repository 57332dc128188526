/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpa_marker.h -- markers in what we send, for a peer that asked for them (RFC 5044 s4.3).
 *
 * A marker stands at every 512th byte of the stream, counted from the first byte of full
 * operation and counting markers. We never ask for markers, so nothing here removes them.
 */
#ifndef PROTO_MPA_MARKER_H
#define PROTO_MPA_MARKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define MPA_MARKER_LEN    4
#define MPA_MARKER_PERIOD 512

/* Markers in and directly before an FPDU of fpdu_len bytes (without them) that starts at stream
 * position pos. The FPDU then takes fpdu_len + count * MPA_MARKER_LEN bytes of the stream. */
unsigned mpa_marker_count(uint64_t pos, size_t fpdu_len);

/*
 * The gather list `in` is one whole FPDU that starts at stream position pos (a multiple of 4),
 * its last entry being the CRC field. `out` gets the same bytes with markers between; `markers`
 * has room for mpa_marker_count() of them. Returns the number of entries, at most
 * n + 2 * mpa_marker_count(), or -ENOSPC. The CRC is the caller's: over `out`, without its last
 * 4 bytes (RFC 5044 s4.4).
 */
int mpa_marker_gather(uint64_t pos, const struct iovec *in, int n, uint8_t *markers,
		      struct iovec *out, int max);

#endif
