/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/engine_impl.h"

unsigned engine_generation(void)
{
	return atomic_load_explicit(&eng.generation, memory_order_relaxed);
}

/* --- slots of descriptors ----------------------------------------------------------------- */

/* Assign and free a slot for a descriptor. An event may be handled long after the kernel reported
 * it, when its descriptor is already closed. The slot's generation shows whether this is so. The
 * caller holds the lock. */
static int engine_slot_take(struct eng_loop *l, struct eng_source *src, int fd)
{
	size_t n = l->num_slots ? l->num_slots : 64;
	struct eng_slot *more;

	while (n <= (size_t)fd)
		n *= 2;
	if (n > l->num_slots) {
		more = reallocarray(l->slots, n, sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + l->num_slots, 0, (n - l->num_slots) * sizeof(*more));
		l->slots = more;
		l->num_slots = n;
	}
	l->slots[fd] = (struct eng_slot){.src = src, .generation = ++l->slot_generation};
	return 0;
}

static uint64_t engine_slot_data(const struct eng_loop *l, int fd)
{
	return (uint64_t)l->slots[fd].generation << 32 | (uint32_t)fd;
}

/* --- fork() ------------------------------------------------------------------------------- */

void engine_atfork_prepare(void)
{
	pthread_mutex_lock(&eng.lock);
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++)
		pthread_mutex_lock(&eng.loop[i]->lock);
}

static void engine_atfork_release(void)
{
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++)
		pthread_mutex_unlock(&eng.loop[i]->lock);
	pthread_mutex_unlock(&eng.lock);
}

void engine_atfork_parent(void)
{
	engine_atfork_release();
}

static void engine_forget_runners(struct list *runners)
{
	struct list *it;

	while ((it = list_pop(runners)))
		free(container_of(it, struct eng_runner, link));
}

/* Close the loop's descriptors in a forked child. This affects neither the peers nor the parent,
 * which continues to use its poller. */
static void engine_loop_in_child(struct eng_loop *l)
{
	struct list *it, *tmp;

	poller_close(&l->poller);
	l->running = l->vacant = false;
	l->timers = (struct timers){0};
	l->spin = (struct eng_spin){.n = 0};
	free(l->slots);
	l->slots = NULL;
	l->num_slots = 0;
	engine_forget_runners(&l->runners);
	l->leader = NULL;
	list_for_each_safe (it, tmp, &l->sources) {
		struct eng_source *src = container_of(it, struct eng_source, all);

		list_del(it);
		src->forked(src);
	}
	/* The parent frees these sources. Freeing the copies could end the parent's connections, so
	 * they stay allocated, and the list keeps them reachable for a search for leaks. */
	while ((it = list_pop(&l->to_free)))
		list_add_tail(&l->of_parent, it);
	list_init(&l->tasks);
	l->num_tasks = 0;
}

void engine_atfork_child(void)
{
	atomic_fetch_add(&eng.generation, 1);
	engine_here = NULL;
	engine_forget_runners(&eng.runners);
	stall_atfork_child();
	loops_atfork_child(engine_loop_in_child);
	engine_atfork_release();
}

/* --- sources ------------------------------------------------------------------------------ */

/* Called with the lock. `data` is the number that the poller will report for this descriptor. */
static int engine_source_register(struct eng_loop *l, struct eng_source *src, int fd,
				  uint64_t *data)
{
	int ret = engine_slot_take(l, src, fd);

	if (ret)
		return ret;
	list_add_tail(&l->sources, &src->all);
	*data = engine_slot_data(l, fd);
	return 0;
}

/* Called with the lock. */
static void engine_source_unregister(struct eng_loop *l, struct eng_source *src, int fd)
{
	list_del(&src->all);
	l->slots[fd].src = NULL;
	src->missed = 0;
}

/* The poller is called without the lock. Otherwise it would wake the leader, which would then have
 * to wait for the lock. */
int engine_add(struct eng_source *src, int fd, bool output)
{
	struct eng_loop *l = engine_loop_of(src);
	uint64_t data;
	int ret = 0;

	pthread_mutex_lock(&l->lock);
	if (!l->running) {
		pthread_mutex_unlock(&l->lock);
		ret = loop_start(l);
		pthread_mutex_lock(&l->lock);
	}
	if (!ret)
		ret = engine_source_register(l, src, fd, &data);
	pthread_mutex_unlock(&l->lock);
	if (ret)
		return ret;
	ret = poller_add(&l->poller, fd, data, output);
	if (!ret)
		return 0;
	pthread_mutex_lock(&l->lock);
	engine_source_unregister(l, src, fd);
	pthread_mutex_unlock(&l->lock);
	return ret;
}

void engine_watch(struct eng_source *src, int fd, bool input, bool output)
{
	struct eng_loop *l = engine_loop_of(src);
	uint64_t data;
	int ret;

	pthread_mutex_lock(&l->lock);
	data = engine_slot_data(l, fd);
	pthread_mutex_unlock(&l->lock);
	ret = poller_change(&l->poller, fd, data, input, output);
	if (ret)
		LOG_ERROR("epoll_ctl: %s; a connection may stall", strerror(-ret));
}

void engine_remove(struct eng_source *src, int fd)
{
	struct eng_loop *l = engine_loop_of(src);

	pthread_mutex_lock(&l->lock);
	engine_source_unregister(l, src, fd);
	poller_remove(&l->poller, fd);
	pthread_mutex_unlock(&l->lock);
}

void engine_free(struct eng_source *src)
{
	if (src->loop)
		atomic_fetch_sub(&src->loop->load, 1);
	src->free(src);
}

/* Will the leader sleep beyond the time `at`? The caller holds the lock. A leader that is awake
 * checks for new deadlines before it sleeps. */
static bool engine_sleeps_beyond(struct eng_loop *l, uint64_t at)
{
	return at < atomic_load(&l->sleeping_until);
}

int engine_add_more(struct eng_source *src, int fd)
{
	struct eng_loop *l = engine_loop_of(src);
	int ret;

	pthread_mutex_lock(&l->lock);
	ret = engine_slot_take(l, src, fd);
	if (!ret)
		ret = poller_add(&l->poller, fd, engine_slot_data(l, fd), false);
	if (ret && (size_t)fd < l->num_slots)
		l->slots[fd].src = NULL;
	pthread_mutex_unlock(&l->lock);
	return ret;
}

void engine_remove_more(struct eng_source *src, int fd)
{
	struct eng_loop *l = engine_loop_of(src);

	pthread_mutex_lock(&l->lock);
	l->slots[fd].src = NULL;
	poller_remove(&l->poller, fd);
	pthread_mutex_unlock(&l->lock);
}

/* Free the source after its last callback. A listener is freed immediately, because this closes its
 * descriptor. A connection is freed a little later, together with others. */
void engine_free_later(struct eng_source *src)
{
	uint64_t at = src->loop ? clock_now_ns() + ENGINE_SOON_NS : 0;
	struct eng_loop *l = engine_loop_of(src);
	bool wake = false;

	pthread_mutex_lock(&l->lock);
	if (l->running) {
		src->closed = true;
		if (src->running == 0) {
			list_add_tail(&l->to_free, &src->free_link);
			wake = engine_sleeps_beyond(l, at);
		}
		pthread_mutex_unlock(&l->lock);
		if (wake)
			poller_wake(&l->poller);
		return;
	}
	pthread_mutex_unlock(&l->lock);
	engine_free(src);
}

void engine_set_timer(struct eng_timer *timer, uint64_t at)
{
	struct eng_loop *l = engine_loop_of(timer->source);
	bool wake;

	pthread_mutex_lock(&l->lock);
	timers_set(&l->timers, timer, at);
	wake = engine_sleeps_beyond(l, at);
	pthread_mutex_unlock(&l->lock);
	if (wake)
		poller_wake(&l->poller);
}

bool engine_defer(struct eng_task *task)
{
	struct eng_loop *l = engine_loop_of(task->source);
	bool queued, wake = false;

	pthread_mutex_lock(&l->lock);
	queued = task->queued;
	if (!queued) {
		task->queued = true;
		list_add_tail(&l->tasks, &task->link);
		l->num_tasks++;
		wake = engine_sleeps_beyond(l, 0);
	}
	pthread_mutex_unlock(&l->lock);
	if (wake)
		poller_wake(&l->poller);
	return !queued;
}
