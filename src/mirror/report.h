/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h -- the primary's reports to this host's daemon, for the tool: its status, once a second
 * and at each change, and events. It also detects members without progress. Under the set's lock.
 */
#ifndef MIRROR_REPORT_H
#define MIRROR_REPORT_H

#include "mirror/wire/packet.h"

struct rpmirror;

/* One wait, and its progress. */
struct report_wait {
	uint64_t token, since_ms;
	bool is_stuck;
};

struct report {
	uint64_t next_ms;
	struct packet_report last; /* its words; numbers are zero */
	struct report_wait members[MIRROR_MEMBERS_MAX], blocked;
};

/* In each turn of the thread. */
void report_step(struct rpmirror *m, uint64_t now_ms);
/* The daemon is another one: report everything again. */
void report_again(struct rpmirror *m);

#endif
