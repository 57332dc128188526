/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/evq.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "base/ownfd.h"
#include "base/poll.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = LIST_INIT(all);

int evq_init(struct evq *q)
{
	q->fd = ownfd_event(0);
	if (q->fd < 0)
		return -errno;
	pthread_mutex_init(&q->lock, NULL);
	list_init(&q->nodes);
	q->signalled = false;
	q->takers = 0;
	pthread_mutex_lock(&all_lock);
	list_add_tail(&all, &q->link);
	pthread_mutex_unlock(&all_lock);
	return 0;
}

void evq_fini(struct evq *q)
{
	pthread_mutex_lock(&all_lock);
	list_del(&q->link);
	pthread_mutex_unlock(&all_lock);
	ownfd_close_marked(q->fd);
	pthread_mutex_destroy(&q->lock);
}

/* Make the descriptor readable if the queue has events, and unreadable if not. The descriptor's
 * counter is 1 or 0, so neither call blocks. */
static void evq_signal(struct evq *q)
{
	bool want = !list_empty(&q->nodes);

	if (want == q->signalled || q->takers)
		return;
	if (want ? ownfd_wake(q->fd) : ownfd_clear(q->fd))
		q->signalled = want;
}

void evq_push_locked(struct evq *q, struct evq_node *n)
{
	if (n->count++ == 0)
		list_add_tail(&q->nodes, &n->link);
	evq_signal(q);
}

void evq_push(struct evq *q, struct evq_node *n)
{
	pthread_mutex_lock(&q->lock);
	evq_push_locked(q, n);
	pthread_mutex_unlock(&q->lock);
}

static bool evq_take_as(struct evq *q, bool taker, struct evq_node **n,
			void (*taken)(struct evq_node *n))
{
	struct list *l;

	pthread_mutex_lock(&q->lock);
	l = list_pop(&q->nodes);
	*n = l ? container_of(l, struct evq_node, link) : NULL;
	if (*n && --(*n)->count > 0)
		list_add_tail(&q->nodes, l);
	if (*n && taken)
		taken(*n);
	q->takers -= taker;
	evq_signal(q);
	pthread_mutex_unlock(&q->lock);
	return *n != NULL;
}

bool evq_try(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n))
{
	return evq_take_as(q, false, n, taken);
}

void evq_begin_take(struct evq *q)
{
	pthread_mutex_lock(&q->lock);
	q->takers++;
	pthread_mutex_unlock(&q->lock);
}

bool evq_end_take(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n))
{
	return evq_take_as(q, true, n, taken);
}

bool evq_is_nonblocking(const struct evq *q)
{
	int flags = fcntl(q->fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

bool evq_is_lost(const struct evq *q)
{
	return !ownfd_is_marked(q->fd);
}

int evq_wait_ms(uint64_t deadline)
{
	int ms = poll_ms_left(deadline);

	return ms < 0 || ms > OWNFD_LOOK_MS ? OWNFD_LOOK_MS : ms;
}

int evq_poll(struct pollfd *fds, nfds_t n, int ms, int cancel_state)
{
	int ready, unused;

	pthread_setcancelstate(cancel_state, &unused);
	ready = poll(fds, n, ms);
	if (ready < 0)
		ready = -errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
	return ready;
}

/* Wait once. Returns 0, or -errno if the caller must not wait again. */
static int evq_sleep(const struct evq *q, uint64_t deadline, int cancel_state)
{
	struct pollfd pfd = {.fd = q->fd, .events = POLLIN};
	int ms = evq_wait_ms(deadline);
	int ready = evq_poll(&pfd, 1, ms, cancel_state);

	if (ready < 0)
		return ready;
	if (!ms)
		return -ETIMEDOUT;
	return evq_is_lost(q) ? -EBADF : 0;
}

/* Returns 0 or -errno. */
static int evq_await(struct evq *q, uint64_t deadline, bool interruptible, int cancel_state,
		     struct evq_node **n, void (*taken)(struct evq_node *n))
{
	int err = 0;

	while (!evq_try(q, n, taken)) {
		if (!err && interruptible && evq_is_nonblocking(q))
			err = -EAGAIN;
		if (err && (err != -EINTR || interruptible))
			return err;
		err = evq_sleep(q, deadline, cancel_state);
	}
	return 0;
}

int evq_pop(struct evq *q, uint64_t deadline, bool interruptible, struct evq_node **n,
	    void (*taken)(struct evq_node *n))
{
	int state, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = evq_await(q, deadline, interruptible, state, n, taken);
	pthread_setcancelstate(state, &state);
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

unsigned evq_cancel(struct evq *q, struct evq_node *n)
{
	unsigned count;

	pthread_mutex_lock(&q->lock);
	count = n->count;
	n->count = 0;
	list_del(&n->link);
	evq_signal(q);
	pthread_mutex_unlock(&q->lock);
	return count;
}

static struct evq_node *evq_find(struct evq *q, bool (*match)(struct evq_node *, void *), void *arg)
{
	struct list *it;

	list_for_each (it, &q->nodes) {
		struct evq_node *n = container_of(it, struct evq_node, link);

		if (match(n, arg))
			return n;
	}
	return NULL;
}

struct evq_node *evq_steal_locked(struct evq *q, bool (*match)(struct evq_node *, void *),
				  void *arg)
{
	struct evq_node *n = evq_find(q, match, arg);

	if (n) {
		list_del(&n->link);
		n->count = 0;
	}
	evq_signal(q);
	return n;
}

struct evq_node *evq_steal(struct evq *q, bool (*match)(struct evq_node *, void *), void *arg)
{
	struct evq_node *n;

	pthread_mutex_lock(&q->lock);
	n = evq_steal_locked(q, match, arg);
	pthread_mutex_unlock(&q->lock);
	return n;
}

void evq_move(struct evq *from, struct evq *to, bool (*match)(struct evq_node *, void *), void *arg)
{
	struct evq_node *n;

	while ((n = evq_steal(from, match, arg)))
		evq_push(to, n);
}

void evq_atfork_prepare(void)
{
	pthread_mutex_lock(&all_lock);
}

void evq_atfork_parent(void)
{
	pthread_mutex_unlock(&all_lock);
}

/* Replace the descriptor in a forked child. The child shares the eventfd with its parent, and
 * reading it would consume an event of the parent. Users have the descriptor's number, so the new
 * eventfd gets this number. */
static void evq_renew(const struct evq *q)
{
	int fd;

	if (evq_is_lost(q))
		return;
	fd = ownfd_event(evq_is_nonblocking(q) ? EFD_NONBLOCK : 0);
	if (fd < 0)
		return;
	dup3(fd, q->fd, O_CLOEXEC);
	close(fd);
}

void evq_atfork_child(void)
{
	struct list *it;

	list_for_each (it, &all) {
		struct evq *q = container_of(it, struct evq, link);

		evq_renew(q);
		pthread_mutex_init(&q->lock, NULL);
		list_init(&q->nodes);
		q->signalled = false;
		q->takers = 0;
	}
	pthread_mutex_unlock(&all_lock);
}
