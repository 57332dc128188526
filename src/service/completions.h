/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completions.h -- wait in time for the next completion of a connection, or for its end.
 *
 * rpma_cq_wait_timeout() alone does not return when the connection ends, and after that event
 * completions may still be queued. One thread at a time.
 */
#ifndef SERVICE_COMPLETIONS_H
#define SERVICE_COMPLETIONS_H

#include <librpma.h>
#include <stdbool.h>

/* The completions of an established connection. Owns nothing. */
struct completions {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	int cq_fd, event_fd;
	bool closed; /* the other end is gone */
};

/* A result, or an error of librpma, which is negative. */
enum completions_result {
	COMPLETIONS_ONE,     /* *wc is the next completion, successful or not */
	COMPLETIONS_TIMEOUT, /* no completion came within the time; one may come later */
	COMPLETIONS_CLOSED,  /* the connection has ended, and all completions were taken */
};

/* Makes both descriptors non-blocking. 0, or librpma's error. */
int completions_init(struct completions *c, struct rpma_conn *conn);
/*
 * Get the next completion within timeout_ms (-1: no limit). spin_us: time to spin before sleeping,
 * to measure latency. Returns an enum completions_result or librpma's error.
 */
int completions_next(struct completions *c, int timeout_ms, unsigned spin_us, struct ibv_wc *wc);

#endif
