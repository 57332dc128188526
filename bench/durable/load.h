/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h -- keeps `depth` durable writes under way on each of `conns` connections to a server, from
 * one thread that sleeps in epoll. What the server speaks is a struct load_client.
 */
#ifndef BENCH_DURABLE_LOAD_H
#define BENCH_DURABLE_LOAD_H

#include <stdint.h>

#include "lib/case.h"
#include "lib/samples.h"
#include "lib/span.h"

struct load_conn {
	struct load *load;
	unsigned number;
	struct span span; /* of the server's file; each connection has a part of its own */
	void *own;        /* the client's */
	int fd;           /* set by open() */
	unsigned watched; /* events */
	uint64_t *begun;  /* when the write of each slot was posted */
	unsigned oldest;  /* the slot posted longest ago, where a server answers in order */
};

struct load_client {
	const char *who;
	size_t block; /* writes are rounded up to it; 0: they are not */
	/* Before the first open() and after the last close(); may be NULL. */
	void (*start)(struct load *l);
	void (*stop)(struct load *l);
	void (*open)(struct load_conn *lc);
	/* Begin the write of that slot. */
	void (*post)(struct load_conn *lc, unsigned slot, uint64_t at);
	/* The descriptor has these events: take the answers, and call load_done() for each. */
	void (*service)(struct load_conn *lc, unsigned events);
	/* Which events it waits for. */
	unsigned (*wants)(const struct load_conn *lc);
	void (*close)(struct load_conn *lc);
};

struct load {
	const struct load_client *client;
	const struct bench_case *c;
	struct load_conn *conns;
	char *payload; /* of load_size() bytes that do not compress */
	void *own;     /* the client's */
	unsigned short port;
	int epoll;
	struct samples *samples;
	/* Answered, and not yet posted again. */
	struct {
		struct load_conn *lc;
		unsigned slot;
	} * done;
	unsigned done_count;
};

/* Bytes of one write. */
size_t load_size(const struct load *l);
/* The write of that slot is durable. May be called where the next write cannot be posted yet. */
void load_done(struct load_conn *lc, unsigned slot);
void load_done_oldest(struct load_conn *lc);
int load_main(const struct load_client *client, int argc, char **argv);

#endif
