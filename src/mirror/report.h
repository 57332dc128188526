/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h -- the primary's reports to this host's daemon, for the tool: the status, once a second
 * and at each change, and events. This file also detects members without progress. All calls need
 * the set's lock.
 */
#ifndef MIRROR_REPORT_H
#define MIRROR_REPORT_H

#include "mirror/wire/packet.h"

struct rpmirror;

/* A wait, and the progress during it. */
struct report_wait {
	uint64_t token, since_ms;
	bool is_stuck;
};

struct report {
	uint64_t next_ms;
	struct packet_report last; /* the last report, for comparison; its numbers are zero */
	struct report_wait members[MIRROR_MEMBERS_MAX], blocked;
};

/* The set's thread calls this in each pass. */
void report_step(struct rpmirror *m, uint64_t now_ms);
/* Send the status again in the next pass. Call this when the daemon is another process. */
void report_again(struct rpmirror *m);

#endif
