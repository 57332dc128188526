/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * header_edges.h -- FPDUs whose header is wrong, one byte too short, or all there is. Each of them
 * has crashed, or could have crashed, an iWARP implementation (doc/wire.md, section 10).
 * Independent of the peer: no STag in them has to exist.
 */
#ifndef TEST_HEADER_EDGES_H
#define TEST_HEADER_EDGES_H

#include <stddef.h>
#include <stdint.h>

#define EDGE_ULPDU_MAX 46
#define EDGE_FPDU_MAX  64

struct header_edge {
	const char *name;
	unsigned len;   /* of the ULPDU: the length in its MPA header, and the bytes that follow */
	unsigned error; /* TERM_* that answers it; 0: nothing is wrong with it */
	uint8_t ulpdu[EDGE_ULPDU_MAX];
};

extern const struct header_edge header_edges[];
extern const size_t header_edges_count;

/* All of it, with padding and a correct CRC; returns its length. */
size_t header_edge_fpdu(const struct header_edge *edge, uint8_t fpdu[EDGE_FPDU_MAX]);

#endif
