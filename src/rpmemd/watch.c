/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define WATCH_EVERY_S 1

struct watch {
	pthread_mutex_t lock; /* guards the members below, except names */
	pthread_cond_t changed;
	bool is_ending;
	/* number of users: the session and the thread; the last user frees the object */
	unsigned users;
	struct error lost;
	int fd;
	struct poolset_names *names;
};

/* Called with the lock held; releases it. */
static void watch_put(struct watch *w)
{
	bool is_last = !--w->users;

	pthread_mutex_unlock(&w->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	poolset_names_delete(w->names);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

/* Returns with the lock held. */
static void watch_check(struct watch *w)
{
	struct error err = {.kind = ERROR_NONE};
	int rc = poolset_names_check(w->names, &err);

	pthread_mutex_lock(&w->lock);
	if (!rc || w->lost.kind)
		return;
	w->lost = err;
	eventfd_write(w->fd, 1);
}

static void *watch_run(void *arg)
{
	struct watch *w = arg;
	struct timespec until;

	pthread_mutex_lock(&w->lock);
	while (!w->is_ending && !w->lost.kind) {
		pthread_mutex_unlock(&w->lock);
		watch_check(w);
		until = clock_timespec(clock_now_ns() + WATCH_EVERY_S * NSEC_PER_SEC);
		while (!w->is_ending && !pthread_cond_timedwait(&w->changed, &w->lock, &until))
			;
	}
	watch_put(w);
	return NULL;
}

struct watch *watch_start(const struct poolset_pool *pool)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->names = poolset_names_new(pool);
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->changed);
	w->users = 2;
	if (w->fd >= 0 && w->names && !thread_start(NULL, 0, watch_run, w))
		return w;
	w->users = 1;
	pthread_mutex_lock(&w->lock);
	watch_put(w);
	return NULL;
}

void watch_stop(struct watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_ending = true;
	pthread_cond_signal(&w->changed);
	watch_put(w);
}

int watch_get_fd(const struct watch *w)
{
	return w->fd;
}

static bool watch_take(struct watch *w, struct error *err)
{
	bool has_lost = w->lost.kind != ERROR_NONE;

	if (has_lost)
		*err = w->lost;
	pthread_mutex_unlock(&w->lock);
	return has_lost;
}

bool watch_has_lost(struct watch *w, struct error *err)
{
	pthread_mutex_lock(&w->lock);
	return watch_take(w, err);
}

bool watch_look(struct watch *w, struct error *err)
{
	watch_check(w);
	return watch_take(w, err);
}
