/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/door.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/penalty.h"

struct waiter {
	struct list link;
	struct sockaddr_storage peer;
	int fd;
};

/* A leaf: guards the record and the lists of all doors. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct penalty record;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void record_start(void)
{
	penalty_init(&record, config_get()->violations_per_s);
}

static void door_lock(void)
{
	pthread_once(&once, record_start);
	pthread_mutex_lock(&lock);
}

/* With the lock. */
static uint64_t record_until(const struct sockaddr_storage *peer, uint64_t now)
{
	return penalty_until(&record, (const struct sockaddr *)peer, now);
}

void door_blame(const struct sockaddr_storage *peer, uint64_t now)
{
	bool waits, waited;

	door_lock();
	waited = record_until(peer, now) > now;
	penalty_add(&record, (const struct sockaddr *)peer, now);
	waits = record_until(peer, now) > now;
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

/* With the lock. */
static int waiter_take(struct door *d, struct waiter *w)
{
	int fd = w->fd;

	list_del(&w->link);
	d->n_held--;
	free(w);
	return fd;
}

/* With the lock. -1: nobody waits. */
static int waiter_take_first(struct door *d)
{
	struct list *first = list_first(&d->held);

	return first ? waiter_take(d, container_of(first, struct waiter, link)) : -1;
}

void door_fini(struct door *d)
{
	int fd;

	do {
		pthread_mutex_lock(&lock);
		fd = waiter_take_first(d);
		pthread_mutex_unlock(&lock);
		if (fd >= 0)
			close(fd);
	} while (fd >= 0);
}

/* With the lock. The descriptor that is to be closed: one that made room, or the new one; or -1. */
static int waiter_add(struct door *d, int fd, const struct sockaddr_storage *peer)
{
	struct waiter *w = malloc(sizeof(*w));
	int out = -1;

	if (!w)
		return fd;
	*w = (struct waiter){.peer = *peer, .fd = fd};
	if (d->n_held == DOOR_MAX)
		out = waiter_take_first(d);
	list_add_tail(&d->held, &w->link);
	d->n_held++;
	return out;
}

bool door_hold(struct door *d, int fd, const struct sockaddr_storage *peer, uint64_t now,
	       uint64_t *until)
{
	int out = -1;
	bool waits;

	door_lock();
	*until = record_until(peer, now);
	waits = *until > now;
	if (waits)
		out = waiter_add(d, fd, peer);
	pthread_mutex_unlock(&lock);
	if (out >= 0)
		close(out);
	return waits;
}

int door_next(struct door *d, uint64_t now, uint64_t *next)
{
	struct list *it;
	int fd = -1;

	*next = CLOCK_NEVER;
	door_lock();
	list_for_each (it, &d->held) {
		struct waiter *w = container_of(it, struct waiter, link);
		uint64_t until = record_until(&w->peer, now);

		if (until <= now) {
			fd = waiter_take(d, w);
			break;
		}
		if (until < *next)
			*next = until;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

void doors_atfork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void doors_atfork_release(void)
{
	pthread_mutex_unlock(&lock);
}
