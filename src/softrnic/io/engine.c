/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "softrnic/io/engine_impl.h"

struct eng eng = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.poller = {.epfd = -1, .wakefd = -1},
	.sources = LIST_INIT(eng.sources),
	.to_free = LIST_INIT(eng.to_free),
	.tasks = LIST_INIT(eng.tasks),
	.runners = LIST_INIT(eng.runners),
	.work = PTHREAD_COND_INITIALIZER,
	.handed = LIST_INIT(eng.handed),
};

unsigned engine_generation(void)
{
	return atomic_load_explicit(&eng.generation, memory_order_relaxed);
}

/* --- what descriptors stand for ----------------------------------------------------------- */

/* All of them with eng.lock. An event may be taken out of the kernel long before it is looked at,
 * and mean a descriptor that has been closed since: hence the generation. */
static int engine_slot_take(struct eng_source *src, int fd)
{
	size_t n = eng.num_slots ? eng.num_slots : 64;
	struct eng_slot *more;

	while (n <= (size_t)fd)
		n *= 2;
	if (n > eng.num_slots) {
		more = reallocarray(eng.slots, n, sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + eng.num_slots, 0, (n - eng.num_slots) * sizeof(*more));
		eng.slots = more;
		eng.num_slots = n;
	}
	eng.slots[fd] = (struct eng_slot){.src = src, .generation = ++eng.slot_generation};
	return 0;
}

static uint64_t engine_slot_data(int fd)
{
	return (uint64_t)eng.slots[fd].generation << 32 | (uint32_t)fd;
}

/* --- life --------------------------------------------------------------------------------- */

void engine_atfork_prepare(void)
{
	pthread_mutex_lock(&eng.lock);
}

void engine_atfork_parent(void)
{
	pthread_mutex_unlock(&eng.lock);
}

static void engine_forget_runners(void)
{
	struct list *it;

	while ((it = list_pop(&eng.runners)))
		free(container_of(it, struct eng_runner, link));
	eng.leader = NULL;
}

/* Neither the peers nor the parent, which goes on using its poller, are affected. */
void engine_atfork_child(void)
{
	struct list *it, *tmp;

	atomic_fetch_add(&eng.generation, 1);
	poller_close(&eng.poller);
	eng.running = false;
	eng.timers = (struct timers){0};
	free(eng.slots);
	eng.slots = NULL;
	eng.num_slots = 0;
	engine_forget_runners();
	stall_atfork_child();
	list_for_each_safe (it, tmp, &eng.sources) {
		struct eng_source *src = container_of(it, struct eng_source, all);

		list_del(it);
		src->forked(src);
	}
	list_init(&eng.to_free);
	list_init(&eng.tasks);
	pthread_mutex_unlock(&eng.lock);
}

int engine_thread(void *(*fn)(void *), void *arg, const char *name)
{
	pthread_t thread;
	int ret = thread_start(&thread, 0, fn, arg);

	if (ret)
		return ret;
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}

/* With eng.lock. 0 or -errno; the runner is its thread's then. */
static int leader_start(struct eng_runner *r)
{
	int ret;

	r->leads = true;
	ret = engine_thread(leader_main, r, "softrnic");
	if (ret)
		return ret;
	list_add_tail(&eng.runners, &r->link);
	eng.leader = r;
	return 0;
}

/* With eng.lock. */
static int engine_start(void)
{
	struct eng_runner *r;
	int ret;

	if (eng.running)
		return 0;
	r = calloc(1, sizeof(*r));
	ret = r ? poller_open(&eng.poller) : -ENOMEM;
	if (!ret)
		ret = guard_start();
	if (!ret)
		ret = leader_start(r);
	if (ret) {
		poller_close(&eng.poller);
		free(r);
		return ret;
	}
	eng.running = true; /* the guard starts the spare threads, if there are to be any */
	return 0;
}

/* With eng.lock. */
static int engine_source_register(struct eng_source *src, int fd, bool output)
{
	int ret = engine_slot_take(src, fd);

	if (ret)
		return ret;
	ret = poller_add(&eng.poller, fd, engine_slot_data(fd), output);
	if (ret)
		eng.slots[fd].src = NULL;
	else
		list_add_tail(&eng.sources, &src->all);
	return ret;
}

int engine_add(struct eng_source *src, int fd, bool output)
{
	int ret;

	pthread_mutex_lock(&eng.lock);
	ret = engine_start();
	if (!ret)
		ret = engine_source_register(src, fd, output);
	pthread_mutex_unlock(&eng.lock);
	return ret;
}

void engine_watch(int fd, bool input, bool output)
{
	uint64_t data;
	int ret;

	pthread_mutex_lock(&eng.lock);
	data = engine_slot_data(fd);
	pthread_mutex_unlock(&eng.lock);
	ret = poller_change(&eng.poller, fd, data, input, output);
	if (ret)
		LOG_ERROR("epoll_ctl: %s; a connection may stall", strerror(-ret));
}

void engine_remove(struct eng_source *src, int fd)
{
	pthread_mutex_lock(&eng.lock);
	list_del(&src->all);
	eng.slots[fd].src = NULL;
	src->missed = 0;
	poller_remove(&eng.poller, fd);
	pthread_mutex_unlock(&eng.lock);
}

int engine_add_more(struct eng_source *src, int fd)
{
	int ret;

	pthread_mutex_lock(&eng.lock);
	ret = engine_slot_take(src, fd);
	if (!ret)
		ret = poller_add(&eng.poller, fd, engine_slot_data(fd), false);
	if (ret && (size_t)fd < eng.num_slots)
		eng.slots[fd].src = NULL;
	pthread_mutex_unlock(&eng.lock);
	return ret;
}

void engine_remove_more(struct eng_source *src, int fd)
{
	pthread_mutex_lock(&eng.lock);
	eng.slots[fd].src = NULL;
	poller_remove(&eng.poller, fd);
	pthread_mutex_unlock(&eng.lock);
}

void engine_free_later(struct eng_source *src)
{
	pthread_mutex_lock(&eng.lock);
	if (eng.running) {
		src->closed = true;
		if (src->running == 0) {
			list_add_tail(&eng.to_free, &src->free_link);
			poller_wake(&eng.poller);
		}
		pthread_mutex_unlock(&eng.lock);
		return;
	}
	pthread_mutex_unlock(&eng.lock);
	src->free(src);
}

void engine_set_timer(struct eng_timer *timer, uint64_t at)
{
	pthread_mutex_lock(&eng.lock);
	timers_set(&eng.timers, timer, at);
	if (at < eng.sleeping_until)
		poller_wake(&eng.poller);
	pthread_mutex_unlock(&eng.lock);
}

bool engine_defer(struct eng_task *task)
{
	bool queued;

	pthread_mutex_lock(&eng.lock);
	queued = list_empty(&task->link);
	if (queued) {
		list_add_tail(&eng.tasks, &task->link);
		poller_wake(&eng.poller);
	}
	pthread_mutex_unlock(&eng.lock);
	return queued;
}
