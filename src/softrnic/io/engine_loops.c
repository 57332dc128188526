/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_loops.c -- decides how many loops there are, starts them, and assigns sources to them. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine_impl.h"

/* A new loop is made only if every loop has at least this many sources. With more sources in a
 * loop, its thread is more often already awake when an event arrives. */
#define LOOP_CROWD 4

static struct eng_loop first = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.poller = {.epfd = -1, .wakefd = -1},
	.sources = LIST_INIT(first.sources),
	.to_free = LIST_INIT(first.to_free),
	.of_parent = LIST_INIT(first.of_parent),
	.tasks = LIST_INIT(first.tasks),
	.runners = LIST_INIT(first.runners),
};

struct eng eng = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.loop = {&first},
	.loops = 1,
	.guard_lock = PTHREAD_MUTEX_INITIALIZER,
	.work = {.epfd = -1, .wakefd = -1},
	.runners = LIST_INIT(eng.runners),
	.handed = LIST_INIT(eng.handed),
};

struct eng_loop *engine_loop_of(const struct eng_source *src)
{
	return src && src->loop ? src->loop : &first;
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

/* --- starting a loop ------------------------------------------------------------------------ */

/* Called with eng.lock: prepare a loop, so that its leader can run. Returns 0 or -errno. */
static int loop_prepare(struct eng_loop *l)
{
	struct eng_runner *r = calloc(1, sizeof(*r));
	int ret = r ? guard_start() : -ENOMEM;

	if (!ret)
		ret = poller_open(&l->poller);
	if (ret) {
		poller_close(&l->poller);
		free(r);
		return ret;
	}
	r->loop = l;
	r->leads = true;
	pthread_mutex_lock(&l->lock);
	list_add_tail(&l->runners, &r->link);
	l->leader = r;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* Start the leader's thread, which then owns the struct of the leader. Returns 0 or -errno. */
static int loop_launch(struct eng_loop *l)
{
	struct eng_runner *r = l->leader;
	int ret = engine_thread(leader_main, r, "softrnic");

	pthread_mutex_lock(&l->lock);
	l->running = !ret;
	if (ret) {
		list_del(&r->link);
		l->leader = NULL;
		poller_close(&l->poller);
		free(r);
	}
	pthread_mutex_unlock(&l->lock);
	return ret;
}

int loop_start(struct eng_loop *l)
{
	int ret = 0;

	pthread_mutex_lock(&eng.lock);
	/* only a thread with eng.lock starts the first loop, so no two threads start it */
	if (!l->running) {
		ret = loop_prepare(l);
		if (!ret)
			ret = loop_launch(l);
	}
	pthread_mutex_unlock(&eng.lock);
	return ret;
}

/* --- more loops ----------------------------------------------------------------------------- */

static struct eng_loop *loop_new(unsigned index)
{
	struct eng_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->index = index;
	pthread_mutex_init(&l->lock, NULL);
	l->poller = (struct poller){.epfd = -1, .wakefd = -1};
	list_init(&l->sources);
	list_init(&l->to_free);
	list_init(&l->of_parent);
	list_init(&l->tasks);
	list_init(&l->runners);
	return l;
}

/* Called with eng.lock. */
static struct eng_loop *loops_least_loaded(void)
{
	struct eng_loop *least = eng.loop[0];

	for (unsigned i = 1; i < eng.loops; i++)
		if (atomic_load(&eng.loop[i]->load) < atomic_load(&least->load))
			least = eng.loop[i];
	return least;
}

/* Called with eng.lock. The function releases the lock while a thread starts, because the start can
 * take long, and the guard needs the lock meanwhile. If the start fails, the existing loops do all
 * the work. */
static void loops_grow(void)
{
	struct eng_loop **l = &eng.loop[eng.loops];
	int ret;

	eng.opening = true;
	if (!*l)
		*l = loop_new(eng.loops);
	ret = *l ? loop_prepare(*l) : -ENOMEM;
	if (!ret) {
		pthread_mutex_unlock(&eng.lock);
		ret = loop_launch(*l);
		pthread_mutex_lock(&eng.lock);
	}
	eng.opening = false;
	if (ret)
		eng.full = true;
	else
		stall_expect_in(++eng.loops);
}

void engine_assign(struct eng_source *src)
{
	unsigned max = config_get()->threads;

	pthread_mutex_lock(&eng.lock);
	/* While a thread waits for a file system, it may be impossible to start threads. */
	if (atomic_load(&loops_least_loaded()->load) >= LOOP_CROWD && !eng.opening && !eng.full &&
	    eng.loops < max && !atomic_load(&eng.stalled))
		loops_grow();
	src->loop = loops_least_loaded();
	atomic_fetch_add(&src->loop->load, 1);
	pthread_mutex_unlock(&eng.lock);
}

/* In a forked child: sources refer to loops, so the loops stay allocated. All loops except the
 * first are started again on demand. */
void loops_atfork_child(void (*child)(struct eng_loop *l))
{
	eng.loops = 1;
	eng.opening = eng.full = false;
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++) {
		atomic_store(&eng.loop[i]->load, 0);
		child(eng.loop[i]);
	}
}
