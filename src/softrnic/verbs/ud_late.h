/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_late.h -- messages for a datagram queue pair with memory whose stores may wait for a file
 * system.
 *
 * The thread that reads a port holds the port's lock. If it waited in a store to such memory, all
 * queue pairs of the port would wait. So this thread only copies the message into the list. A
 * thread of the engine that is allowed to wait gives the messages to the queue pair, in order. The
 * engine's thread also sends for the queue pair, because another thread may hold the queue pair's
 * lock during such a wait.
 *
 * The lock of the list is a leaf lock.
 */
#ifndef VERBS_UD_LATE_H
#define VERBS_UD_LATE_H

#include <pthread.h>

#include "base/list.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/ud_port.h"

struct ud_late {
	struct eng_task task;
	/* called by the thread of the engine, without a lock */
	void (*receive)(struct ud_late *late, const struct ud_header *h, const struct ud_path *path,
			const uint8_t *payload, size_t len);
	void (*send)(struct ud_late *late);
	pthread_mutex_t lock; /* guards the following members */
	pthread_cond_t idle;
	struct list messages;
	unsigned n;
	uint64_t dropped; /* number of messages that were dropped */
	bool sends;       /* send() is due */
	bool running;     /* the task is queued, or runs */
	bool closed;
};

void ud_late_init(struct ud_late *late);
/*
 * Keep a copy of the message for the thread of the engine. If `slow` is false and no message waits,
 * the function keeps no copy and returns false: the caller must give the message to the queue pair
 * itself.
 */
bool ud_late_add(struct ud_late *late, bool slow, const struct ud_header *h,
		 const struct ud_path *path, const uint8_t *payload, size_t len);
/* Let the thread of the engine call send(). */
void ud_late_send(struct ud_late *late);
/* Number of messages that were dropped because too many waited. */
uint64_t ud_late_dropped(struct ud_late *late);
/* Drop the messages, and wait for the thread of the engine. After this call the thread makes no
 * call, and further messages are dropped. */
void ud_late_close(struct ud_late *late);

#endif
