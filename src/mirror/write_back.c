/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/write_back.h"

#include <string.h>

#include "base/poll.h"
#include "base/thread.h"
#include "mirror/set.h"

void write_back_init(struct write_back *w)
{
	thread_cond_init(&w->work);
	thread_cond_init(&w->ended);
}

void write_back_fini(struct write_back *w)
{
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->ended);
}

/* Called with the set's lock, which is released during the write-back. */
static void write_back_run(struct rpmirror *m)
{
	struct write_back *w = &m->write_back;
	struct flush_written written;
	uint64_t seqs[FLUSH_MAX];

	memcpy(seqs, w->due, w->count * sizeof(*seqs));
	written = (struct flush_written){NULL, 0, seqs, w->count};
	w->running_first = w->due_first;
	w->count = 0;
	w->due_first = 0;
	pthread_mutex_unlock(&m->lock);
	flush_write_back(m, &written);
	pthread_mutex_lock(&m->lock);
	w->running_first = 0;
	pthread_cond_broadcast(&w->ended);
	if (w->count)
		pthread_cond_signal(&w->work);
}

static void *write_back_main(void *arg)
{
	struct rpmirror *m = arg;
	struct write_back *w = &m->write_back;

	pthread_mutex_lock(&m->lock);
	while (!w->stopping) {
		if (w->count && !w->running_first)
			write_back_run(m);
		else
			pthread_cond_wait(&w->work, &m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static bool write_back_start(struct rpmirror *m)
{
	struct write_back *w = &m->write_back;

	if (!w->has_thread && !w->stopping)
		w->has_thread = !thread_start(&w->thread, 0, write_back_main, m);
	return w->has_thread;
}

bool write_back_defer(struct rpmirror *m, const uint64_t *seqs, uint32_t count)
{
	struct write_back *w = &m->write_back;
	bool is_deferred;

	pthread_mutex_lock(&m->lock);
	is_deferred = m->tickets && write_back_start(m);
	for (uint32_t i = 0; is_deferred && i < count; i++) {
		if (!w->due_first || seqs[i] < w->due_first)
			w->due_first = seqs[i];
		w->due[w->count++] = seqs[i];
	}
	if (is_deferred)
		pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&m->lock);
	return is_deferred;
}

static bool write_back_has(uint64_t first, uint64_t seq)
{
	return first && first <= seq;
}

bool write_back_await(struct rpmirror *m, uint64_t seq, uint64_t deadline_ns)
{
	struct write_back *w = &m->write_back;
	struct timespec until = clock_timespec(deadline_ns);
	bool has_waited = false;

	while ((write_back_has(w->due_first, seq) || write_back_has(w->running_first, seq)) &&
	       poll_ms_left(deadline_ns)) {
		has_waited = true;
		/* A write-back may take longer than the caller's time limit. */
		if (deadline_ns != CLOCK_NEVER)
			pthread_cond_timedwait(&w->ended, &m->lock, &until);
		else if (!w->running_first)
			write_back_run(m);
		else
			pthread_cond_wait(&w->ended, &m->lock);
	}
	return has_waited;
}

void write_back_stop(struct rpmirror *m)
{
	struct write_back *w = &m->write_back;

	pthread_mutex_lock(&m->lock);
	w->stopping = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&m->lock);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->has_thread = false;
}
