/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/worker.h"

#include "base/clock.h"
#include "base/thread.h"
#include "rpmemd/lane.h"

/* Time that the worker spins before it sleeps: the next request often arrives immediately. */
#define WORKER_SPIN_NS (20 * NSEC_PER_US)
/* Longest sleep of the worker before it checks whether it has to end. */
#define WORKER_WAIT_MS 500

/* Handle all pending completions. Returns false if there were none. */
static bool worker_take(struct worker *w)
{
	struct ibv_wc wc[16];
	int n = 0;

	if (rpma_cq_get_wc(w->cq, 16, wc, &n))
		return false;
	for (int i = 0; i < n; i++)
		lane_on_completion(&wc[i]);
	return true;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		uint64_t until = clock_now_ns() + WORKER_SPIN_NS;
		bool any = worker_take(w);

		while (!any && clock_now_ns() < until)
			any = worker_take(w);
		if (!any)
			rpma_cq_wait_timeout(w->cq, WORKER_WAIT_MS);
	}
	return NULL;
}

int worker_start(struct worker *w, struct rpma_peer *peer, uint32_t cq_size)
{
	int rc = rpma_cq_new(peer, cq_size, &w->cq);

	if (rc)
		return rc;
	w->is_running = !thread_start(&w->thread, 0, worker_run, w);
	if (w->is_running)
		return 0;
	rpma_cq_delete(&w->cq);
	return RPMA_E_NOMEM;
}

void worker_ask_to_stop(struct worker *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
}

void worker_stop(struct worker *w)
{
	worker_ask_to_stop(w);
	if (w->is_running)
		pthread_join(w->thread, NULL);
	w->is_running = false;
}

void worker_fini(struct worker *w)
{
	worker_stop(w);
	rpma_cq_delete(&w->cq);
}
