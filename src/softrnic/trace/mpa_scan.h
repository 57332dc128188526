/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpa_scan.h -- finds where the frames of one direction of a connection begin, for tracing. Only
 * the start-up frame's key is checked; the length fields are taken as they are.
 */
#ifndef TRACE_MPA_SCAN_H
#define TRACE_MPA_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_SCAN_HEAD_MAX 20 /* of a start-up frame */
#define MPA_SCAN_FPDU_MIN 8  /* the shortest FPDU, so there are always as many */

struct mpa_scan {
	bool markers;       /* in this direction: the other one's scan has seen wants_markers */
	bool wants_markers; /* as the start-up frame gives it */
	bool operational;   /* it is over: FPDUs follow */
	bool foreign;       /* it was none */
	uint64_t pos;       /* of the next FPDU in full operation, for markers */
	size_t left;        /* bytes of the last frame that are still to come */
};

/*
 * The next bytes of the direction, all zero before the first. Returns how many of them do not end
 * within the head of a frame: its first MPA_SCAN_HEAD_MAX or MPA_SCAN_FPDU_MIN bytes. The others,
 * less than MPA_SCAN_HEAD_MAX, must come again, with more behind them.
 */
size_t mpa_scan(struct mpa_scan *s, const void *bytes, size_t len);
/* How long the next frame's head is. */
size_t mpa_scan_head(const struct mpa_scan *s);

#endif
