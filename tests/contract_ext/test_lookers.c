/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lookers.c -- bytes are received, whichever threads look for them. Each worker has a
 * connection and waits for each of its operations in another way; a visitor polls, arms and waits
 * for the queues of the other ends, where nothing completes. So who looks at either end changes all
 * the time, and each operation needs both ends. RPMA_LOOKERS_OPS: operations of a worker.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

enum { WORKERS = 3, LEN = 256, PART = 4096, STALL_MS = 20000, POLLS_MAX = 200 };

struct worker {
	struct ends *d;
	struct rpma_conn *conn, *srv;
	struct rpma_cq *cq, *srv_cq;
	pthread_t thread;
	size_t at; /* its part of both buffers */
	unsigned ops, random;
	const char *failed; /* NULL: nothing has; a failed assertion jumps, so threads make none */
};

static atomic_bool over;

static unsigned looker_random(unsigned *seed, unsigned below)
{
	return (unsigned)rand_r(seed) % below;
}

static int64_t looker_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- how a worker waits --------------------------------------------------------------------- */

/* RPMA_E_NO_COMPLETION: after that many polls there is none. */
static int poll_for(struct worker *w, struct ibv_wc *wc, unsigned polls)
{
	int ret = RPMA_E_NO_COMPLETION;

	while (ret == RPMA_E_NO_COMPLETION && polls-- > 0)
		ret = rpma_cq_get_wc(w->cq, 1, wc, NULL);
	return ret;
}

static int only_poll(struct worker *w, struct ibv_wc *wc)
{
	int64_t until = looker_ms() + STALL_MS;
	int ret;

	do
		ret = poll_for(w, wc, POLLS_MAX);
	while (ret == RPMA_E_NO_COMPLETION && looker_ms() < until);
	return ret;
}

/* After some polls: an event may be of a completion that these have found. */
static int poll_and_wait(struct worker *w, struct ibv_wc *wc, unsigned polls)
{
	int ret = poll_for(w, wc, polls);

	while (ret == RPMA_E_NO_COMPLETION) {
		ret = rpma_cq_wait_timeout(w->cq, STALL_MS);
		if (!ret)
			ret = poll_for(w, wc, 1);
	}
	return ret;
}

static bool worker_completes(struct worker *w)
{
	struct ibv_wc wc = {0};
	int ret;

	switch (looker_random(&w->random, 4)) {
	case 0:
		ret = only_poll(w, &wc);
		break;
	case 1:
		ret = poll_and_wait(w, &wc, 1);
		break;
	case 2:
		ret = poll_and_wait(w, &wc, looker_random(&w->random, POLLS_MAX));
		break;
	default:
		usleep(looker_random(&w->random, 500));
		ret = poll_and_wait(w, &wc, 1);
	}
	return !ret && wc.status == IBV_WC_SUCCESS;
}

/* --- what it does --------------------------------------------------------------------------- */

static bool worker_reads(struct worker *w)
{
	memset(w->d->cli_buf + w->at, 0, LEN);
	return !rpma_read(w->conn, w->d->cli_mr, w->at, w->d->at_srv, w->at, LEN,
			  RPMA_F_COMPLETION_ALWAYS, NULL) &&
	       worker_completes(w);
}

/* The Writes may wait for the flush, or be sent before it. */
static bool worker_writes(struct worker *w, unsigned writes, bool pause)
{
	for (unsigned i = 0; i < writes; i++)
		if (rpma_write(w->conn, w->d->at_srv, w->at, w->d->cli_mr, w->at, LEN,
			       RPMA_F_COMPLETION_ON_ERROR, NULL))
			return false;
	if (pause)
		usleep(looker_random(&w->random, 300));
	return !rpma_flush(w->conn, w->d->at_srv, w->at, LEN, RPMA_FLUSH_TYPE_VISIBILITY,
			   RPMA_F_COMPLETION_ALWAYS, NULL) &&
	       worker_completes(w);
}

/* What was written is read back. */
static const char *worker_goes_round(struct worker *w, unsigned round)
{
	unsigned kind = looker_random(&w->random, 8);

	ends_fill(w->d->cli_buf + w->at, LEN, round);
	if (!worker_writes(w, 1 + looker_random(&w->random, 5), kind == 0))
		return "a write and flush did not complete";
	if (!worker_reads(w))
		return "a read did not complete";
	if (!ends_is_filled(w->d->cli_buf + w->at, LEN, round))
		return "a read brought other bytes than were written";
	return NULL;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->ops && !w->failed; i++)
		w->failed = worker_goes_round(w, i);
	return NULL;
}

/* --- the other ends ------------------------------------------------------------------------- */

static void visit(struct worker *w, unsigned *seed)
{
	struct ibv_wc wc;

	for (unsigned n = looker_random(seed, POLLS_MAX); n > 0; n--)
		(void)rpma_cq_get_wc(w->srv_cq, 1, &wc, NULL);
	for (unsigned n = looker_random(seed, 4); n > 0; n--)
		(void)rpma_cq_wait_timeout(w->srv_cq, 1);
	if (looker_random(seed, 4) == 0)
		usleep(looker_random(seed, 1000));
}

static void *visitor_run(void *arg)
{
	struct worker *w = arg;
	unsigned seed = 1;

	while (!atomic_load(&over))
		visit(&w[looker_random(&seed, WORKERS)], &seed);
	return NULL;
}

/* --- the test ------------------------------------------------------------------------------- */

static unsigned ops_wanted(void)
{
	const char *ops = getenv("RPMA_LOOKERS_OPS");

	return ops ? (unsigned)strtoul(ops, NULL, 10) : 500;
}

static void worker_open(struct worker *w, struct ends *d, unsigned i)
{
	*w = (struct worker){.d = d, .at = i * PART, .ops = ops_wanted(), .random = i + 1};
	ends_connect(d, NULL, &w->conn, &w->srv);
	OK(rpma_conn_get_cq(w->conn, &w->cq));
	OK(rpma_conn_get_cq(w->srv, &w->srv_cq));
}

static void operations_complete_whichever_threads_look(void **state)
{
	struct worker w[WORKERS];
	pthread_t visitor;
	struct ends d;

	ends_open(&d, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_open(&w[i], &d, i);
	assert_int_equal(pthread_create(&visitor, NULL, visitor_run, w), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, worker_run, &w[i]), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(w[i].thread, NULL);
	atomic_store(&over, true);
	pthread_join(visitor, NULL);
	for (unsigned i = 0; i < WORKERS; i++) {
		if (w[i].failed)
			fail_msg("worker %u: %s", i, w[i].failed);
		OK(rpma_conn_delete(&w[i].conn));
		OK(rpma_conn_delete(&w[i].srv));
	}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_complete_whichever_threads_look),
	};

	return cmocka_run_group_tests_name("lookers", tests, NULL, NULL);
}
