/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lookers.c -- the device receives bytes, whichever threads poll a queue or wait for it. Each
 * worker waits for each of its operations in another way. Two of the workers share a connection and
 * its queue. One more thread polls, arms and waits for the queues of the server ends, in which
 * nothing completes. So the threads that receive for an end change continually, and each operation
 * needs both ends. RPMA_LOOKERS_OPS: rounds of a worker, of five operations each on average.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

enum { QUEUES = 3, WORKERS = 4, LEN = 256, PART = 4096, STALL_MS = 20000, POLLS_MAX = 200 };

struct queue {
	struct rpma_conn *conn, *srv;
	struct rpma_cq *cq, *srv_cq;
	/* Readers are threads that poll. The writer is the one thread that waits: a poll of another
	 * thread would take its completion. */
	pthread_rwlock_t turn;
};

enum { UNDER_WAY, SUCCEEDED, FAILED };

struct worker {
	struct ends *d;
	struct queue *queue;
	pthread_t thread;
	size_t at; /* the thread's part of both buffers */
	unsigned ops, random;
	atomic_int state; /* state of the operation: its completion sets this */
	/* NULL: no failure. A failed assertion jumps, so a thread records the failure here */
	const char *failed;
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

static bool worker_is_done(struct worker *w)
{
	return atomic_load(&w->state) != UNDER_WAY;
}

/* Take one completion, which can belong to any worker of this queue. */
static void take_completion(struct worker *w)
{
	struct ibv_wc wc = {0};
	int ret = rpma_cq_get_wc(w->queue->cq, 1, &wc, NULL);

	if (!ret)
		w = (struct worker *)(uintptr_t)wc.wr_id;
	if (ret != RPMA_E_NO_COMPLETION)
		atomic_store(&w->state, !ret && wc.status == IBV_WC_SUCCESS ? SUCCEEDED : FAILED);
}

static void worker_polls(struct worker *w, unsigned polls)
{
	if (pthread_rwlock_tryrdlock(&w->queue->turn))
		return;
	while (!worker_is_done(w) && polls-- > 0)
		take_completion(w);
	pthread_rwlock_unlock(&w->queue->turn);
}

/* A poll has possibly taken the completion that the event announces. */
static void worker_waits(struct worker *w)
{
	if (pthread_rwlock_trywrlock(&w->queue->turn))
		return;
	if (!worker_is_done(w))
		take_completion(w);
	if (!worker_is_done(w)) {
		if (rpma_cq_wait_timeout(w->queue->cq, STALL_MS))
			atomic_store(&w->state, FAILED);
		else
			take_completion(w);
	}
	pthread_rwlock_unlock(&w->queue->turn);
}

static bool worker_completes(struct worker *w)
{
	enum { ONLY_POLL, ONLY_WAIT, POLL_AND_WAIT, PAUSE } how = looker_random(&w->random, 4);
	unsigned polls = how == ONLY_POLL ? POLLS_MAX : looker_random(&w->random, POLLS_MAX);
	int64_t until = looker_ms() + STALL_MS;

	if (how == PAUSE)
		usleep(looker_random(&w->random, 500));
	while (!worker_is_done(w) && looker_ms() < until) {
		if (how == ONLY_POLL || how == POLL_AND_WAIT)
			worker_polls(w, polls);
		if (how != ONLY_POLL)
			worker_waits(w);
		if (!worker_is_done(w)) /* another thread possibly waits for the queue */
			sched_yield();
	}
	return atomic_load(&w->state) == SUCCEEDED;
}

/* --- what a worker does --------------------------------------------------------------------- */

static bool worker_reads(struct worker *w)
{
	memset(w->d->cli_buf + w->at, 0, LEN);
	atomic_store(&w->state, UNDER_WAY);
	return !rpma_read(w->queue->conn, w->d->cli_mr, w->at, w->d->at_srv, w->at, LEN,
			  RPMA_F_COMPLETION_ALWAYS, w) &&
	       worker_completes(w);
}

/* The device can delay these Writes until the flush, or send them earlier. */
static bool worker_writes(struct worker *w, unsigned writes, bool pause)
{
	atomic_store(&w->state, UNDER_WAY);
	for (unsigned i = 0; i < writes; i++)
		if (rpma_write(w->queue->conn, w->d->at_srv, w->at, w->d->cli_mr, w->at, LEN,
			       RPMA_F_COMPLETION_ON_ERROR, w))
			return false;
	if (pause)
		usleep(looker_random(&w->random, 300));
	return !rpma_flush(w->queue->conn, w->d->at_srv, w->at, LEN, RPMA_FLUSH_TYPE_VISIBILITY,
			   RPMA_F_COMPLETION_ALWAYS, w) &&
	       worker_completes(w);
}

/* Write, flush, read the bytes back and compare. */
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

/* --- the server ends ------------------------------------------------------------------------ */

static void visit(struct queue *q, unsigned *seed)
{
	struct ibv_wc wc;

	for (unsigned n = looker_random(seed, POLLS_MAX); n > 0; n--)
		(void)rpma_cq_get_wc(q->srv_cq, 1, &wc, NULL);
	for (unsigned n = looker_random(seed, 4); n > 0; n--)
		(void)rpma_cq_wait_timeout(q->srv_cq, 1);
	if (looker_random(seed, 4) == 0)
		usleep(looker_random(seed, 1000));
}

static void *visitor_run(void *arg)
{
	struct queue *queues = arg;
	unsigned seed = 1;

	while (!atomic_load(&over))
		visit(&queues[looker_random(&seed, QUEUES)], &seed);
	return NULL;
}

/* --- the test ------------------------------------------------------------------------------- */

static unsigned ops_wanted(void)
{
	const char *ops = getenv("RPMA_LOOKERS_OPS");

	return ops ? (unsigned)strtoul(ops, NULL, 10) : 500;
}

static void queue_open(struct queue *q, struct ends *d)
{
	ends_connect(d, NULL, &q->conn, &q->srv);
	OK(rpma_conn_get_cq(q->conn, &q->cq));
	OK(rpma_conn_get_cq(q->srv, &q->srv_cq));
	assert_int_equal(pthread_rwlock_init(&q->turn, NULL), 0);
}

static void queue_close(struct queue *q)
{
	OK(rpma_conn_delete(&q->conn));
	OK(rpma_conn_delete(&q->srv));
	pthread_rwlock_destroy(&q->turn);
}

/* The last two workers share the last queue. */
static void worker_open(struct worker *w, struct ends *d, struct queue *queues, unsigned i)
{
	*w = (struct worker){.d = d, .at = i * PART, .ops = ops_wanted(), .random = i + 1};
	w->queue = &queues[i < QUEUES ? i : QUEUES - 1];
}

static void workers_work(struct worker *w, struct queue *queues)
{
	pthread_t visitor;

	assert_int_equal(pthread_create(&visitor, NULL, visitor_run, queues), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, worker_run, &w[i]), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(w[i].thread, NULL);
	atomic_store(&over, true);
	pthread_join(visitor, NULL);
}

static void operations_complete_whichever_threads_look(void **state)
{
	struct queue queues[QUEUES];
	struct worker w[WORKERS];
	struct ends d;

	ends_open(&d, NULL);
	for (unsigned i = 0; i < QUEUES; i++)
		queue_open(&queues[i], &d);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_open(&w[i], &d, queues, i);
	workers_work(w, queues);
	for (unsigned i = 0; i < WORKERS; i++)
		if (w[i].failed)
			fail_msg("worker %u: %s", i, w[i].failed);
	for (unsigned i = 0; i < QUEUES; i++)
		queue_close(&queues[i]);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_complete_whichever_threads_look),
	};

	return cmocka_run_group_tests_name("lookers", tests, NULL, NULL);
}
