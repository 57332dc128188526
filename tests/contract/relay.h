/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.h -- a TCP relay that connects the two ends of one connection and records all bytes. The
 * relay parses only the lengths of frames. */
#ifndef CONTRACT_RELAY_H
#define CONTRACT_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum relay_way { RELAY_TO_SERVER, RELAY_TO_CLIENT, RELAY_WAYS };

struct relay_count {
	size_t bytes;    /* bytes of the whole stream */
	unsigned pieces; /* pieces, as recv() returned them */
	unsigned fpdus;  /* complete FPDUs */
};

struct relay {
	char port[8]; /* the port that clients connect to */
	int listener, to_server, to_client;
	size_t slow; /* bytes per second towards the server; 0: no limit */
	pthread_t thread;
	pthread_mutex_t lock;
	struct relay_way_state {
		uint8_t *seen;
		size_t len, room;
		unsigned pieces;
	} way[RELAY_WAYS];
};

/* Start a thread that waits for one client and connects this client to the server's port. */
void relay_start(struct relay *r, const char *server_port);
/* Like relay_start(), but the link to the server is slow and has small buffers. */
void relay_start_slow(struct relay *r, const char *server_port, size_t bytes_per_s);
/* Wait for the end of the thread, and free the record. Call this after both sides have closed. */
void relay_join(struct relay *r);
/* Wait until the relay is idle for a short time, then count the bytes so far. */
void relay_count(struct relay *r, enum relay_way way, struct relay_count *count);
/* Returns true if the bytes that have passed contain these bytes. */
bool relay_saw(struct relay *r, enum relay_way way, const void *bytes, size_t len);

#endif
