/* SPDX-License-Identifier: BSD-3-Clause */
/* mpa_scan.h -- finds the beginnings of frames in one direction of a connection, for tracing. Only
 * the start-up frame's key is checked; the length fields are not. */
#ifndef TRACE_MPA_SCAN_H
#define TRACE_MPA_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_SCAN_HEAD_MAX 20 /* length of a start-up frame's head */
#define MPA_SCAN_FPDU_MIN 8  /* length of the shortest FPDU, so every FPDU has this many bytes */

struct mpa_scan {
	bool markers;       /* here: the other direction has wants_markers */
	bool wants_markers; /* as in the start-up frame */
	bool operational;   /* the start-up frame has ended: FPDUs follow */
	bool foreign;       /* the first bytes were no start-up frame */
	uint64_t pos;       /* position of the next FPDU in full operation, for markers */
	size_t left;        /* missing bytes of the last frame */
};

/*
 * Scan the next bytes of the direction; *s is all zero at first. Returns the number of bytes that
 * do not belong to an incomplete head of a frame, which has MPA_SCAN_HEAD_MAX or MPA_SCAN_FPDU_MIN
 * bytes. The caller must pass the other bytes, less than MPA_SCAN_HEAD_MAX, again with more bytes
 * after them.
 */
size_t mpa_scan(struct mpa_scan *s, const void *bytes, size_t len);
/* Length of the next frame's head. */
size_t mpa_scan_head(const struct mpa_scan *s);

#endif
