/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers.h -- makes durable writes by blocking calls. Each connection has a thread that keeps
 * `depth` writes under way and always finishes the oldest write.
 */
#ifndef BENCH_DURABLE_WORKERS_H
#define BENCH_DURABLE_WORKERS_H

#include <stdint.h>

#include "lib/case.h"
#include "lib/span.h"

struct workers;

struct worker {
	struct workers *all;
	struct span span; /* offsets in the file; each worker has its own part */
	void *own;
};

struct workers_client {
	const char *who;
	/* depth_is_threads: use a thread for each of the `depth` writes, because the call cannot be
	 * split into begin and end. */
	bool depth_is_threads;
	/* Called before the threads start and after they have ended; may be NULL. */
	void (*start)(struct workers *all);
	void (*stop)(struct workers *all);
	/* Called in the worker's thread; may be NULL. */
	void (*open)(struct worker *w);
	void (*begin)(struct worker *w, unsigned slot, uint64_t at);
	void (*finish)(struct worker *w, unsigned slot); /* NULL: begin() does the whole write */
	void (*close)(struct worker *w);
};

struct workers {
	const struct workers_client *client;
	const struct bench_case *c;
	/* count: number of threads; depth: writes under way in each */
	unsigned count, depth;
	char *payload;
	void *own; /* data of the client */
};

int workers_main(const struct workers_client *client, int argc, char **argv);

#endif
