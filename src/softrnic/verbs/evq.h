/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evq.h -- a queue of events with a file descriptor that users may poll.
 *
 * The descriptor is readable exactly while an event is queued. Users may set O_NONBLOCK on it at
 * any time, and evq_pop() obeys the flag. The queue's mutex is a leaf lock.
 */
#ifndef VERBS_EVQ_H
#define VERBS_EVQ_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* One kind of event of one object. If a node is pushed while it is queued, only its count grows. */
struct evq_node {
	struct list link;
	unsigned count;
};

struct evq {
	pthread_mutex_t lock; /* may also guard what the queue's owner keeps about its events */
	struct list nodes;
	struct list link; /* link in the list of all queues, for fork() */
	int fd;
	bool signalled;
	unsigned takers; /* number of threads between evq_begin_take() and evq_end_take() */
};

int evq_init(struct evq *q);
void evq_fini(struct evq *q);
static inline void evq_node_init(struct evq_node *n)
{
	list_init(&n->link);
	n->count = 0;
}
void evq_push(struct evq *q, struct evq_node *n);
/* Like evq_push(), for a caller that holds the queue's mutex. */
void evq_push_locked(struct evq *q, struct evq_node *n);
/*
 * Wait for an event until the deadline. If `interruptible`, a signal ends the wait with EINTR, and
 * with O_NONBLOCK the function fails with EAGAIN instead of waiting. Returns 0, or -1 and sets
 * errno: ETIMEDOUT after the deadline, or EBADF if the application has closed the descriptor.
 * `taken` (if not NULL) is called under the queue's mutex. So when an object is destroyed, each of
 * its events is either queued or counted by `taken`.
 */
int evq_pop(struct evq *q, uint64_t deadline, bool interruptible, struct evq_node **n,
	    void (*taken)(struct evq_node *n));
/*
 * Take an event without a system call. The thread calls evq_begin_take(), then does work that may
 * push an event, and then calls evq_end_take(), which takes the event if there is one. Between
 * these calls the descriptor does not show whether the queue has events.
 */
void evq_begin_take(struct evq *q);
bool evq_end_take(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
/*
 * Call poll(2). The thread can be cancelled here, if cancel_state permits this, and nowhere else in
 * a wait: elsewhere it holds locks or an event. The caller has disabled cancellation. Returns the
 * result of poll(2), or -errno.
 */
int evq_poll(struct pollfd *fds, nfds_t n, int ms, int cancel_state);
/* Take the next event without waiting. Returns false if the queue is empty. */
bool evq_try(struct evq *q, struct evq_node **n, void (*taken)(struct evq_node *n));
bool evq_is_nonblocking(const struct evq *q);
/* Has the application closed the descriptor? Its number may now belong to a file that is always
 * readable, or never readable. */
bool evq_is_lost(const struct evq *q);
/* Returns the timeout for one poll(2) in a wait until the deadline, or 0 if the deadline has
 * passed. A wait without a deadline also polls with a timeout, because a closed descriptor wakes no
 * thread. */
int evq_wait_ms(uint64_t deadline);
/* Remove every event of n that was not popped. Returns the number of removed events. */
unsigned evq_cancel(struct evq *q, struct evq_node *n);
/* Move the nodes for which match() holds to another queue, in order. */
void evq_move(struct evq *from, struct evq *to, bool (*match)(struct evq_node *n, void *arg),
	      void *arg);
/* Remove and return the first node for which match() holds, or NULL. */
struct evq_node *evq_steal(struct evq *q, bool (*match)(struct evq_node *n, void *arg), void *arg);
/* Like evq_steal(), for a caller that holds the queue's mutex. */
struct evq_node *evq_steal_locked(struct evq *q, bool (*match)(struct evq_node *n, void *arg),
				  void *arg);

/* Called around fork(). In the child each descriptor number gets a new, empty queue. */
void evq_atfork_prepare(void);
void evq_atfork_parent(void);
void evq_atfork_child(void);

#endif
