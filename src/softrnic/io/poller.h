/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poller.h -- waiting for descriptors. Each is reported when it becomes ready (an edge), with the
 * number under which it was added.
 */
#ifndef IO_POLLER_H
#define IO_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/* What a descriptor, or a link, is ready for. */
enum {
	READY_READ = 1,   /* bytes may be there, or the end of them, or an error */
	READY_WRITE = 2,  /* bytes may be taken, or there is an error */
	READY_HANGUP = 4, /* no more bytes will come than are there: read until the end */
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

int poller_open(struct poller *p);   /* 0 or -errno; then poller_close() is to follow */
void poller_close(struct poller *p); /* in a forked child: without any effect on the parent */

/* READY_WRITE only if `write`. 0 or -errno. */
int poller_add(struct poller *p, int fd, uint64_t data, bool write);
/* READY_READ only if `read`, or with READY_HANGUP. What it is ready for is reported anew. */
int poller_change(struct poller *p, int fd, uint64_t data, bool read, bool write);
void poller_remove(struct poller *p, int fd);

/* How many events there are, at most POLLER_BATCH; 0: none until that time (or CLOCK_NEVER), or a
 * signal came. A wake-up is an event, too. */
int poller_wait(struct poller *p, struct poller_event *evs, uint64_t until, uint64_t now);
void poller_wake(struct poller *p); /* a thread that waits, or the next one */

/*
 * report: where `watched` has events, or gets some, one thread that waits for p gets one event with
 * that number, READY_READ, and the next one only after the next call. Not report: none gets any.
 * One thread at a time. 0 or -errno.
 */
int poller_watch(struct poller *p, struct poller *watched, uint64_t data, bool report);

#endif
