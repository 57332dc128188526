/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.h -- processes that read and write registers of the set on the hosts of hosts.h
 * (registers_main.c), one of them as primary, and the verdict on all that they did. A failure
 * fails the test.
 */
#ifndef SYSTEM_MIRROR_CLIENTS_H
#define SYSTEM_MIRROR_CLIENTS_H

#include "hosts.h"
#include "mirror/core/meta.h"

#define CLIENTS_SIZE  (16ull << 20) /* of the file that they need */
#define CLIENTS_SLOTS 4             /* hot extents, fewer than they use: some turn cold */

struct client {
	struct proc proc; /* pid 0: it is gone */
	unsigned host, number;
	bool serves; /* it has said so */
};

struct clients {
	struct hosts *hosts;
	unsigned count; /* so many were started */
	uint64_t seed;
	unsigned pause_us; /* of each thread between two operations */
};

/* What histories had, added up. */
struct clients_counts {
	size_t acknowledged, unsure, reads; /* reads: confirmed ones */
	size_t epochs;                      /* in which somebody served */
};

/* It waits until it may be the primary. envs as for proc_start(). */
void client_start(struct clients *all, struct client *c, unsigned host, const char *const envs[]);
/* False: it does not serve within that time, or has ended. */
bool client_serves(struct client *c, int timeout_ms);
/* So many writes of it were acknowledged. False: not within that time. */
bool client_has_written(const struct clients *all, const struct client *c, unsigned writes,
			int timeout_ms);
/* It has read and written. */
void client_wait_busy(const struct clients *all, const struct client *c);
/* In good order. False: it has lost its role before. */
bool client_end(struct client *c);
/* The same, where another one waits to be primary. One that waits itself does not know that it is
 * to end, and the next one may be primary before it: then it is killed, and that is false. */
bool client_end_before(struct client *c, struct client *next);
/* Its wait status, or -1: it lives. */
int client_status(struct client *c);

/* A record of the register that has this in-sync set, or the test fails. */
void hosts_wait_insync(const struct hosts *h, mirror_mask insync);
/* As the metadata of a host's copy say. False: they cannot be read just now. */
bool host_read_super(const struct hosts *h, unsigned i, struct meta_super *super);
/* Nobody writes now: the history is linearizable, and the copies are equal. */
void clients_judge(struct clients *all, struct clients_counts *counts);

#endif
