/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staging.h -- registered memory in which flushes keep their data until every lane has sent the
 * data.
 *
 * The memory is a ring: positions are numbers that only grow, and a position modulo the size is an
 * offset. When no byte is in use, the ring starts again at its beginning. The caller's lock
 * protects the ring.
 */
#ifndef MIRROR_STAGING_H
#define MIRROR_STAGING_H

#include <librpma.h>

struct staging {
	uint8_t *base;
	uint64_t size, begin, end; /* positions of the part in use */
	struct rpma_mr_local *mr;
};

/* Make the ring. Returns 0 or an RPMIRROR_E_*. */
int staging_init(struct staging *s, struct rpma_peer *peer, uint64_t size);
void staging_fini(struct staging *s);

/* Take len bytes in one piece, at most half of the size, at an offset that is a multiple of 64.
 * Returns false if not enough bytes are free. */
bool staging_take(struct staging *s, uint64_t len, uint64_t *at);
/* Give back the piece that was taken last, at that position, without using it. */
void staging_return(struct staging *s, uint64_t at);
/* Free all bytes before the position. */
void staging_free(struct staging *s, uint64_t upto);

#endif
