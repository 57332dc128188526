/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h -- writes of all sizes over a client's connection, several of them outstanding, with a
 * flush after some of them. Each writer uses its own slice of every region: if two writers wrote
 * the same bytes, ThreadSanitizer would report a race.
 */
#ifndef SYSTEM_TRAFFIC_H
#define SYSTEM_TRAFFIC_H

#include "system/lib/client.h"

struct traffic {
	struct client client;
	const char *port;
	uint64_t seed;
	unsigned slice, slices;
	int under_way; /* number of writes that have not completed */
	bool broken;   /* true: the connection has failed, so connect again */
	uint64_t retry_at;
	unsigned long writes, flushes, failures, connects;
};

/* Open writer number `slice` of `slices` writers. */
int traffic_open(struct traffic *t, const char *port, unsigned slice, unsigned slices);
void traffic_close(struct traffic *t);
/* Post writes while slots are free, and take completions, without a wait. */
void traffic_step(struct traffic *t);
/* Returns the descriptor that becomes readable when a completion arrives, or -1. */
int traffic_fd(const struct traffic *t);

#endif
