/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers.h -- keeps durable writes under way by blocking calls: each connection has a thread,
 * which keeps `depth` writes under way and finishes the oldest one.
 */
#ifndef BENCH_DURABLE_WORKERS_H
#define BENCH_DURABLE_WORKERS_H

#include <stdint.h>

#include "lib/case.h"
#include "lib/span.h"

struct workers;

struct worker {
	struct workers *all;
	struct span span; /* in the file; each worker has its own part */
	void *own;
};

struct workers_client {
	const char *who;
	/* Run a thread for each of the `depth` writes, because the call cannot be split into begin
	 * and end. */
	bool depth_is_threads;
	/* Called before the threads start and after they have ended; may be NULL. */
	void (*start)(struct workers *all);
	void (*stop)(struct workers *all);
	/* Called in the worker's thread; may be NULL. */
	void (*open)(struct worker *w);
	void (*begin)(struct worker *w, unsigned slot, uint64_t at);
	void (*finish)(struct worker *w, unsigned slot); /* NULL: begin() does everything */
	void (*close)(struct worker *w);
};

struct workers {
	const struct workers_client *client;
	const struct bench_case *c;
	unsigned count, depth; /* number of threads, and of each thread's writes under way */
	char *payload;
	void *own; /* data of the client */
};

int workers_main(const struct workers_client *client, int argc, char **argv);

#endif
