/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.h -- waits for descriptors. Each is reported when it becomes ready (edge-triggered), by
 * the number under which it was added. */
#ifndef IO_POLLER_H
#define IO_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/* The readiness of a descriptor or a link. */
enum {
	READY_READ = 1,   /* bytes, their end or an error may be there */
	READY_WRITE = 2,  /* bytes may be accepted, or there is an error */
	READY_HANGUP = 4, /* no further bytes will come: read until the end */
};

#define POLLER_BATCH 64

#define POLLER_WAKEUP UINT64_MAX /* the number of a wake-up */

struct poller {
	int epfd, wakefd; /* -1: closed */
	bool watched;     /* it was added to another poller */
};

struct poller_event {
	uint64_t data;
	unsigned ready; /* READY_* */
};

int poller_open(struct poller *p);   /* returns 0 or -errno; poller_close() must follow */
void poller_close(struct poller *p); /* in a forked child: without any effect on the parent */

/* READY_WRITE only if `write`. Returns 0 or -errno. */
int poller_add(struct poller *p, int fd, uint64_t data, bool write);
/* READY_READ only if `read`, or with READY_HANGUP. The present readiness is reported again. */
int poller_change(struct poller *p, int fd, uint64_t data, bool read, bool write);
void poller_remove(struct poller *p, int fd);

/* Returns the number of events, at most POLLER_BATCH; 0: none before `until` (or CLOCK_NEVER), or a
 * signal came. A wake-up is an event, too. */
int poller_wait(struct poller *p, struct poller_event *evs, uint64_t until, uint64_t now);
void poller_wake(struct poller *p); /* wakes one waiting thread, or the next one */

/*
 * report: if `watched` has or gets events, one thread that waits for p gets one READY_READ event
 * with this number, and the next one only after the next call. Not report: no thread gets any.
 * Called by one thread at a time. Returns 0 or -errno.
 */
int poller_watch(struct poller *p, struct poller *watched, uint64_t data, bool report);

#endif
