/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.h -- a read-only mapping of this host's copy: gets the age of the copy from the daemon. */
#ifndef MIRROR_READER_H
#define MIRROR_READER_H

#include "librpmirror.h"

struct rpmirror;

struct reader {
	/* time by CLOCK_BOOTTIME at which the copy had all acknowledged data; 0: unknown */
	uint64_t fresh_ns;
	uint64_t epoch, view_seq, flush_seq;
};

/* Ask the daemon, even one that was restarted, and fill in the state. Waits at most a second for
 * each answer. Called with the set's lock. */
void reader_fill(struct rpmirror *m, struct rpmirror_state *st);

#endif
