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

/* One kind of event of one object. A push of a node that is still queued only raises its count. */
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
	unsigned takers; /* threads that will take pushed events: evq_begin_take() */
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
 * Wait for an event; with O_NONBLOCK do not wait (EAGAIN). Returns 0, or -1 and sets errno. EBADF:
 * the application has closed the descriptor. `taken` (or NULL) is called under the queue's mutex,
 * so that an event is always either queued or counted when its object is destroyed.
 */
int evq_pop(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
/* As evq_pop(), until a deadline, regardless of O_NONBLOCK and signals. Returns -1 and sets
 * ETIMEDOUT after the deadline. */
int evq_pop_until(struct evq *q, uint64_t deadline, struct evq_node **n,
		  void (*taken)(struct evq_node *n));
/*
 * Take an event without a system call: this thread calls evq_begin_take(), then does work that may
 * push an event, then calls evq_end_take(), which takes the event if there is one. Between the two
 * calls the descriptor does not follow the queue.
 */
void evq_begin_take(struct evq *q);
bool evq_end_take(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
/* Take the next event. Returns false if there is none. */
bool evq_try(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
bool evq_is_nonblocking(const struct evq *q);
/* The application has closed the descriptor. Its number may now belong to a file that is always
 * readable, or never. */
bool evq_is_lost(const struct evq *q);
/* The timeout of one poll(2) of a wait until the deadline; 0: the deadline has passed. A wait
 * without a deadline has a timeout, too, because a closed descriptor wakes no thread. */
int evq_wait_ms(uint64_t deadline);
/* Remove every event of n that was not popped; returns their count. */
unsigned evq_cancel(struct evq *q, struct evq_node *n);
/* Move the nodes for which match() holds to another queue, in order. */
void evq_move(struct evq *from, struct evq *to, bool (*match)(struct evq_node *n, void *arg),
	      void *arg);
/* Take the first node for which match() holds; NULL: there is none. */
struct evq_node *evq_steal(struct evq *q, bool (*match)(struct evq_node *n, void *arg), void *arg);

/* Around fork(): in the child each descriptor number gets a fresh, empty queue. */
void evq_atfork_prepare(void);
void evq_atfork_parent(void);
void evq_atfork_child(void);

#endif
