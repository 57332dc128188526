/* SPDX-License-Identifier: BSD-3-Clause */
/* mpa_scan.h -- finds the beginnings of frames in one direction of a connection, for tracing. The
 * scan checks the start-up frame's key, and trusts the length fields. */
#ifndef TRACE_MPA_SCAN_H
#define TRACE_MPA_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_SCAN_HEAD_MAX 20 /* length of a start-up frame's head */
/* length of the shortest FPDU, so every FPDU has at least this many bytes */
#define MPA_SCAN_FPDU_MIN 8

struct mpa_scan {
	/* this direction has markers: the other direction's start-up frame requested them */
	bool markers;
	bool wants_markers; /* the start-up frame of this direction requests markers */
	bool operational;   /* the start-up frame has ended, and FPDUs follow */
	bool foreign;       /* the first bytes are not a start-up frame */
	/* stream position of the next FPDU, counted from the first FPDU; needed for markers */
	uint64_t pos;
	size_t left; /* number of bytes that the last frame still lacks */
};

/*
 * Scan the next bytes of the direction. Before the first call *s is all zero. If the bytes end
 * within the head of a frame (MPA_SCAN_HEAD_MAX or MPA_SCAN_FPDU_MIN bytes), the function scans
 * only the bytes before that head. Returns the number of scanned bytes. The caller must pass the
 * rest, fewer than MPA_SCAN_HEAD_MAX bytes, again with more bytes after them.
 */
size_t mpa_scan(struct mpa_scan *s, const void *bytes, size_t len);
/* Returns the length of the next frame's head. */
size_t mpa_scan_head(const struct mpa_scan *s);

#endif
