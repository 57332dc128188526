/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evq.h -- a queue of events behind a file descriptor that users may poll.
 *
 * The descriptor is readable exactly while an event is queued, and evq_pop() obeys an
 * O_NONBLOCK that the user set on it at any time. The queue's mutex is a leaf lock.
 */
#ifndef VERBS_EVQ_H
#define VERBS_EVQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* One kind of event of one object; pushed while still queued, it only counts up. */
struct evq_node {
	struct list link;
	unsigned count;
};

struct evq {
	pthread_mutex_t lock;
	struct list nodes;
	struct list link; /* in the list of all queues, for fork() */
	int fd;
	bool signalled;
	unsigned takers; /* threads that will take what is pushed: evq_begin_take() */
};

int evq_init(struct evq *q);
void evq_fini(struct evq *q);
static inline void evq_node_init(struct evq_node *n)
{
	list_init(&n->link);
	n->count = 0;
}
void evq_push(struct evq *q, struct evq_node *n);
/*
 * Wait for an event (unless O_NONBLOCK: EAGAIN). 0, or -1 and errno. EBADF: the application has
 * closed the descriptor. `taken` (or NULL) is called before the queue's mutex is left: so when the
 * event's object is destroyed, the event is either in the queue or counted.
 */
int evq_pop(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
/* The same until a deadline, whatever O_NONBLOCK and signals say; then -1 and ETIMEDOUT. */
int evq_pop_until(struct evq *q, uint64_t deadline, struct evq_node **n,
		  void (*taken)(struct evq_node *n));
/*
 * Without a system call: this thread does what may push an event, and then evq_end_take() takes it,
 * if there is one. Between them the descriptor does not follow the queue.
 */
void evq_begin_take(struct evq *q);
bool evq_end_take(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
/* The next event, if there is one. */
bool evq_try(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
bool evq_is_nonblocking(const struct evq *q);
/* The application has closed the descriptor: what has its number now may be readable all the time,
 * or never. */
bool evq_is_lost(const struct evq *q);
/* The timeout of one poll(2) of a wait that ends at the deadline; 0: it has passed. A wait without
 * a deadline is cut, too, as a lost descriptor wakes no thread. */
int evq_wait_ms(uint64_t deadline);
/* Take back every event of n that was not popped; returns how many. */
unsigned evq_cancel(struct evq *q, struct evq_node *n);
/* Move the nodes for which match() holds to another queue, in order. */
void evq_move(struct evq *from, struct evq *to, bool (*match)(struct evq_node *n, void *arg),
	      void *arg);
/* Take the first node for which match() holds, or NULL. */
struct evq_node *evq_steal(struct evq *q, bool (*match)(struct evq_node *n, void *arg), void *arg);

/* Around fork(): in the child each descriptor number gets a fresh, empty queue. */
void evq_atfork_prepare(void);
void evq_atfork_parent(void);
void evq_atfork_child(void);

#endif
