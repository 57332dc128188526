/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/ud_late.h"

#include <stdlib.h>
#include <string.h>

#include "softrnic/io/stall.h"

/* Limit of waiting messages, about as many as a socket's buffer holds by default. A message is
 * dropped only if accesses to the program's memory wait for seconds. */
#define LATE_MAX 64u

struct late_message {
	struct list link;
	struct ud_header header;
	struct ud_path path;
	size_t len;
	uint8_t payload[];
};

static struct late_message *late_copy(const struct ud_header *h, const struct ud_path *path,
				      const uint8_t *payload, size_t len)
{
	struct late_message *m = malloc(sizeof(*m) + len);

	if (!m)
		return NULL;
	m->header = *h;
	m->path = *path;
	m->len = len;
	memcpy(m->payload, payload, len);
	return m;
}

/* --- the thread of the engine ----------------------------------------------------------------- */

/* The next work. late_next() is called with the lock. */
struct late_work {
	struct late_message *message;
	bool sends;
};

static struct late_work late_next(struct ud_late *late)
{
	struct list *l = late->closed ? NULL : list_pop(&late->messages);
	struct late_work w = {.sends = late->sends && !late->closed};

	late->sends = false;
	if (l) {
		w.message = container_of(l, struct late_message, link);
		late->n--;
	}
	return w;
}

/* Called with the lock, which is released during the work. */
static void late_do(struct ud_late *late, struct late_work w)
{
	pthread_mutex_unlock(&late->lock);
	if (w.sends)
		late->send(late);
	if (w.message)
		late->receive(late, &w.message->header, &w.message->path, w.message->payload,
			      w.message->len);
	free(w.message);
	pthread_mutex_lock(&late->lock);
}

static void late_run(struct eng_task *task)
{
	struct ud_late *late = container_of(task, struct ud_late, task);
	struct late_work w;

	if (!engine_may_stall() && engine_hand_over(task))
		return;
	pthread_mutex_lock(&late->lock);
	for (w = late_next(late); w.sends || w.message; w = late_next(late))
		late_do(late, w);
	late->running = false;
	pthread_cond_broadcast(&late->idle);
	pthread_mutex_unlock(&late->lock);
}

/* Called with the lock. */
static void late_wake(struct ud_late *late)
{
	if (late->running)
		return;
	late->running = true;
	(void)engine_defer(&late->task);
}

/* --- the other threads ------------------------------------------------------------------------ */

void ud_late_init(struct ud_late *late)
{
	list_init(&late->task.link);
	late->task.run = late_run;
	pthread_mutex_init(&late->lock, NULL);
	pthread_cond_init(&late->idle, NULL);
	list_init(&late->messages);
}

/* Called with the lock. */
static void late_push(struct ud_late *late, struct late_message *m)
{
	if (!m || late->closed || late->n == LATE_MAX) {
		late->dropped++;
		free(m);
		return;
	}
	list_add_tail(&late->messages, &m->link);
	late->n++;
	late_wake(late);
}

bool ud_late_add(struct ud_late *late, bool slow, const struct ud_header *h,
		 const struct ud_path *path, const uint8_t *payload, size_t len)
{
	bool added;

	pthread_mutex_lock(&late->lock);
	added = slow || late->running || late->closed;
	if (added)
		late_push(late, late_copy(h, path, payload, len));
	pthread_mutex_unlock(&late->lock);
	return added;
}

void ud_late_send(struct ud_late *late)
{
	pthread_mutex_lock(&late->lock);
	if (!late->closed) {
		late->sends = true;
		late_wake(late);
	}
	pthread_mutex_unlock(&late->lock);
}

uint64_t ud_late_dropped(struct ud_late *late)
{
	uint64_t dropped;

	pthread_mutex_lock(&late->lock);
	dropped = late->dropped;
	pthread_mutex_unlock(&late->lock);
	return dropped;
}

void ud_late_close(struct ud_late *late)
{
	struct list *l;

	pthread_mutex_lock(&late->lock);
	late->closed = true;
	while (late->running)
		pthread_cond_wait(&late->idle, &late->lock);
	while ((l = list_pop(&late->messages)))
		free(container_of(l, struct late_message, link));
	late->n = 0;
	pthread_mutex_unlock(&late->lock);
}
