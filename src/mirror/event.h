/* SPDX-License-Identifier: BSD-3-Clause */
/* event.h -- the events of a set that its application has not taken yet. The caller's lock
 * protects them. */
#ifndef MIRROR_EVENT_H
#define MIRROR_EVENT_H

#include "librpmirror.h"

#define EVENTS_MAX        64
#define EVENTS_UNREPORTED 16

struct events {
	int fd; /* an eventfd, readable while events are in the queue */
	struct rpmirror_event ring[EVENTS_MAX];
	unsigned first, count;
	uint64_t missed;
	/* events for the daemon, whether or not the application takes them */
	struct rpmirror_event unreported[EVENTS_UNREPORTED];
	unsigned unreported_first, unreported_count;
};

int events_init(struct events *e);
void events_fini(struct events *e);
/* Add an event. member: a slot, or UINT32_MAX. */
void events_add(struct events *e, enum rpmirror_event_type type, uint32_t member, uint64_t value,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
bool events_take_unreported(struct events *e, struct rpmirror_event *event);

#endif
