/* SPDX-License-Identifier: BSD-3-Clause */
/* calls_events.h -- what takes the role of the primary on host 0, or changes the set. A failure
 * fails the test. */
#ifndef SYSTEM_MIRROR_CALLS_EVENTS_H
#define SYSTEM_MIRROR_CALLS_EVENTS_H

#include "hosts.h"

#define EVENTS 8

struct event {
	const char *name;
	void (*strike)(struct hosts *h, unsigned number); /* the number chooses a variant */
	bool ends_by_word;                                /* of an operator, whatever the lease */
	bool is_unmap;                                    /* nothing but the end of the calls */
};

extern const struct event events[EVENTS];

#endif
