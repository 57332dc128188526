/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * header_edges.h -- FPDUs whose header is wrong, is one byte too short, or has nothing after it.
 * Each of these FPDUs has crashed, or could have crashed, an iWARP implementation (doc/wire.md,
 * section 10). They can be sent to any peer, because no STag in them has to exist.
 */
#ifndef TEST_HEADER_EDGES_H
#define TEST_HEADER_EDGES_H

#include <stddef.h>
#include <stdint.h>

#define EDGE_ULPDU_MAX 46
#define EDGE_FPDU_MAX  64

struct header_edge {
	const char *name;
	/* length of the ULPDU, as the MPA header states it; the ULPDU's bytes follow that header */
	unsigned len;
	unsigned error; /* the TERM_* that answers the FPDU; 0: the FPDU is correct */
	uint8_t ulpdu[EDGE_ULPDU_MAX];
};

extern const struct header_edge header_edges[];
extern const size_t header_edges_count;

/* Write the whole FPDU, with padding and a correct CRC. Returns its length. */
size_t header_edge_fpdu(const struct header_edge *edge, uint8_t fpdu[EDGE_FPDU_MAX]);

#endif
