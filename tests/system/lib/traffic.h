/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h -- writes of all sizes, one after the other, over a client's connection, with several
 * under way and a flush now and then. Each writer has its own slice of every region, because two
 * writers of the same bytes would be a race, which ThreadSanitizer would report.
 */
#ifndef SYSTEM_TRAFFIC_H
#define SYSTEM_TRAFFIC_H

#include "system/lib/client.h"

struct traffic {
	struct client client;
	const char *port;
	uint64_t seed;
	unsigned slice, slices;
	int under_way; /* writes whose completion has not come */
	bool broken;   /* the connection is broken: connect anew */
	uint64_t retry_at;
	unsigned long writes, flushes, failures, connects;
};

/* Open the writer number `slice` of `slices`. */
int traffic_open(struct traffic *t, const char *port, unsigned slice, unsigned slices);
void traffic_close(struct traffic *t);
/* Post writes while there is room, and collect completions, without waiting. */
void traffic_step(struct traffic *t);
/* The descriptor that becomes readable with the next completion, or -1. */
int traffic_fd(const struct traffic *t);

#endif
