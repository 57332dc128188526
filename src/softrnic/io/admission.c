/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/admission.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/rate_limit.h"

struct held {
	struct list link;
	struct sockaddr_storage peer;
	int fd;
};

/* A leaf: guards the record and the lists of all listeners. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rate_limit record;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void admission_start(void)
{
	rate_limit_init(&record, config_get()->violations_per_s);
}

static void admission_lock(void)
{
	pthread_once(&once, admission_start);
	pthread_mutex_lock(&lock);
}

/* With the lock. */
static uint64_t admission_until(const struct sockaddr_storage *peer, uint64_t now)
{
	return rate_limit_until(&record, (const struct sockaddr *)peer, now);
}

void admission_count_violation(const struct sockaddr_storage *peer, uint64_t now)
{
	bool waits, waited;

	admission_lock();
	waited = admission_until(peer, now) > now;
	rate_limit_count(&record, (const struct sockaddr *)peer, now);
	waits = admission_until(peer, now) > now;
	pthread_mutex_unlock(&lock);
	if (waits && !waited)
		LOG_WARNING_LIMITED(
			"an address has accessed memory that it has no right to %d times: its "
			"new connections are held back (see SOFTRNIC_VIOLATIONS_PER_S)",
			RATE_LIMIT_BURST);
}

void admission_init(struct admission *a)
{
	list_init(&a->held);
	a->n_held = 0;
}

/* With the lock. */
static int held_take(struct admission *a, struct held *w)
{
	int fd = w->fd;

	list_del(&w->link);
	a->n_held--;
	free(w);
	return fd;
}

/* With the lock. -1: none is held. */
static int held_take_first(struct admission *a)
{
	struct list *first = list_first(&a->held);

	return first ? held_take(a, container_of(first, struct held, link)) : -1;
}

void admission_fini(struct admission *a)
{
	int fd;

	do {
		pthread_mutex_lock(&lock);
		fd = held_take_first(a);
		pthread_mutex_unlock(&lock);
		if (fd >= 0)
			close(fd);
	} while (fd >= 0);
}

/* With the lock. The descriptor that is to be closed: one that made room, or the new one; or -1. */
static int held_add(struct admission *a, int fd, const struct sockaddr_storage *peer)
{
	struct held *w = malloc(sizeof(*w));
	int out = -1;

	if (!w)
		return fd;
	*w = (struct held){.peer = *peer, .fd = fd};
	if (a->n_held == ADMISSION_MAX)
		out = held_take_first(a);
	list_add_tail(&a->held, &w->link);
	a->n_held++;
	return out;
}

bool admission_hold(struct admission *a, int fd, const struct sockaddr_storage *peer, uint64_t now,
		    uint64_t *until)
{
	int out = -1;
	bool waits;

	admission_lock();
	*until = admission_until(peer, now);
	waits = *until > now;
	if (waits)
		out = held_add(a, fd, peer);
	pthread_mutex_unlock(&lock);
	if (out >= 0)
		close(out);
	return waits;
}

int admission_next(struct admission *a, uint64_t now, uint64_t *next)
{
	struct list *it;
	int fd = -1;

	*next = CLOCK_NEVER;
	admission_lock();
	list_for_each (it, &a->held) {
		struct held *w = container_of(it, struct held, link);
		uint64_t until = admission_until(&w->peer, now);

		if (until <= now) {
			fd = held_take(a, w);
			break;
		}
		if (until < *next)
			*next = until;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

void admission_atfork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void admission_atfork_release(void)
{
	pthread_mutex_unlock(&lock);
}
