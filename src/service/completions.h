/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completions.h -- wait in time for the next completion of a connection, or for its end.
 *
 * rpma_cq_wait_timeout() alone does not return when the connection ends, and the event alone is no
 * reason to give up: completions may still be queued behind it. One thread at a time.
 */
#ifndef SERVICE_COMPLETIONS_H
#define SERVICE_COMPLETIONS_H

#include <librpma.h>
#include <stdbool.h>

/* On a connection that is established; it owns nothing. */
struct completions {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	int cq_fd, event_fd;
	bool closed; /* the other end is gone */
};

/* Or an error of librpma, which is below 0. */
enum completions_result {
	COMPLETIONS_ONE,     /* *wc is the next one, good or bad */
	COMPLETIONS_TIMEOUT, /* there is none in that time; nothing is lost, more may come */
	COMPLETIONS_CLOSED,  /* the connection has ended, and all that came before was taken */
};

/* Makes both descriptors non-blocking. 0, or librpma's error. */
int completions_init(struct completions *c, struct rpma_conn *conn);
/*
 * The next completion within timeout_ms (-1: no limit). spin_us: look that long before sleeping, to
 * measure latency. Returns an enum completions_result or librpma's error.
 */
int completions_next(struct completions *c, int timeout_ms, unsigned spin_us, struct ibv_wc *wc);

#endif
