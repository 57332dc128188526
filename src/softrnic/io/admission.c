/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/admission.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/rate_limit.h"

struct held {
	struct list link;
	struct link_addr peer;
	struct link *conn;
};

/* Leaf lock: guards the record of violations and the lists of all listeners. */
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

/* Called with the lock. Returns the time until which connections of this peer must be held. */
static uint64_t admission_until(const struct link_addr *peer, uint64_t now)
{
	return rate_limit_until(&record, peer, now);
}

void admission_count_violation(const struct link_addr *peer, uint64_t now)
{
	bool waits, waited;

	admission_lock();
	waited = admission_until(peer, now) > now;
	rate_limit_count(&record, peer, now);
	waits = admission_until(peer, now) > now;
	pthread_mutex_unlock(&lock);
	if (waits && !waited)
		LOG_WARNING_LIMITED(
			"connections from one address have accessed memory without permission %d "
			"times: new connections from this address are delayed (see "
			"SOFTRNIC_VIOLATIONS_PER_S)",
			RATE_LIMIT_BURST);
}

void admission_init(struct admission *a)
{
	list_init(&a->held);
	a->n_held = 0;
}

/* Called with the lock. */
static struct link *admission_held_take(struct admission *a, struct held *h)
{
	struct link *conn = h->conn;

	list_del(&h->link);
	a->n_held--;
	free(h);
	return conn;
}

/* Called with the lock. Returns the link that was held longest, or NULL if no link is held. */
static struct link *admission_held_take_first(struct admission *a)
{
	struct list *first = list_first(&a->held);

	return first ? admission_held_take(a, container_of(first, struct held, link)) : NULL;
}

static struct link *admission_take_first(struct admission *a)
{
	struct link *conn;

	pthread_mutex_lock(&lock);
	conn = admission_held_take_first(a);
	pthread_mutex_unlock(&lock);
	return conn;
}

void admission_fini(struct admission *a)
{
	struct link *conn;

	while ((conn = admission_take_first(a)))
		conn->ops->close(conn);
}

void admission_forked(struct admission *a)
{
	struct link *conn;

	while ((conn = admission_take_first(a)))
		conn->ops->forked(conn);
}

/* Called with the lock. Returns the link that the caller must close: the one that was held longest
 * if the limit is reached, the new one if it cannot be held, or NULL. */
static struct link *admission_held_add(struct admission *a, struct link *conn,
				       const struct link_addr *peer)
{
	struct held *h = malloc(sizeof(*h));
	struct link *out = NULL;

	if (!h)
		return conn;
	*h = (struct held){.peer = *peer, .conn = conn};
	if (a->n_held == ADMISSION_MAX)
		out = admission_held_take_first(a);
	list_add_tail(&a->held, &h->link);
	a->n_held++;
	return out;
}

bool admission_hold(struct admission *a, struct link *link, const struct link_addr *peer,
		    uint64_t now, uint64_t *until)
{
	struct link *out = NULL;
	bool waits;

	admission_lock();
	*until = admission_until(peer, now);
	waits = *until > now;
	if (waits)
		out = admission_held_add(a, link, peer);
	pthread_mutex_unlock(&lock);
	if (out)
		out->ops->close(out);
	return waits;
}

struct link *admission_next(struct admission *a, uint64_t now, uint64_t *next)
{
	struct link *conn = NULL;
	struct list *it;

	*next = CLOCK_NEVER;
	admission_lock();
	list_for_each (it, &a->held) {
		struct held *h = container_of(it, struct held, link);
		uint64_t until = admission_until(&h->peer, now);

		if (until <= now) {
			conn = admission_held_take(a, h);
			break;
		}
		if (until < *next)
			*next = until;
	}
	pthread_mutex_unlock(&lock);
	return conn;
}

void admission_atfork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void admission_atfork_release(void)
{
	pthread_mutex_unlock(&lock);
}
