/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.h -- a read-only mapping of this host's copy: its age, by the daemon's report. */
#ifndef MIRROR_READER_H
#define MIRROR_READER_H

#include "librpmirror.h"

struct rpmirror;

struct reader {
	/* CLOCK_BOOTTIME at which it had all that was acknowledged; 0: unknown */
	uint64_t fresh_ns;
	uint64_t epoch, view_seq, flush_seq;
};

/* Asks the daemon, also one that was restarted; at most a second for each answer. Under the
 * set's lock. */
void reader_fill(struct rpmirror *m, struct rpmirror_state *st);

#endif
