/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.h -- two processes, the initiator (the caller) and the target (its child), with a channel
 * between them. Each ends when the other one is gone, and both end after a time limit.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "case.h"

struct ends {
	pid_t target;
	int fd; /* this end of the channel */
};

/*
 * Fork, enter each end's network namespace and CPU, and run target(c, fd, arg) in the child, which
 * then exits. Call this before opening anything that the child must not inherit.
 */
void ends_start(struct ends *e, const struct bench_case *c,
		void (*target)(const struct bench_case *c, int fd, void *arg), void *arg);
/*
 * Set up the same for a process that is started in another way. The process ends after the time
 * limit.
 */
void ends_enter(const struct bench_case *c, bool target);
/* Wait for the target's end. If the target failed, the program fails. */
void ends_finish(struct ends *e);

/* Messages between the ends. ends_get() ends the program if the other end is gone. */
void ends_put(int fd, const void *data, size_t len);
void ends_get(int fd, void *data, size_t len);
/* Wait until the other end has closed its side. */
void ends_wait_for_end(int fd);

#endif
