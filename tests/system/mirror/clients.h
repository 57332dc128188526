/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.h -- processes that read and write registers of the set on the hosts of hosts.h
 * (registers_main.c), one of them as primary, and the verdict on their histories. A failure fails
 * the test.
 */
#ifndef SYSTEM_MIRROR_CLIENTS_H
#define SYSTEM_MIRROR_CLIENTS_H

#include "hosts.h"
#include "mirror/core/meta.h"

#define CLIENTS_SIZE  (16ull << 20) /* bytes of the file that they need */
#define CLIENTS_SLOTS 4             /* hot extents: fewer than they use, so that some become cold */

struct client {
	struct proc proc; /* pid 0: it is gone */
	unsigned host, number;
	bool serves; /* it has reported that it serves */
};

struct clients {
	struct hosts *hosts;
	unsigned count; /* number of clients started */
	uint64_t seed;
	unsigned pause_us; /* pause of each thread between two operations */
};

/* The contents of histories, added up. */
struct clients_counts {
	size_t acknowledged, unsure, reads; /* reads: confirmed ones */
	size_t epochs;                      /* number of epochs in which a process served */
};

/* Start a client, which waits until it may be the primary. envs as for proc_start(). */
void client_start(struct clients *all, struct client *c, unsigned host, const char *const envs[]);
/* False: it does not serve within that time, or has ended. */
bool client_serves(struct client *c, int timeout_ms);
/* Were that many of its writes acknowledged? False: not within that time. */
bool client_has_written(const struct clients *all, const struct client *c, unsigned writes,
			int timeout_ms);
/* Wait until it has read and written. */
void client_wait_busy(const struct clients *all, const struct client *c);
/* End it in good order. False: it had lost its role before. */
bool client_end(struct client *c);
/*
 * The same if another one waits to be primary. A waiting process does not notice that it has to
 * end, and it may become primary before its successor: then it is killed, and the result is false.
 */
bool client_end_before(struct client *c, struct client *next);
/* Its wait status, or -1: it is alive. */
int client_status(struct client *c);

/* Wait for a record of the register with this in-sync set; otherwise the test fails. */
void hosts_wait_insync(const struct hosts *h, mirror_mask insync);
/* Read the metadata of a host's copy. False: they cannot be read at the moment. */
bool host_read_super(const struct hosts *h, unsigned i, struct meta_super *super);
/* With no writer left, the history must be linearizable, and the copies must be equal. */
void clients_judge(struct clients *all, struct clients_counts *counts);

#endif
