/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/payload.h"
#include "lib/result.h"

struct workers_run {
	struct workers all;
	pthread_barrier_t ready;
	pthread_mutex_t lock; /* guards the samples and `last` */
	struct samples *samples;
	uint64_t from, last; /* end times of the warm-up and of the last write, in ns */
};

static void workers_begin(struct worker *w, unsigned slot, uint64_t *begun)
{
	*begun = clock_now_ns();
	w->all->client->begin(w, slot, span_next(&w->span));
}

/* Finish the write of this slot, and count it if it began after the warm-up. */
static bool workers_finish(struct workers_run *run, struct worker *w, unsigned slot, uint64_t begun)
{
	uint64_t now;

	if (run->all.client->finish)
		run->all.client->finish(w, slot);
	if (begun < run->from)
		return false;
	pthread_mutex_lock(&run->lock);
	now = clock_now_ns();
	samples_add(run->samples, now - begun);
	run->last = now;
	pthread_mutex_unlock(&run->lock);
	return true;
}

static void workers_for(struct workers_run *run, struct worker *w, uint64_t *begun)
{
	uint64_t until = run->from + case_ns(run->all.c);
	unsigned slot = 0, depth = run->all.depth;
	bool is_counted = false;

	for (unsigned i = 0; i < depth; i++)
		workers_begin(w, i, &begun[i]);
	while (clock_now_ns() < until || !is_counted) {
		is_counted |= workers_finish(run, w, slot, begun[slot]);
		workers_begin(w, slot, &begun[slot]);
		slot = (slot + 1) % depth;
	}
	for (unsigned i = 0; i < depth; i++)
		workers_finish(run, w, (slot + i) % depth, begun[(slot + i) % depth]);
}

struct workers_thread {
	struct workers_run *run;
	struct worker *worker;
};

static void *workers_thread(void *arg)
{
	struct workers_thread *t = arg;
	const struct workers_client *client = t->run->all.client;
	uint64_t *begun = calloc(t->run->all.depth, sizeof(*begun));

	if (!begun)
		die_errno("memory");
	if (client->open)
		client->open(t->worker);
	if (pthread_barrier_wait(&t->run->ready) == PTHREAD_BARRIER_SERIAL_THREAD)
		t->run->from = clock_now_ns() + case_warmup_ns(t->run->all.c);
	pthread_barrier_wait(&t->run->ready);
	workers_for(t->run, t->worker, begun);
	if (client->close)
		client->close(t->worker);
	free(begun);
	return NULL;
}

static void workers_threads(struct workers_run *run)
{
	unsigned count = run->all.count;
	struct worker *workers = calloc(count, sizeof(*workers));
	struct workers_thread *args = calloc(count, sizeof(*args));
	pthread_t *threads = calloc(count, sizeof(*threads));

	if (!workers || !args || !threads)
		die_errno("memory");
	pthread_barrier_init(&run->ready, NULL, count);
	pthread_mutex_init(&run->lock, NULL);
	for (unsigned i = 0; i < count; i++) {
		workers[i] = (struct worker){.all = &run->all, .span = span_of_conn(run->all.c, i)};
		args[i] = (struct workers_thread){run, &workers[i]};
		if (pthread_create(&threads[i], NULL, workers_thread, &args[i]))
			die("thread %u cannot be made", i);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(workers);
	free(args);
	free(threads);
}

static void workers_measure(struct workers_run *run)
{
	struct result r = {0};
	const struct workers_client *client = run->all.client;

	if (client->start)
		client->start(&run->all);
	workers_threads(run);
	if (client->stop)
		client->stop(&run->all);
	r.ns = run->last - run->from;
	r.count = run->samples->total;
	r.bytes = r.count * run->all.c->size;
	result_print(run->all.c, &r, run->samples);
}

int workers_main(const struct workers_client *client, int argc, char **argv)
{
	struct bench_case c;
	struct workers_run run = {.all = {.client = client, .c = &c}, .samples = samples_new()};

	case_parse(&c, client->who, argc, argv);
	if (case_is_memory(&c))
		c.where = "server"; /* each write begins at least a page after the last */
	run.all.count = client->depth_is_threads ? c.conns * c.depth : c.conns;
	run.all.depth = client->depth_is_threads ? 1 : c.depth;
	run.all.payload = payload_new(c.size);
	ends_enter(&c, false);
	workers_measure(&run);
	free(run.all.payload);
	samples_delete(run.samples);
	return EXIT_SUCCESS;
}
