/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staging.h -- registered memory in which flushes keep their data until every lane has sent it.
 *
 * A ring: places are numbers that only grow; a number modulo the size is an offset. Its beginning
 * is used again when nothing is in use. The caller's lock protects it.
 */
#ifndef MIRROR_STAGING_H
#define MIRROR_STAGING_H

#include <librpma.h>

struct staging {
	uint8_t *base;
	uint64_t size, begin, end; /* the part in use */
	struct rpma_mr_local *mr;
};

/* 0 or an RPMIRROR_E_*. */
int staging_init(struct staging *s, struct rpma_peer *peer, uint64_t size);
void staging_fini(struct staging *s);

/* Take len bytes in one piece, at most half of the size, at an offset that is a multiple of 64.
 * False: so much is not free. */
bool staging_take(struct staging *s, uint64_t len, uint64_t *at);
/* The last piece taken, at that place, will not be used. */
void staging_return(struct staging *s, uint64_t at);
/* Everything before is free. */
void staging_free(struct staging *s, uint64_t upto);

#endif
