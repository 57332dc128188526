/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h -- the threads of the general method: each thread has a completion queue, which its
 * lanes share, and answers the requests that arrive in that queue.
 *
 * One thread starts and stops all workers.
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
 * Start the worker. cq_size: entries for all lanes of the worker together. Returns librpma's
 * result, or RPMA_E_NOMEM if no thread could be started.
 */
int worker_start(struct worker *w, struct rpma_peer *peer, uint32_t cq_size);
/* Let the worker end after the next completion that it takes (lane_end() causes one), or within
 * half a second. */
void worker_ask_to_stop(struct worker *w);
/* Stop the worker. After the return it takes no more completions. */
void worker_stop(struct worker *w);
/* Free the worker, after its lanes are closed. */
void worker_fini(struct worker *w);

#endif
