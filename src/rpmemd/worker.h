/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h -- the threads of the general method: each has a completion queue, which its lanes
 * share, and answers the requests that arrive there.
 *
 * One thread starts and stops all of them.
 */
#ifndef RPMEMD_WORKER_H
#define RPMEMD_WORKER_H

#include <librpma.h>
#include <pthread.h>
#include <stdbool.h>

struct worker {
	struct rpma_cq *cq;
	pthread_t thread;
	bool is_running;
	bool stop;
};

/*
 * cq_size: for all lanes of the worker together. librpma's results; RPMA_E_NOMEM also for a failed
 * thread.
 */
int worker_start(struct worker *w, struct rpma_peer *peer, uint32_t cq_size);
/* The worker ends with the next completion that it takes (lane_end()), or within half a second. */
void worker_ask_to_stop(struct worker *w);
/* After the return the worker takes no more completions. */
void worker_stop(struct worker *w);
/* Call this after the worker's lanes are closed. */
void worker_fini(struct worker *w);

#endif
