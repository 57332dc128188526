/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h -- keeps `depth` durable writes under way on each of `conns` connections to a server, from
 * one thread that sleeps in epoll. A struct load_client implements the server's protocol.
 */
#ifndef BENCH_DURABLE_LOAD_H
#define BENCH_DURABLE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/case.h"
#include "lib/samples.h"
#include "lib/span.h"
#include "wire.h"

struct load_conn {
	struct load *load;
	unsigned number;
	struct span span;  /* offsets in the server's file; each connection has its own part */
	void *own;         /* data of this client's connection */
	struct wire *wire; /* the socket, if the client sets has_wire */
	/* descriptor to watch, set by open(), if the client does not set has_wire */
	int fd;
	unsigned watched; /* events that are watched */
	uint64_t *begun;  /* post time of each slot's write */
	/* oldest: the slot that was posted first; used if the server answers in order */
	unsigned oldest;
};

struct load_client {
	const char *who;
	size_t block; /* writes are rounded up to a multiple of this size; 0: no rounding */
	/* Called before the first open() and after the last close(); may be NULL. */
	void (*start)(struct load *l);
	void (*stop)(struct load *l);
	/* own: size of lc->own in bytes, initially zeroed; 0: open() sets lc->own */
	size_t own;
	/* the connection is lc->wire, and wants() is not used */
	bool has_wire;
	void (*open)(struct load_conn *lc); /* may be NULL */
	/* Begin the write of the slot. */
	void (*post)(struct load_conn *lc, unsigned slot, uint64_t at);
	/*
	 * Called when epoll reports `events` for the descriptor. Receives the answers, and calls
	 * load_done() for each.
	 */
	void (*service)(struct load_conn *lc, unsigned events);
	/* Returns the events to wait for. */
	unsigned (*wants)(const struct load_conn *lc);
	void (*close)(struct load_conn *lc); /* may be NULL */
};

struct load {
	const struct load_client *client;
	const struct bench_case *c;
	struct load_conn *conns;
	char *payload; /* load_size() bytes that do not compress */
	void *own;     /* data of the client */
	unsigned short port;
	int epoll;
	struct samples *samples;
	/* Slots whose write was answered, and that are not posted again yet. */
	struct {
		struct load_conn *lc;
		unsigned slot;
	} * done;
	unsigned done_count;
};

/* Returns the size of one write in bytes. */
size_t load_size(const struct load *l);
/* Report that the write of this slot is durable, even if the next write cannot be posted yet. */
void load_done(struct load_conn *lc, unsigned slot);
void load_done_oldest(struct load_conn *lc);
int load_main(const struct load_client *client, int argc, char **argv);

#endif
