/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completions.h -- waits for the next completion of a connection, for a disconnect, or for a time
 * limit.
 *
 * rpma_cq_wait_timeout() does not return when the connection is closed, and completions may still
 * be queued after the event that reports the close. Only one thread at a time may use a struct
 * completions.
 */
#ifndef SERVICE_COMPLETIONS_H
#define SERVICE_COMPLETIONS_H

#include <librpma.h>
#include <stdbool.h>

/* Refers to the completions of an established connection; the caller owns all members. */
struct completions {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	int cq_fd, event_fd;
	bool closed; /* the connection has ended */
};

/* A value of this list, or an error of librpma, which is negative. */
enum completions_result {
	COMPLETIONS_ONE,     /* *wc is the next completion, successful or not */
	COMPLETIONS_TIMEOUT, /* no completion came within the time; a later call may get it */
	COMPLETIONS_CLOSED,  /* the connection is closed, and all completions were taken */
};

/* Make both descriptors non-blocking. Returns 0 or librpma's error. */
int completions_init(struct completions *c, struct rpma_conn *conn);
/*
 * Get the next completion within timeout_ms (-1: no limit). spin_us: time to spin before sleeping,
 * to measure latency. Returns an enum completions_result or librpma's error.
 */
int completions_next(struct completions *c, int timeout_ms, unsigned spin_us, struct ibv_wc *wc);

#endif
