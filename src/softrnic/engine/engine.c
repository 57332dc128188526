/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/engine/engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sigmask.h"
#include "softrnic/engine/config.h"
#include "softrnic/engine/timers.h"

#define ENG_BATCH 64

static struct {
	pthread_mutex_t lock;
	int epfd, wakefd;
	bool running;
	pthread_t thread;
	struct list sources, graves, tasks;
	struct timers timers;
	uint64_t sleeping_until; /* what the thread's epoll_wait() was given; 0: awake */
	atomic_uint generation;
} eng = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epfd = -1,
	.wakefd = -1,
	.sources = LIST_INIT(eng.sources),
	.graves = LIST_INIT(eng.graves),
	.tasks = LIST_INIT(eng.tasks),
};

unsigned engine_generation(void)
{
	return atomic_load_explicit(&eng.generation, memory_order_relaxed);
}

/* With eng.lock. */
static void engine_wake(void)
{
	uint64_t one = 1;

	if (eng.wakefd >= 0 && write(eng.wakefd, &one, sizeof(one)) < 0)
		LOG_DEBUG("wake-up is pending already");
}

static void engine_unwake(void)
{
	uint64_t n;

	while (read(eng.wakefd, &n, sizeof(n)) > 0)
		;
}

static void run_timers(void)
{
	uint64_t now = clock_now_ns();
	struct eng_timer *timer;

	for (;;) {
		pthread_mutex_lock(&eng.lock);
		timer = timers_expired(&eng.timers, now);
		pthread_mutex_unlock(&eng.lock);
		if (!timer)
			return;
		timer->fire(timer);
	}
}

/* Each task that was queued when we started runs once; what it queues again waits its turn. */
static void run_tasks(void)
{
	struct list mine, *it;

	list_init(&mine);
	pthread_mutex_lock(&eng.lock);
	while ((it = list_pop(&eng.tasks)))
		list_add_tail(&mine, it);
	for (;;) {
		it = list_pop(&mine);
		if (!it)
			break;
		pthread_mutex_unlock(&eng.lock);
		struct eng_task *task = container_of(it, struct eng_task, link);
		task->run(task);
		pthread_mutex_lock(&eng.lock);
	}
	pthread_mutex_unlock(&eng.lock);
}

static void run_burials(void)
{
	struct list *it;

	for (;;) {
		pthread_mutex_lock(&eng.lock);
		it = list_pop(&eng.graves);
		pthread_mutex_unlock(&eng.lock);
		if (!it)
			return;
		struct eng_source *src = container_of(it, struct eng_source, grave);
		src->bury(src);
	}
}

static uint64_t sleep_until(void)
{
	uint64_t at;

	pthread_mutex_lock(&eng.lock);
	at = list_empty(&eng.tasks) && list_empty(&eng.graves) ? timers_next(&eng.timers) : 0;
	eng.sleeping_until = at;
	pthread_mutex_unlock(&eng.lock);
	return at;
}

static int epoll_timeout_ms(uint64_t until, uint64_t now)
{
	uint64_t ms;

	if (until == CLOCK_NEVER)
		return -1;
	if (until <= now)
		return 0;
	ms = (until - now + NSEC_PER_MS - 1) / NSEC_PER_MS;
	return ms > 60000 ? 60000 : (int)ms;
}

/* Wait for events; for a short, bounded time without giving up the CPU. */
static int engine_wait(struct epoll_event *evs)
{
	uint64_t now = clock_now_ns(), until = sleep_until();
	uint64_t spin_end = now + config_get()->spin_ns;
	int n;

	while (config_get()->spin_ns && until > now && now < spin_end) {
		n = epoll_wait(eng.epfd, evs, ENG_BATCH, 0);
		if (n != 0)
			return n;
		now = clock_now_ns();
	}
	return epoll_wait(eng.epfd, evs, ENG_BATCH, epoll_timeout_ms(until, now));
}

static void *engine_main(void *arg)
{
	struct epoll_event evs[ENG_BATCH];

	for (;;) {
		int n = engine_wait(evs);

		for (int i = 0; i < n; i++) {
			struct eng_source *src = evs[i].data.ptr;

			if (src)
				src->ready(src, evs[i].events);
			else
				engine_unwake();
		}
		run_timers();
		run_tasks();
		run_burials();
	}
	return arg;
}

static void engine_close(void)
{
	if (eng.epfd >= 0)
		close(eng.epfd);
	if (eng.wakefd >= 0)
		close(eng.wakefd);
	eng.epfd = eng.wakefd = -1;
}

void engine_atfork_prepare(void)
{
	pthread_mutex_lock(&eng.lock);
}

void engine_atfork_parent(void)
{
	pthread_mutex_unlock(&eng.lock);
}

/* Nothing is told to the peers, nor to the epoll set, which the parent goes on using. */
void engine_atfork_child(void)
{
	struct list *it, *tmp;

	atomic_fetch_add(&eng.generation, 1);
	engine_close();
	eng.running = false;
	eng.timers = (struct timers){0};
	list_for_each_safe (it, tmp, &eng.sources) {
		struct eng_source *src = container_of(it, struct eng_source, all);

		list_del(it);
		src->forked(src);
	}
	list_init(&eng.graves);
	list_init(&eng.tasks);
	pthread_mutex_unlock(&eng.lock);
}

static int engine_open(void)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

	eng.epfd = epoll_create1(EPOLL_CLOEXEC);
	eng.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eng.epfd < 0 || eng.wakefd < 0 || epoll_ctl(eng.epfd, EPOLL_CTL_ADD, eng.wakefd, &ev))
		return -errno;
	return 0;
}

/* With eng.lock. The application's signal handlers must never run in our thread. */
static int engine_start(void)
{
	sigset_t mask, old;
	int ret;

	if (eng.running)
		return 0;
	ret = engine_open();
	if (!ret) {
		sigmask_of_library_thread(&mask);
		pthread_sigmask(SIG_SETMASK, &mask, &old);
		ret = -pthread_create(&eng.thread, NULL, engine_main, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (ret) {
		engine_close();
		return ret;
	}
	pthread_setname_np(eng.thread, "softrnic");
	pthread_detach(eng.thread);
	eng.running = true;
	return 0;
}

static struct epoll_event engine_event(struct eng_source *src, bool output)
{
	return (struct epoll_event){
		.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (output ? EPOLLOUT : 0),
		.data.ptr = src,
	};
}

int engine_add(struct eng_source *src, int fd, bool output)
{
	struct epoll_event ev = engine_event(src, output);
	int ret;

	pthread_mutex_lock(&eng.lock);
	ret = engine_start();
	if (!ret) {
		list_add_tail(&eng.sources, &src->all);
		if (epoll_ctl(eng.epfd, EPOLL_CTL_ADD, fd, &ev)) {
			ret = -errno;
			list_del(&src->all);
		}
	}
	pthread_mutex_unlock(&eng.lock);
	return ret;
}

void engine_watch_output(struct eng_source *src, int fd, bool output)
{
	struct epoll_event ev = engine_event(src, output);

	if (epoll_ctl(eng.epfd, EPOLL_CTL_MOD, fd, &ev))
		LOG_ERROR("epoll_ctl: %m; a connection may stall");
}

void engine_remove(struct eng_source *src, int fd)
{
	pthread_mutex_lock(&eng.lock);
	list_del(&src->all);
	epoll_ctl(eng.epfd, EPOLL_CTL_DEL, fd, NULL);
	pthread_mutex_unlock(&eng.lock);
}

void engine_bury(struct eng_source *src)
{
	pthread_mutex_lock(&eng.lock);
	if (eng.running) {
		list_add_tail(&eng.graves, &src->grave);
		engine_wake();
		pthread_mutex_unlock(&eng.lock);
		return;
	}
	pthread_mutex_unlock(&eng.lock);
	src->bury(src);
}

void engine_set_timer(struct eng_timer *timer, uint64_t at)
{
	pthread_mutex_lock(&eng.lock);
	timers_set(&eng.timers, timer, at);
	if (at < eng.sleeping_until)
		engine_wake();
	pthread_mutex_unlock(&eng.lock);
}

bool engine_defer(struct eng_task *task)
{
	bool queued;

	pthread_mutex_lock(&eng.lock);
	queued = list_empty(&task->link);
	if (queued) {
		list_add_tail(&eng.tasks, &task->link);
		engine_wake();
	}
	pthread_mutex_unlock(&eng.lock);
	return queued;
}
