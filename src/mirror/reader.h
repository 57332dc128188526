/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.h -- a read-only mapping of this host's copy: how old it is, as the daemon knows. */
#ifndef MIRROR_READER_H
#define MIRROR_READER_H

#include "librpmirror.h"

struct rpmirror;

struct reader {
	uint64_t fresh_ns; /* CLOCK_BOOTTIME: it had all that was acknowledged then; 0: not known */
	uint64_t epoch, view_seq, flush_seq;
};

/* Asks the daemon, also one that was restarted; a second at the most for each of its answers. Under
 * the set's lock. */
void reader_fill(struct rpmirror *m, struct rpmirror_state *st);

#endif
