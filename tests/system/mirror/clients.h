/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.h -- processes that read and write registers of the set on the hosts of hosts.h
 * (registers_main.c), one of them as primary, and a check of their histories. A failure fails the
 * test.
 */
#ifndef SYSTEM_MIRROR_CLIENTS_H
#define SYSTEM_MIRROR_CLIENTS_H

#include "hosts.h"
#include "mirror/core/meta.h"

#define CLIENTS_SIZE (16ull << 20) /* size of the file that the clients need */
/* number of hot slots: less than the number of extents that the clients use, so that some extents
 * become cold */
#define CLIENTS_SLOTS 4

struct client {
	struct proc proc; /* pid 0: there is no process */
	unsigned host, number;
	bool serves; /* the process has reported that it is primary */
};

struct clients {
	struct hosts *hosts;
	unsigned count; /* number of clients that were started */
	uint64_t seed;
	unsigned pause_us; /* pause of each thread between two operations */
};

/* Sums over all histories. */
struct clients_counts {
	/* acknowledged and unsure writes; reads: confirmed reads */
	size_t acknowledged, unsure, reads;
	size_t epochs; /* number of epochs in which some process served */
};

/* Start a client, which waits until it becomes the primary. For envs see proc_start(). */
void client_start(struct clients *all, struct client *c, unsigned host, const char *const envs[]);
/* Returns false if the client is not primary within this time, or has ended. */
bool client_serves(struct client *c, int timeout_ms);
/* Returns true if this many of the client's writes were acknowledged within this time. */
bool client_has_written(const struct clients *all, const struct client *c, unsigned writes,
			int timeout_ms);
/* Wait until the client has made both reads and writes. */
void client_wait_busy(const struct clients *all, const struct client *c);
/* Close the input of the client, so that it exits. Returns false if it had lost its role before. */
bool client_end(struct client *c);
/*
 * Like client_end(), while `next` waits to be primary. If `c` itself still waits for the role, it
 * does not notice the end of its input, and can become primary before `next`. In this case the call
 * kills `c` and returns false.
 */
bool client_end_before(struct client *c, struct client *next);
/* Returns the client's wait status, or -1 if it is still running. */
int client_status(struct client *c);

/* Wait until the register has this in-sync set. Otherwise the test fails. */
void hosts_wait_insync(const struct hosts *h, mirror_mask insync);
/* Read the metadata of a host's copy. Returns false if that is impossible now. */
bool host_read_super(const struct hosts *h, unsigned i, struct meta_super *super);
/* Call this when no client writes any more. Checks that the history is linearizable and the copies
 * are equal. */
void clients_judge(struct clients *all, struct clients_counts *counts);

#endif
