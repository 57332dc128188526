/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.h -- waits for descriptors. A descriptor is reported when it becomes ready
 * (edge-triggered), by the number `data` with which it was added. */
#ifndef IO_POLLER_H
#define IO_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/* The readiness of a descriptor or a link. */
enum {
	READY_READ = 1,   /* bytes, their end or an error may have arrived */
	READY_WRITE = 2,  /* the descriptor may take bytes, or there is an error */
	READY_HANGUP = 4, /* no further bytes will arrive: read until the end */
};

#define POLLER_BATCH 64

#define POLLER_WAKEUP UINT64_MAX /* the number that is reported for a wake-up */

struct poller {
	int epfd, wakefd; /* -1: closed */
	bool watched;     /* another poller watches this one */
};

struct poller_event {
	uint64_t data;
	unsigned ready; /* READY_* flags */
};

/* returns 0 or -errno; poller_close() must be called in both cases */
int poller_open(struct poller *p);
void poller_close(struct poller *p); /* in a forked child: without any effect on the parent */

/* Add a descriptor. READY_WRITE is only reported if `write`. Returns 0 or -errno. */
int poller_add(struct poller *p, int fd, uint64_t data, bool write);
/* Change what is reported: READY_READ only if `read` or together with READY_HANGUP, READY_WRITE
 * only if `write`. The readiness at the time of the call is reported again. */
int poller_change(struct poller *p, int fd, uint64_t data, bool read, bool write);
void poller_remove(struct poller *p, int fd);

/* Wait for events until `until` (CLOCK_NEVER: without limit). Returns their number, at most
 * POLLER_BATCH, or 0 if there were none or a signal came. A wake-up counts as an event. */
int poller_wait(struct poller *p, struct poller_event *evs, uint64_t until, uint64_t now);
/* wakes one thread that waits, or the next one that will wait */
void poller_wake(struct poller *p);

/*
 * With `report` true: if `watched` has or gets events, one thread that waits for p gets one
 * READY_READ event with the number `data`. A further event needs another call. With `report` false
 * no thread gets such an event. Called by one thread at a time. Returns 0 or -errno.
 */
int poller_watch(struct poller *p, struct poller *watched, uint64_t data, bool report);

#endif
