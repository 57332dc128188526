/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "mirror/core/killpoint.h"

#define AGENT_FORCE_TRIES 10

struct agent_queue {
	struct agent_job *first, **last;
};

struct agent_answers {
	pthread_mutex_t lock;
	struct agent_queue done;
	int fd;
};

struct agent {
	struct mirror_register *handle;
	char set[MIRROR_SET_MAX + 1];
	unsigned limit_ms;
	struct agent_answers *answers;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct agent_queue todo;
	struct agent_job *running; /* NULL: no job runs */
	bool ends, has_ended;
	bool is_abandoned; /* the thread frees the agent when it exits */
	int wake_fd;       /* a write to this descriptor ends a WATCH */
	pthread_t thread;
};

static void agent_queue_init(struct agent_queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void agent_queue_put(struct agent_queue *q, struct agent_job *job)
{
	job->next_job = NULL;
	*q->last = job;
	q->last = &job->next_job;
}

static struct agent_job *agent_queue_take(struct agent_queue *q)
{
	struct agent_job *job = q->first;

	if (job) {
		q->first = job->next_job;
		if (!q->first)
			q->last = &q->first;
	}
	return job;
}

static void agent_drop(struct agent_job *job)
{
	if (job->on_drop)
		job->on_drop(job);
	free(job);
}

static void agent_queue_free(struct agent_queue *q)
{
	struct agent_job *job;

	while ((job = agent_queue_take(q)))
		agent_drop(job);
}

struct agent_job *agent_job_new(enum agent_work work, void (*on_done)(struct agent_job *job),
				void *owner)
{
	struct agent_job *job = calloc(1, sizeof(*job));

	if (job) {
		job->work = work;
		job->on_done = on_done;
		job->owner = owner;
	}
	return job;
}

struct agent_answers *agent_answers_new(void)
{
	struct agent_answers *answers = calloc(1, sizeof(*answers));

	if (!answers)
		return NULL;
	answers->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (answers->fd < 0) {
		free(answers);
		return NULL;
	}
	pthread_mutex_init(&answers->lock, NULL);
	agent_queue_init(&answers->done);
	return answers;
}

void agent_answers_delete(struct agent_answers *answers)
{
	if (!answers)
		return;
	agent_queue_free(&answers->done);
	close(answers->fd);
	pthread_mutex_destroy(&answers->lock);
	free(answers);
}

int agent_answers_get_fd(const struct agent_answers *answers)
{
	return answers->fd;
}

void agent_answers_take(struct agent_answers *answers)
{
	struct agent_job *job;
	uint64_t count;

	if (read(answers->fd, &count, sizeof(count)) < 0)
		return; /* another wake-up has taken the answers */
	for (;;) {
		pthread_mutex_lock(&answers->lock);
		job = agent_queue_take(&answers->done);
		pthread_mutex_unlock(&answers->lock);
		if (!job)
			return;
		job->on_done(job);
	}
}

/* If the write fails, the counter is full, and then the descriptor is readable as well. */
static void agent_count_up(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n;
}

static void agent_answer(struct agent *a, struct agent_job *job)
{
	pthread_mutex_lock(&a->answers->lock);
	agent_queue_put(&a->answers->done, job);
	pthread_mutex_unlock(&a->answers->lock);
	agent_count_up(a->answers->fd);
}

static enum register_result agent_swap(struct agent *a, struct agent_job *job)
{
	if (__atomic_load_n(&job->is_withdrawn, __ATOMIC_ACQUIRE)) {
		error_set(&job->err, ERROR_REFUSED, ECANCELED, "the order was withdrawn");
		return REGISTER_FAILED;
	}
	return register_swap(a->handle, &job->expected, &job->next,
			     job->promotes ? &job->alive : NULL, &job->now, &job->err);
}

/* The former primary may be alive. It may renew its key between the read and the swap, so try
 * several times. */
static enum register_result agent_force(struct agent *a, struct agent_job *job)
{
	enum register_result result = REGISTER_FAILED;

	for (unsigned tries = 0; tries < AGENT_FORCE_TRIES; tries++) {
		if (register_alive_get(a->handle, &job->alive, &job->err))
			return REGISTER_FAILED;
		result = agent_swap(a, job);
		if (result != REGISTER_CHANGED || job->now.revision != job->expected.revision)
			break;
	}
	return result;
}

/* Read the alive key from one of the register's members first: this works also if the register
 * has no leader. */
static int agent_alive_get(struct agent *a, struct agent_job *job)
{
	if (register_alive_peek(a->handle, &job->sight, &job->err))
		job->sight.is_set = false;
	job->sight_ns = clock_boot_ns();
	job->sent_ns = clock_boot_ns();
	return register_alive_get(a->handle, &job->alive, &job->err);
}

static int agent_reopen(struct agent *a, struct agent_job *job)
{
	struct mirror_register *handle;
	int rc = register_open(job->arg, a->set, a->limit_ms, &handle, &job->err);

	if (rc)
		return rc;
	register_close(a->handle);
	a->handle = handle;
	return 0;
}

static void agent_run(struct agent *a, struct agent_job *job)
{
	job->sent_ns = clock_boot_ns();
	switch (job->work) {
	case AGENT_GET:
		job->rc = register_get(a->handle, &job->now, &job->err);
		break;
	case AGENT_SWAP:
		killpoint(KILLPOINT_w6_before);
		job->result = job->is_forced ? agent_force(a, job) : agent_swap(a, job);
		killpoint(KILLPOINT_w6_after);
		break;
	case AGENT_ALIVE_GET:
		job->rc = agent_alive_get(a, job);
		break;
	case AGENT_ALIVE_PUT:
		job->result = register_alive_put(a->handle, job->epoch, &job->alive, &job->err);
		break;
	case AGENT_ALIVE_CLEAR:
		job->result = register_alive_clear(a->handle, job->epoch, &job->err);
		break;
	case AGENT_WATCH:
		if (job->counts)
			register_health(a->handle, &job->health);
		register_watch(a->handle, job->expected.revision, job->wait_ms, a->wake_fd);
		break;
	case AGENT_REOPEN:
		job->rc = agent_reopen(a, job);
		break;
	case AGENT_CALL:
		job->rc = job->call(job);
		break;
	}
	job->done_ns = clock_boot_ns();
}

static void agent_free(struct agent *a)
{
	agent_queue_free(&a->todo);
	register_close(a->handle);
	close(a->wake_fd);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* The thread ends with this call. The caller holds the lock. */
static void *agent_leave(struct agent *a)
{
	bool is_alone = a->is_abandoned;

	a->has_ended = true;
	pthread_mutex_unlock(&a->lock);
	if (is_alone)
		agent_free(a);
	return NULL;
}

static void *agent_loop(void *arg)
{
	struct agent *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->ends) {
		struct agent_job *job = agent_queue_take(&a->todo);

		if (!job) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		a->running = job;
		pthread_mutex_unlock(&a->lock);
		agent_run(a, job);
		pthread_mutex_lock(&a->lock);
		a->running = NULL;
		/* The daemon may have freed its queue of answers already. */
		if (a->is_abandoned)
			agent_drop(job);
		else
			agent_answer(a, job);
	}
	return agent_leave(a);
}

int agent_new(const char *uri, const char *set, unsigned limit_ms, struct agent_answers *answers,
	      struct agent **agent, struct error *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	int rc;

	*agent = NULL;
	if (!a)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a register");
	rc = register_open(uri, set, limit_ms, &a->handle, err);
	if (rc) {
		free(a);
		return rc;
	}
	snprintf(a->set, sizeof(a->set), "%s", set);
	a->limit_ms = limit_ms;
	a->answers = answers;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	agent_queue_init(&a->todo);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->wake_fd < 0 || thread_start(&a->thread, 0, agent_loop, a)) {
		if (a->wake_fd >= 0)
			close(a->wake_fd);
		register_close(a->handle);
		free(a);
		return error_set(err, ERROR_LOCAL, EAGAIN, "no thread for a register");
	}
	*agent = a;
	return 0;
}

static void agent_stop(struct agent *a)
{
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	agent_count_up(a->wake_fd);
}

void agent_delete(struct agent **agent)
{
	struct agent *a = *agent;

	if (!a)
		return;
	*agent = NULL;
	agent_stop(a);
	pthread_join(a->thread, NULL);
	agent_free(a);
}

/* Returns false if the thread has already ended. */
static bool agent_abandon(struct agent *a)
{
	bool is_running;

	pthread_mutex_lock(&a->lock);
	is_running = !a->has_ended;
	a->is_abandoned = is_running;
	if (is_running)
		pthread_detach(a->thread);
	pthread_mutex_unlock(&a->lock);
	return is_running;
}

bool agent_delete_within(struct agent **agent, unsigned limit_ms)
{
	struct agent *a = *agent;
	struct timespec until;

	if (!a)
		return true;
	until = clock_timespec(clock_read_ns(CLOCK_REALTIME) + limit_ms * NSEC_PER_MS);
	agent_stop(a);
	if (!pthread_timedjoin_np(a->thread, NULL, &until)) {
		*agent = NULL;
		agent_free(a);
		return true;
	}
	if (!agent_abandon(a)) {
		agent_delete(agent);
		return true;
	}
	*agent = NULL;
	return false;
}

static void agent_withdraw_job(struct agent_job *job)
{
	if (job && job->is_ordered)
		__atomic_store_n(&job->is_withdrawn, true, __ATOMIC_RELEASE);
}

void agent_withdraw(struct agent *a)
{
	pthread_mutex_lock(&a->lock);
	for (struct agent_job *job = a->todo.first; job; job = job->next_job)
		agent_withdraw_job(job);
	agent_withdraw_job(a->running);
	pthread_mutex_unlock(&a->lock);
}

void agent_post(struct agent *a, struct agent_job *job)
{
	pthread_mutex_lock(&a->lock);
	agent_queue_put(&a->todo, job);
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
}
