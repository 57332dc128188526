/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_spin.c -- before it sleeps, the leader looks for a short, bounded time without giving up
 * the CPU: for events, and for what is pending at sources that something came to lately and that
 * can say so without a system call (rings in shared memory). These report nothing meanwhile, so
 * that their peers wake nobody.
 */
#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine_impl.h"

#define SPIN_SOURCES  16   /* of one loop; further ones are reported as ever */
#define SPIN_EVENT_NS 5000 /* beside sources: so often, events are looked for */
#define SPIN_LOOKS    16   /* at sources, between two looks at the clock */

static inline void spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

struct spin {
	struct eng_runner *me;
	struct eng_source *src[SPIN_SOURCES];
	unsigned n;
	uint64_t events_at, end;
};

bool engine_spin(struct eng_source *src)
{
	struct eng_loop *l = engine_loop_of(src);
	bool spins;

	if (!engine_here || engine_here->loop != l || !config_get()->spin_ns)
		return false;
	pthread_mutex_lock(&l->lock);
	spins = l->num_spun < SPIN_SOURCES && list_empty(&src->spun) && !src->closed;
	if (spins) {
		list_add_tail(&l->spun, &src->spun);
		l->num_spun++;
	}
	pthread_mutex_unlock(&l->lock);
	return spins;
}

void engine_spin_leave(struct eng_loop *l, struct eng_source *src)
{
	if (!src->spun.next || list_empty(&src->spun))
		return;
	list_del(&src->spun);
	l->num_spun--;
}

/* The sources stay while they are looked after. */
static void spin_begin(struct spin *s)
{
	struct eng_loop *l = s->me->loop;
	struct list *it;

	pthread_mutex_lock(&l->lock);
	list_for_each (it, &l->spun) {
		struct eng_source *src = container_of(it, struct eng_source, spun);

		src->running++;
		s->src[s->n++] = src;
	}
	pthread_mutex_unlock(&l->lock);
}

static void spin_end(struct spin *s)
{
	struct eng_loop *l = s->me->loop;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < s->n; i++)
		if (--s->src[i]->running == 0 && s->src[i]->closed)
			list_add_tail(&l->to_free, &s->src[i]->free_link);
	pthread_mutex_unlock(&l->lock);
	s->n = 0;
}

/* A callback like any other. False: it took long, and another thread leads. */
static bool spin_call(struct spin *s, struct eng_source *src, void (*fn)(struct eng_source *src))
{
	struct eng_loop *l = s->me->loop;
	bool leads;

	pthread_mutex_lock(&l->lock);
	runner_begin(s->me, src);
	pthread_mutex_unlock(&l->lock);
	fn(src);
	engine_runner_finish(s->me);
	pthread_mutex_lock(&l->lock);
	leads = s->me->leads;
	pthread_mutex_unlock(&l->lock);
	return leads;
}

/* Nothing came: from now on it is reported. Something that comes just then begins a new spin. */
static int spin_rest(struct spin *s)
{
	struct eng_loop *l = s->me->loop;
	bool again;

	for (unsigned i = 0; i < s->n; i++) {
		pthread_mutex_lock(&l->lock);
		engine_spin_leave(l, s->src[i]);
		pthread_mutex_unlock(&l->lock);
		if (!spin_call(s, s->src[i], s->src[i]->rest))
			return 0;
	}
	pthread_mutex_lock(&l->lock);
	again = l->num_spun > 0;
	pthread_mutex_unlock(&l->lock);
	return again ? 0 : -1;
}

/* Look at each source: 1: something was taken, 0: nothing was there, -1: another thread leads. */
static int spin_look(struct spin *s)
{
	int taken = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (!s->src[i]->pending(s->src[i]))
			continue;
		if (!spin_call(s, s->src[i], s->src[i]->take))
			return -1;
		taken = 1;
	}
	return taken;
}

static int spin_look_repeatedly(struct spin *s)
{
	int taken = 0;

	for (int i = 0; i < SPIN_LOOKS && s->n && !taken; i++) {
		taken = spin_look(s);
		spin_pause();
	}
	return taken;
}

static int spin_for(struct spin *s, struct poller_event *evs, uint64_t until)
{
	for (;;) {
		int taken = spin_look_repeatedly(s), n;
		uint64_t now = clock_now_ns();

		if (taken < 0 || now >= until)
			return 0;
		if (taken)
			s->end = now + config_get()->spin_ns;
		if (s->n == 0 || now >= s->events_at) {
			n = poller_wait(&s->me->loop->poller, evs, now, now);
			if (n > 0)
				return n;
			s->events_at = now + SPIN_EVENT_NS;
		}
		if (now >= s->end)
			return -1;
	}
}

int leader_spin(struct eng_runner *me, struct poller_event *evs, uint64_t until)
{
	uint64_t now = clock_now_ns();
	struct spin s = {
		.me = me, .events_at = now + SPIN_EVENT_NS, .end = now + config_get()->spin_ns};
	int n;

	if (until <= now)
		return -1;
	atomic_store_explicit(&me->loop->spinning, true, memory_order_relaxed);
	spin_begin(&s);
	n = spin_for(&s, evs, until);
	if (n < 0)
		n = spin_rest(&s);
	spin_end(&s);
	return n;
}
