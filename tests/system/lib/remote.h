/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h -- runs the target, and processes that constantly write to it. */
#ifndef SYSTEM_REMOTE_H
#define SYSTEM_REMOTE_H

#include "system/lib/proc.h"

struct remote {
	struct proc proc;
	char port[8];
};

/* Start the target with these regions (target_main.c describes them), and wait until it listens. */
int remote_start(struct remote *r, const char *program, const char *const regions[],
		 const char *const envs[]);
/* Start SYSTEM_TARGET with these regions. The test fails if the target cannot start. */
#define remote_must_start(r, envs, ...)                                                            \
	assert_int_equal(                                                                          \
		remote_start(r, SYSTEM_TARGET, ((const char *[]){__VA_ARGS__, NULL}), envs), 0)
/* Returns the number of the target's connections, or -1 if the target does not answer. */
int remote_conns(struct remote *r);
/* Wait until the target has exactly this many connections. Returns 0 or -ETIMEDOUT. */
int remote_wait_conns(struct remote *r, int n, int timeout_ms);

/*
 * Start a process that writes to the target's regions until it is stopped, and connects again
 * whenever a connection ends. `share` is "FIRST:CONNECTIONS:ALL": the regions are divided into ALL
 * slices, and each of CONNECTIONS connections writes to one slice, beginning with slice number
 * FIRST.
 */
int writer_start(struct proc *p, const char *program, const char *port, const char *share,
		 const char *const envs[]);

/* The present counts of a writer. */
struct writer_stat {
	unsigned long writes, flushes, failures, connects;
};
int writer_ask(struct proc *p, struct writer_stat *stat);

#endif
