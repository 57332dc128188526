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

#define CLIENTS_SIZE (16ull << 20) /* size of the file that the clients need */
/* hot extents: fewer than the clients use, so that some become cold */
#define CLIENTS_SLOTS 4

struct client {
	struct proc proc; /* pid 0: the process is gone */
	unsigned host, number;
	bool serves; /* the process has reported that it serves */
};

struct clients {
	struct hosts *hosts;
	unsigned count; /* number of clients started */
	uint64_t seed;
	unsigned pause_us; /* pause of each thread between two operations */
};

/* The contents of histories, added up. */
struct clients_counts {
	size_t acknowledged, unsure, reads; /* reads: number of confirmed reads */
	size_t epochs;                      /* number of epochs in which a process served */
};

/* Start a client, which waits until it may be the primary. envs as for proc_start(). */
void client_start(struct clients *all, struct client *c, unsigned host, const char *const envs[]);
/* Returns false if the client does not serve within that time, or has ended. */
bool client_serves(struct client *c, int timeout_ms);
/* Were that many of the client's writes acknowledged within that time? */
bool client_has_written(const struct clients *all, const struct client *c, unsigned writes,
			int timeout_ms);
/* Wait until the client has read and written. */
void client_wait_busy(const struct clients *all, const struct client *c);
/* End the client in good order. False: it had lost its role before. */
bool client_end(struct client *c);
/*
 * The same while another client waits to be primary. If `c` itself still waits, it does not notice
 * that it has to end, and may become primary before `next`: then it is killed, and the result is
 * false.
 */
bool client_end_before(struct client *c, struct client *next);
/* The client's wait status; -1: it is alive. */
int client_status(struct client *c);

/* Wait for a record of the register with this in-sync set; otherwise the test fails. */
void hosts_wait_insync(const struct hosts *h, mirror_mask insync);
/* Read the metadata of a host's copy. False: they cannot be read at the moment. */
bool host_read_super(const struct hosts *h, unsigned i, struct meta_super *super);
/* With no writer left, the history must be linearizable, and the copies must be equal. */
void clients_judge(struct clients *all, struct clients_counts *counts);

#endif
