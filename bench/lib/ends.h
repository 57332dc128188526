/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.h -- two processes, the initiator (the caller) and the target (its child), with a channel
 * between them. When one process exits, the other exits too. Both are killed after a time limit.
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
 * Fork. Each end enters its network namespace and is bound to its CPU. The child runs target(c, fd,
 * arg) and exits. Call this before opening anything that the child must not inherit.
 */
void ends_start(struct ends *e, const struct bench_case *c,
		void (*target)(const struct bench_case *c, int fd, void *arg), void *arg);
/*
 * For a process that ends_start() did not make: enter the network namespace and CPU of the
 * initiator or of the target. The process is killed after the time limit.
 */
void ends_enter(const struct bench_case *c, bool target);
/* Wait until the target exits. If the target failed, this program exits with a failure, too. */
void ends_finish(struct ends *e);

/* Send and receive messages between the ends. If the other end is gone, ends_get() makes the
 * program exit. */
void ends_put(int fd, const void *data, size_t len);
void ends_get(int fd, void *data, size_t len);
/* Wait until the other end closes its side. */
void ends_wait_for_end(int fd);

#endif
