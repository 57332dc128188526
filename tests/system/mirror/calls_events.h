/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_events.h -- events that take the role from the primary on host 0, or change the set. A
 * failure fails the test.
 */
#ifndef SYSTEM_MIRROR_CALLS_EVENTS_H
#define SYSTEM_MIRROR_CALLS_EVENTS_H

#include "hosts.h"

#define EVENTS 8

struct event {
	const char *name;
	/* causes the event; the number chooses a variant */
	void (*strike)(struct hosts *h, unsigned number);
	/* ends_by_word: an operator's order ends the role, even within the lease */
	bool ends_by_word;
	/* is_unmap: the event only ends the calls and unmaps */
	bool is_unmap;
};

extern const struct event events[EVENTS];

#endif
