/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/engine/door.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/engine/config.h"
#include "softrnic/engine/penalty.h"

struct waiter {
	struct list link;
	struct sockaddr_storage peer;
	int fd;
};

/* A leaf: guards the record, and the lists so that a forked child finds them whole. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct penalty record;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void record_start(void)
{
	penalty_init(&record, config_get()->violations_per_s);
}

static uint64_t record_until(const struct sockaddr_storage *peer, uint64_t now)
{
	uint64_t until;

	pthread_once(&once, record_start);
	pthread_mutex_lock(&lock);
	until = penalty_until(&record, (const struct sockaddr *)peer, now);
	pthread_mutex_unlock(&lock);
	return until;
}

void door_blame(const struct sockaddr_storage *peer, uint64_t now)
{
	bool waits, waited = record_until(peer, now) > now;

	pthread_mutex_lock(&lock);
	penalty_add(&record, (const struct sockaddr *)peer, now);
	waits = penalty_until(&record, (const struct sockaddr *)peer, now) > now;
	pthread_mutex_unlock(&lock);
	if (waits && !waited)
		LOG_WARNING_LIMITED(
			"an address has reached for memory that is not its own %d times: its "
			"new connections are held back (see SOFTRNIC_VIOLATIONS_PER_S)",
			PENALTY_BURST);
}

void door_init(struct door *d)
{
	list_init(&d->held);
	d->n_held = 0;
}

static int waiter_take(struct door *d, struct waiter *w)
{
	int fd = w->fd;

	pthread_mutex_lock(&lock);
	list_del(&w->link);
	d->n_held--;
	pthread_mutex_unlock(&lock);
	free(w);
	return fd;
}

void door_fini(struct door *d)
{
	struct list *first;

	while ((first = list_first(&d->held)))
		close(waiter_take(d, container_of(first, struct waiter, link)));
}

bool door_hold(struct door *d, int fd, const struct sockaddr_storage *peer, uint64_t now,
	       uint64_t *until)
{
	struct waiter *w;

	*until = record_until(peer, now);
	if (*until <= now)
		return false;
	w = malloc(sizeof(*w));
	if (!w) {
		close(fd);
		return true;
	}
	*w = (struct waiter){.peer = *peer, .fd = fd};
	if (d->n_held == DOOR_MAX)
		close(waiter_take(d, container_of(list_first(&d->held), struct waiter, link)));
	pthread_mutex_lock(&lock);
	list_add_tail(&d->held, &w->link);
	d->n_held++;
	pthread_mutex_unlock(&lock);
	return true;
}

int door_next(struct door *d, uint64_t now, uint64_t *next)
{
	struct list *it;

	*next = CLOCK_NEVER;
	list_for_each (it, &d->held) {
		struct waiter *w = container_of(it, struct waiter, link);
		uint64_t until = record_until(&w->peer, now);

		if (until <= now)
			return waiter_take(d, w);
		if (until < *next)
			*next = until;
	}
	return -1;
}

void doors_atfork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void doors_atfork_release(void)
{
	pthread_mutex_unlock(&lock);
}
